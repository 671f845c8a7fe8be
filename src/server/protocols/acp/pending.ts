// The node that waits for a person, as a request of ACP: an approval as a request for permission, a question as a form; and what
// the person chooses or enters, as the answer. Pure functions.
//
// Must stay true (I11):
//   - The person reads all that a yes allows, as text of the prompt: editors show titles in part, and raw input not at all.
//   - No character of a model or a file is invisible in the prompt.

import { visibleProse } from '../../../core/base/text.ts'
import { type AskedFacts, askedText } from '../../../doors/rows.ts'
import type { ScopedRuntime } from '../../../index.ts'
import { callContent, callKind, diffsOf, permissionTitle, visibleJson } from './write.ts'

/** The facts of a request, from its event or from the list of what waits. */
export interface AcpApproval extends AskedFacts {
  readonly nodeId: string
  readonly seen: string
}

/** The parameters of `session/request_permission`. */
export function permissionOf(sessionId: string, asked: AcpApproval, folder: string) {
  const { nodeId, request, tool, input } = asked
  const call = { name: tool ?? request, input }
  return {
    sessionId,
    toolCall: {
      toolCallId: nodeId,
      title: permissionTitle(asked),
      kind: callKind(call, false),
      status: 'pending' as const,
      rawInput: visibleJson(input),
      content: [...callContent(askedText(asked)), ...diffsOf(call, folder)] as never,
    },
    options: [
      { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' as const },
      { optionId: 'allow_always', name: 'Allow in this conversation', kind: 'allow_always' as const },
      { optionId: 'reject_once', name: 'Deny', kind: 'reject_once' as const },
    ],
  }
}

/** The word that a choice means; undefined where nothing was chosen. */
export function wordOf(
  outcome: { readonly outcome: string; readonly optionId?: string },
  seen: string,
): Parameters<ScopedRuntime['answer']>[1] | undefined {
  if (outcome.outcome !== 'selected') return undefined
  const { optionId } = outcome
  if (optionId === 'reject_once') return { allow: false, reason: 'The person denied it.', seen }
  if (optionId === 'allow_once') return { allow: true, seen }
  return optionId === 'allow_always' ? { allow: true, always: true, seen } : undefined
}

/** The facts of a question, from its event or from the list of what waits. */
export interface AcpQuestion {
  readonly nodeId: string
  readonly text: string
  readonly seen: string
}

/** The parameters of `elicitation/create`. */
export function formOf(sessionId: string, { nodeId, text }: AcpQuestion) {
  return {
    mode: 'form' as const,
    sessionId,
    toolCallId: nodeId,
    message: visibleProse(text),
    requestedSchema: {
      type: 'object' as const,
      properties: { answer: { type: 'string' as const, title: 'Answer' } },
      required: ['answer'],
    },
  }
}

const NO_ANSWER = 'The person does not answer this.'

/** The answer that a form gives: a person who turns it down does not answer. */
export function formAnswer({ action, content }: FormReply): string {
  const { answer } = content ?? {}
  return action === 'accept' && typeof answer === 'string' && answer.trim() !== '' ? answer : NO_ANSWER
}

export interface FormReply {
  readonly action: string
  readonly content?: Readonly<Record<string, unknown>> | null
}
