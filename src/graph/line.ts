import type { Draft } from './draft.ts'
import type { Id, Turn } from './rows.ts'

/** A run and those it works for, up to the root's. */
export function* lineOf(draft: Draft, turnId: Id): Generator<Turn> {
  for (let id: Id | undefined = turnId; id !== undefined; id = draft.findLink(id)?.hostTurnId) {
    const turn = draft.findTurn(id)
    if (turn === undefined) return
    yield turn
  }
}
