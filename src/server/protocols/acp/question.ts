// A question to a person, as a form of ACP, and what he enters as the answer. Pure functions.

import { visibleProse } from '../../../core/base/text.ts'

/** The facts of a question, from its event or from the list of what waits. */
export interface AskedQuestion {
  readonly nodeId: string
  readonly text: string
  readonly seen: string
}

/** The parameters of `elicitation/create`. */
export function formOf(sessionId: string, { nodeId, text }: AskedQuestion) {
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
export function answerOf({ action, content }: FormReply): string {
  const { answer } = content ?? {}
  return action === 'accept' && typeof answer === 'string' && answer.trim() !== '' ? answer : NO_ANSWER
}

export interface FormReply {
  readonly action: string
  readonly content?: Readonly<Record<string, unknown>> | null
}
