import type { Draft } from './draft.ts'
import type { Reader } from './reader.ts'
import type { Conversation, Id, Link, Turn } from './rows.ts'

/** Yields a run and the runs above it up to the root: those that delegated it, or whose budget it continues. */
export function* lineOf(draft: Draft, turnId: Id): Generator<Turn> {
  for (let id: Id | null | undefined = turnId; id != null; ) {
    const turn: Turn | undefined = draft.findTurn(id)
    if (turn === undefined) return
    yield turn
    id = draft.findLink(id)?.hostTurnId ?? turn.wokenBy
  }
}

/** Yields the ids of a run and of those above it. `linkOf` gives the delegation that started a run. */
export function* lineOfIds(linkOf: (turnId: Id) => Link | undefined, turnId: Id): Generator<Id> {
  for (let id: Id | undefined = turnId; id !== undefined; id = linkOf(id)?.hostTurnId) yield id
}

/** The attributes of the request that a run serves: its caller's own, else those of the run above it. */
export function attributesOf(reader: Pick<Reader, 'turn' | 'link'>, turn: Turn): NonNullable<Turn['attributes']> {
  for (let at: Turn | undefined = turn; at !== undefined; ) {
    if (at.attributes !== null) return at.attributes
    const above: string | null = reader.link(at.id)?.hostTurnId ?? at.wokenBy
    at = above === null ? undefined : reader.turn(above)
  }
  return NONE
}

const NONE: NonNullable<Turn['attributes']> = Object.freeze({})

/** A run and its conversation. */
export interface Place {
  readonly turn: Turn
  readonly conversation: Conversation
}

/** The run that asked for this one, or made its conversation; undefined at the root. */
export function hostOf(store: Reader, { turn, conversation }: Place): Place | undefined {
  if (conversation.parentTurnId === null) return undefined
  const host = store.turn(store.link(turn.id)?.hostTurnId ?? conversation.parentTurnId)
  const its = host === undefined ? undefined : store.conversation(host.conversationId)
  return host === undefined || its === undefined ? undefined : { turn: host, conversation: its }
}
