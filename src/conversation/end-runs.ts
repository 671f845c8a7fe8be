import type { LegateError } from '../base/error.ts'
import type { Engine } from '../engine/engine.ts'
import type { BlockWriter } from './blocks.ts'
import type { Feeds } from './feeds.ts'
import type { TurnEnds } from './turn-ends.ts'

export interface WaitingParts {
  readonly engine: Engine
  readonly ends: TurnEnds
  readonly feeds: Feeds
  readonly blocks: BlockWriter
}

/** Tells who waits for a run that it cannot end any more: every run where the store is gone, else those of one tree. */
export function endRuns(error: LegateError, { engine, ends, feeds, blocks }: WaitingParts): void {
  const { rootId } = error.details
  if (error.code === 'store_gone') {
    blocks.stop()
    engine.halt()
    ends.failAll(() => error)
    feeds.close()
  } else if (typeof rootId === 'string') {
    ends.failTree(rootId, error)
    feeds.closeTree(rootId)
  }
}
