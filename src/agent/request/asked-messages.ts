import type { Node } from '../../graph/rows.ts'
import type { Message } from '../../model/model.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import { messagesOf } from '../messages.ts'

/** The context of a call with the prompt of this turn in the place of what was kept of it: its system part first. */
export function askedMessages(instructions: string, context: readonly Node[], asked: AskedTurn): Message[] {
  const said = asked.prompt.toRequest({ tools: 'text' }).messages as readonly Message[]
  const system = said.filter(({ role }) => role === 'system')
  const others = said.filter(({ role }) => role !== 'system')
  if (asked.history !== null) {
    const own = context.filter((node) => node.kind !== 'user_message' && isOfTurn(node, asked.turnId))
    return [...messagesOf(instructions, []), ...system, ...asked.history, ...others, ...messagesOf('', own)]
  }
  const at = context.findIndex(({ kind, turnId }) => kind === 'user_message' && turnId === asked.turnId)
  const told = messagesOf(instructions, [])
  if (at < 0) return [...told, ...system, ...messagesOf('', context), ...others]
  const before = messagesOf('', context.slice(0, at))
  return [...told, ...system, ...before, ...others, ...messagesOf('', context.slice(at + 1))]
}

/** A summary is of what was before, wherever it was made. */
export function isOfTurn({ turnId, metadata }: Node, id: string): boolean {
  return turnId === id && metadata['standsFor'] !== true
}

export interface AskedTurn {
  readonly turnId: string
  readonly prompt: Prompt
  /** What is shown of earlier turns, where it is a chat. */
  readonly history: readonly Message[] | null
}
