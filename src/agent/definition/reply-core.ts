import { DefinitionError } from '../../base/error.ts'
import type { Effect } from '../../graph/rows.ts'

/** Code that answers instead of a model. */
export interface ReplyCore {
  /** Whether it may run again when its process dies in the middle. */
  readonly effect: Effect
  /** Returns the answer, now or later, or a generator of its text that returns it. */
  readonly code: (input: never, context: never) => unknown
}

interface MaybeReply {
  readonly name: string
  readonly reply: ReplyCore | null
}

/** Refuses options that only an agent with a model can have. */
export function refuseForReply({ name, reply }: MaybeReply, what: string): void {
  if (reply === null) return
  const message = `agent "${name}" has a reply: its code answers, and there is no model for ${what}.`
  throw new DefinitionError('definition', message)
}
