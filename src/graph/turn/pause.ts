import type { Draft } from '../draft.ts'
import { lineOf } from '../line.ts'
import type { Id } from '../rows.ts'

/** A person is awaited: the clock of the run and of all above it stands still. */
export function pauseClocks(draft: Draft, turnId: Id): void {
  for (const turn of lineOf(draft, turnId)) {
    if (turn.state === 'ended') continue
    const leftMs = turn.paused?.leftMs ?? (turn.deadline === null ? null : turn.deadline - draft.now)
    draft.changeTurn(turn, { paused: { asks: (turn.paused?.asks ?? 0) + 1, leftMs }, deadline: null })
  }
}

/** A person has answered, or need not any more: clocks go on where nobody else is awaited. */
export function resumeClocks(draft: Draft, turnId: Id): void {
  for (const turn of lineOf(draft, turnId)) {
    if (turn.paused === null) continue
    const { asks, leftMs } = turn.paused
    if (asks > 1) draft.changeTurn(turn, { paused: { asks: asks - 1, leftMs } })
    else draft.changeTurn(turn, { paused: null, deadline: leftMs === null ? null : draft.now + leftMs })
    draft.watchTurn(turn)
  }
}
