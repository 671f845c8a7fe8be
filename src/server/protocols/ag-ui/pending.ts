// The nodes that wait for a person, as interrupts of AG-UI: how a client is asked, and what its payload means to the runtime.

import { canonicalJson } from '../../../core/base/json.ts'
import { isLegateError, type Json, type ScopedRuntime } from '../../../index.ts'
import type { GivenResult, ResumeAnswer, RunInput } from './read.ts'
import type { AgUiPending } from './rows.ts'

type AnyAnswer = Parameters<ScopedRuntime['answer']>[1]

const SCHEMAS: Readonly<Record<AgUiPending['reason'], Json>> = {
  tool_call: {
    type: 'object',
    properties: {
      approved: { type: 'boolean' },
      reason: { type: 'string' },
      editedArgs: {},
      always: { type: 'boolean' },
    },
    required: ['approved'],
  },
  input_required: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  tool_result: { type: 'object', properties: { result: {}, isError: { type: 'boolean' } }, required: ['result'] },
}

/** An interrupt as the client reads it. */
export function interruptOf({ id, nodeId, reason, message, subagentRunId, expiresAt }: AgUiPending): Json {
  return {
    id,
    reason,
    message,
    toolCallId: nodeId,
    responseSchema: SCHEMAS[reason],
    ...(subagentRunId === null ? {} : { subagentRunId }),
    ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
  }
}

/** A request that the contract of interrupts refuses: the answer is a stream that says so. */
export class ThreadRefusal extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Says in the stream why the runtime took no answer, and what was answered. */
export function refuseAnswer(error: unknown, answered: string): never {
  if (!isLegateError(error)) throw error
  const why = error.message.startsWith('Nothing was answered: ') ? error.message.slice(22) : error.message
  throw new ThreadRefusal(error.code, `${why} ${answered}`)
}

/** Throws where the client answers something that does not wait. */
export function requireNoResume({ resume }: RunInput): void {
  const [word] = resume ?? []
  if (word !== undefined) throw notOpen(word)
}

/** One answer for every open interrupt. Throws where one is missing, has another shape, or answers something else. */
export function answersTo(open: readonly AgUiPending[], input: RunInput): readonly Answer[] {
  const answers = open.map((interrupt) => ({ interrupt, word: answerOf(interrupt, wordFor(interrupt, input)) }))
  const other = input.resume?.find(({ interruptId }) => open.every(({ id }) => id !== interruptId))
  if (other !== undefined) throw notOpen(other)
  return answers
}

interface Answer {
  readonly interrupt: AgUiPending
  readonly word: AnyAnswer
}

function notOpen({ interruptId }: ResumeAnswer): ThreadRefusal {
  return new ThreadRefusal(
    'interrupt_unknown',
    `Nothing was answered: no interrupt ${interruptId} is open in this thread.`,
  )
}

/** The answer to an interrupt: an entry of `resume`, or the result of a tool that the client executes. */
function wordFor({ id, nodeId, reason, message, call }: AgUiPending, { resume, results }: RunInput): ResumeAnswer {
  const word = resume?.find(({ interruptId }) => interruptId === id)
  if (word !== undefined) return word
  const given = reason === 'tool_result' ? results.get(nodeId) : undefined
  if (given !== undefined) {
    requireShown(call, given)
    return { interruptId: id, isCancelled: false, payload: { result: given.result } }
  }
  const why = resume === null ? 'interrupts_open' : 'interrupt_unanswered'
  throw new ThreadRefusal(why, `The thread waits: answer every interrupt with "resume" (${message}).`)
}

/** A result is that of the call which waits only where the client was shown this call: it sends the call along. */
function requireShown(call: AgUiPending['call'], { call: shown }: GivenResult): void {
  const isSame =
    shown?.name === call?.name && canonicalJson(shown?.input ?? null) === canonicalJson(call?.input ?? null)
  if (shown !== null && isSame) return
  const why = 'your messages do not show the call as it is now: answer its interrupt with "resume"'
  throw new ThreadRefusal('invalid_input', `Nothing was answered: ${why}.`)
}

/** The client's answer, as a word for the node that waits. Only `approved: true` allows. */
function answerOf(interrupt: AgUiPending, word: ResumeAnswer): AnyAnswer {
  if (!word.isCancelled) requireShape(interrupt, word)
  if (interrupt.reason === 'tool_call') return approvalOf(word)
  return interrupt.reason === 'input_required' ? replyOf(word) : resultOf(word)
}

function requireShape({ id, reason }: AgUiPending, { payload }: ResumeAnswer): void {
  const { approved, text, result } = fieldsOf(payload)
  const needs = {
    tool_call: typeof approved === 'boolean' ? null : '{ approved: true } or { approved: false }',
    input_required: typeof text === 'string' && text.trim() !== '' ? null : '{ text }',
    tool_result: result === undefined ? '{ result }' : null,
  }[reason]
  if (needs !== null)
    throw new ThreadRefusal('invalid_input', `Nothing was answered: the payload for ${id} must be ${needs}.`)
}

function approvalOf({ interruptId, payload, isCancelled }: ResumeAnswer): AnyAnswer {
  const { approved, reason, editedArgs, always } = fieldsOf(payload)
  const allow = !isCancelled && approved === true
  return {
    allow,
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(allow && editedArgs !== undefined ? { edit: editedArgs } : {}),
    ...(allow && always === true ? { always } : {}),
    seen: seenIn(interruptId),
  }
}

/** The hash of what the client was shown: the id that it sends has it. */
function seenIn(interruptId: string): string {
  return interruptId.slice(interruptId.indexOf('/') + 1)
}

const NO_ANSWER = 'The person does not answer this.'

function replyOf({ interruptId, payload, isCancelled }: ResumeAnswer): AnyAnswer {
  const { text } = fieldsOf(payload)
  return { text: isCancelled || typeof text !== 'string' ? NO_ANSWER : text, seen: seenIn(interruptId) }
}

function resultOf({ interruptId, payload, isCancelled }: ResumeAnswer): AnyAnswer {
  const seen = seenIn(interruptId)
  if (isCancelled) return { result: 'The person cancelled it.', isError: true, seen }
  const { result = null, isError } = fieldsOf(payload)
  return { result, isError: isError === true, seen }
}

function fieldsOf(value: Json): Readonly<Record<string, Json | undefined>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}
