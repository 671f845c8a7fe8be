import { ANSWER_LIMIT } from '../agent/answer-size.ts'
import { hookedEvent } from '../agent/hooks/stream-hooks.ts'
import { saysNothing } from '../agent/messages.ts'
import type { NodeRun } from '../agent/node-run.ts'
import { DefinitionError, isLegateError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { type Json, sizeOf, toJson } from '../base/json.ts'
import { describeIssues } from '../base/schema.ts'
import { type Content, isBlock, textOf } from '../graph/content.ts'
import type { Failure, NodeOutput } from '../graph/rows.ts'
import { planBeginCode } from '../graph/turn/begin-code.ts'
import { interruptedEnd, type NodeEnd } from '../graph/turn/end-node.ts'
import { planResult } from '../graph/turn/result.ts'
import { orStopped } from '../tool/or-stopped.ts'
import { type Given, type Watch, watchedContext } from '../tool/tape.ts'
import { ReplyChildren } from './reply-children.ts'

/** One agent_message of an agent that is code: the code, and the commit of its answer. */
export async function runReply(given: NodeRun): Promise<void> {
  const run = await begin(given)
  if (run === undefined) return
  const { node, work, home } = run
  const children = new ReplyChildren(run)
  const speech = new Speech(run, children)
  if (node.epoch > 1) children.show({ type: 'reset', attempt: node.attempt })
  const answered = await answerOf(run, children, speech)
  const end = withConflict(await endOf(run, answered, speech), children)
  children.end()
  if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return
  await home.ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) => planResult(draft, work.claim, end),
  })
}

/** The row says what may become of the node before its code can have done anything. Undefined when it is another's. */
async function begin(run: NodeRun): Promise<NodeRun | undefined> {
  const { node, work, home, agent } = run
  const effect = agent.reply?.effect ?? 'effectful'
  if (node.effect === effect) return run
  const plan = (draft: Parameters<typeof planBeginCode>[0]) => planBeginCode(draft, work.claim, effect)
  const begun = await home.ledger.commit({ kind: 'note', rootId: node.rootId, plan })
  return begun === undefined ? undefined : { ...run, node: begun }
}

/** The words a generator says on its way. */
class Speech {
  text = ''
  chunks = 0
  private readonly run: NodeRun
  private readonly children: ReplyChildren

  constructor(run: NodeRun, children: ReplyChildren) {
    this.run = run
    this.children = children
  }

  say(text: unknown): void | Promise<void> {
    if (typeof text !== 'string') {
      throw new DefinitionError('definition', `The reply of "${this.run.agent.name}" yields what is no text.`)
    }
    if (text === '') return
    this.text += text
    this.chunks++
    if (this.text.length > ANSWER_LIMIT) throw tooLong()
    this.run.work.stirred()
    this.children.show({ type: 'text-delta', text })
    if (this.run.hooks?.has('onEvent') !== true) return
    return hookedEvent(this.run, { type: 'text-delta', text }, (body) => this.children.show(body))
  }

  /** What a message replaces that says the same. */
  streamedAs(content: Content | undefined): NonNullable<NodeEnd['streamed']> | null {
    if (this.chunks < 2 || content !== this.text) return null
    return { chunks: this.chunks, bytes: sizeOf(this.text), sha256: sha256(this.text) }
  }
}

function tooLong(): DefinitionError {
  return new DefinitionError('definition', `The answer is longer than ${ANSWER_LIMIT / 1e6} MB: it was left off.`)
}

function answerOf(run: NodeRun, children: ReplyChildren, speech: Speech): Promise<Given> {
  const { node, work, home, agent } = run
  const code = (watch?: Watch) => runCode(run, { children, speech, watch })
  if (home.tape === null) return code()
  const agentNamed = (name: string) => children.declared(name)
  return home.tape.run({ node, work, current: children, name: agent.name, input: run.turn.input, agentNamed }, code)
}

interface Running {
  readonly children: ReplyChildren
  readonly speech: Speech
  readonly watch: Watch | undefined
}

/** What it returned, beside what it said: `returned` is left out where it returned nothing. */
interface Answered {
  readonly said: string
  readonly returned?: Json
}

async function runCode(run: NodeRun, { children, speech, watch }: Running): Promise<Given> {
  const { agent, work, home } = run
  try {
    const code = agent.reply?.code as (input: unknown, context: unknown) => unknown
    const answering = children.inside(async () => {
      const context = watchedContext(children.replyContext() as never, watch)
      return heard(run, speech, await code(inputOf(run), context))
    })
    const returned = await orStopped(answering, work)
    if (returned === undefined) return { value: { said: speech.text } }
    const json = toJson(returned)
    if (!json.ok) return { error: `What the reply gave is not JSON: ${json.error}`, code: 'invalid_output' }
    return { value: { said: speech.text, returned: json.value } }
  } catch (error) {
    if (work.stopCause !== null) return { stopped: work.stopCause === 'cancel' ? 'cancel' : 'lost' }
    return { error: home.causeOf(error), code: isLegateError(error, 'conflict') ? 'conflict' : 'reply' }
  }
}

/** What the code returned, after all that it said on the way. */
async function heard({ work }: NodeRun, speech: Speech, given: unknown): Promise<unknown> {
  if (!isGenerator(given)) return given
  for (;;) {
    const { done, value } = await given.next()
    if (done === true) return value
    await speech.say(value)
    if (work.stopCause === null) continue
    await given.return?.(undefined)
    throw work.signal.reason
  }
}

function isGenerator(given: unknown): given is AsyncIterator<unknown> {
  const isObject = typeof given === 'object' && given !== null
  return isObject && Symbol.asyncIterator in given && typeof Reflect.get(given, 'next') === 'function'
}

/** As the rows keep it, so that code that runs again has the same: by its schema, else the message. */
function inputOf({ agent, turn, node, home }: NodeRun): Json | Content {
  if (agent.input !== null) return turn.input
  const asked = home.ledger.store.nodesOf(turn.id).findLast(({ kind, ordinal }) => {
    return kind === 'user_message' && ordinal < node.ordinal
  })
  return asked?.input.content ?? ''
}

async function endOf(run: NodeRun, given: Given, speech: Speech): Promise<NodeEnd> {
  if ('value' in given) return judged(run, given.value as unknown as Answered, speech)
  const said = speech.text === '' ? {} : { output: { content: speech.text }, streamed: speech.streamedAs(speech.text) }
  if ('error' in given)
    return { ...said, state: 'errored', failure: failed(given.code ?? 'reply', textOf(given.error)) }
  return { ...said, ...interruptedEnd(run.node, 'interrupted' in given ? given.interrupted : STOPPED) }
}

const STOPPED = 'The run was asked to stop.'

function failed(code: string, message: string): Failure {
  return { code, message }
}

/** An answer that is empty or does not fit is a failure with a name (I6). */
async function judged(run: NodeRun, answered: Answered, speech: Speech): Promise<NodeEnd> {
  const read = run.agent.output === null ? readWords(run, answered) : await readValue(run, answered)
  if ('code' in read) {
    const said = answered.said === '' ? {} : { output: { content: answered.said } }
    return { ...said, state: 'errored', failure: read, streamed: speech.streamedAs(answered.said) }
  }
  const extra = run.hooks === null ? undefined : run.home.extensionRuns.extraOf(run.node.turnId)
  const output = extra === undefined ? read : { ...read, extra }
  return { state: 'finished', output, streamed: speech.streamedAs(read.content) }
}

/** Without a schema an answer is words, or blocks. */
function readWords({ agent }: NodeRun, { said, returned = said }: Answered): NodeOutput | Failure {
  const isContent = typeof returned === 'string' || (Array.isArray(returned) && returned.every(isBlock))
  if (!isContent) {
    const message = `The reply of "${agent.name}" gave data, and it has no output: return a text, or define its output.`
    return failed('invalid_output', message)
  }
  const content = returned as unknown as Content
  return saysNothing(content) ? failed('empty_answer', `The reply of "${agent.name}" gave no answer.`) : { content }
}

async function readValue({ agent }: NodeRun, { said, returned }: Answered): Promise<NodeOutput | Failure> {
  const checked = await agent.output?.validate(returned)
  if (checked?.ok !== true) return failed('invalid_output', describeIssues(checked?.issues ?? []))
  const json = toJson(checked.value)
  const value = json.ok ? json.value : (returned ?? null)
  if (said.trim() !== '') return { content: said, value }
  return { content: typeof value === 'string' ? value : JSON.stringify(value), value }
}

/** Code that went on after a conflict has not answered what it was asked. */
function withConflict(end: NodeEnd, { conflict }: ReplyChildren): NodeEnd {
  if (conflict === null || end.state !== 'finished') return end
  const { output, streamed } = end
  return {
    state: 'errored',
    ...(output === undefined ? {} : { output }),
    streamed: streamed ?? null,
    failure: failed('conflict', conflict.message),
  }
}
