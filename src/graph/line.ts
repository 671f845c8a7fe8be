import type { Draft } from './draft.ts'
import type { Id, Link, Turn } from './rows.ts'

/** A run and those it works for, up to the root's. */
export function* lineOf(draft: Draft, turnId: Id): Generator<Turn> {
  for (const id of lineOfIds((one) => draft.findLink(one), turnId)) {
    const turn = draft.findTurn(id)
    if (turn === undefined) return
    yield turn
  }
}

/** The same by their ids. `linkOf` gives the delegation that a run is of. */
export function* lineOfIds(linkOf: (turnId: Id) => Link | undefined, turnId: Id): Generator<Id> {
  for (let id: Id | undefined = turnId; id !== undefined; id = linkOf(id)?.hostTurnId) yield id
}
