import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { commitOf, next, turnRow } from '../../../src/testing/conformance/store-rows.ts'
import { longTalk } from '../../support/long-talk.ts'
import { watchWork } from '../../support/pace.ts'

const SHORT = 500
const LONG = 8_000
/** Turns of one round. */
const ROUND = 20

/** A store that was opened again knows only the rows that it has read since. */
const CASES = [
  ['memory', false],
  ['sqlite', false],
  ['sqlite', true],
] as const

describe.each(CASES)(`after ${LONG} turns on %s (opened again: %s)`, (kind, isAgain) => {
  test.each([
    ['the next turn', costOfTurns],
    ['a look for the next turn in the queue', costOfLooks],
  ] as const)(`%s costs what it cost after ${SHORT}`, async (_, costOf) => {
    const [short, long] = [await longTalk(kind, SHORT), await longTalk(kind, LONG)]
    if (isAgain) for (const store of [short, long]) store.reopen()
    let [low, high] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    // Other work on the machine only adds to a round: the least of each is compared, until it is little enough.
    for (let round = 0; round < 40 && (round < 5 || high >= 2 * low); round++) {
      low = Math.min(low, await costOf(short, SHORT + round * ROUND))
      high = Math.min(high, await costOf(long, LONG + round * ROUND))
    }

    expect(high).toBeLessThan(2 * low)
  })
})

/** Of turns that begin and end, in milliseconds of work. */
async function costOfTurns(store: LocalStore, from: number): Promise<number> {
  const work = watchWork()
  for (let ordinal = from; ordinal < from + ROUND; ordinal++) {
    const place = { rootId: 'root-a', conversationId: 'root-a', laneId: 'root-a', turnId: `turn-${ordinal}` }
    const conversation = store.conversation('root-a')
    const conversations = conversation === undefined ? [] : [next(conversation, { turnCount: ordinal + 1 })]
    const turn = turnRow(place, { ordinal })
    await store.commit(commitOf('root-a', { conversations, turns: [turn] }))
    await store.commit(commitOf('root-a', { turns: [next(turn, { state: 'ended' })] }))
  }
  return work()
}

/** In milliseconds of work. */
async function costOfLooks(store: LocalStore): Promise<number> {
  const work = watchWork()
  for (let time = 0; time < 1_000; time++) store.queuedTurn('root-a')
  const spent = work()
  expect(store.queuedTurn('root-a')).toBeUndefined()
  return spent
}
