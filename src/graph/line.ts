import type { Draft } from './draft.ts'
import type { Id, Link, Turn } from './rows.ts'

/** A run and those it works for, or whose budget it goes on with, up to the root's. */
export function* lineOf(draft: Draft, turnId: Id): Generator<Turn> {
  for (let id: Id | null | undefined = turnId; id != null; ) {
    const turn: Turn | undefined = draft.findTurn(id)
    if (turn === undefined) return
    yield turn
    id = draft.findLink(id)?.hostTurnId ?? turn.wokenBy
  }
}

/** The same by their ids. `linkOf` gives the delegation that a run is of. */
export function* lineOfIds(linkOf: (turnId: Id) => Link | undefined, turnId: Id): Generator<Id> {
  for (let id: Id | undefined = turnId; id !== undefined; id = linkOf(id)?.hostTurnId) yield id
}
