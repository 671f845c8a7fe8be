import { NotFoundError } from '../base/error.ts'
import type { Id } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'
import type { TurnEnds } from './turn-ends.ts'

/** Resolves when nothing is open any more, in the whole store or in one tree: also what goes on in the background. */
export async function untilIdle(store: Store, ends: TurnEnds, rootId: Id | undefined): Promise<void> {
  for (;;) {
    const open = store.openTurns(rootId === undefined ? 1 : Number.MAX_SAFE_INTEGER)
    const turn = rootId === undefined ? open[0] : open.find((one) => one.rootId === rootId)
    if (turn === undefined) return
    await ends.wait(turn.id).catch(unlessDeleted)
  }
}

/** Another process may have ended a run and deleted it: that is an end too. */
function unlessDeleted(error: unknown): void {
  if (!NotFoundError.isInstance(error)) throw error
}
