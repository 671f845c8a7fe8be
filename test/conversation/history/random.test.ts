import { expect, test } from 'vitest'
import { figure } from '../../crash/support/figure.ts'
import { isFull } from '../../crash/support/full.ts'
import { tryHistory } from './random-history.ts'

const only = process.env['LEGATE_SEED']
const seeds = isFull ? 200_000 : 200

test('any 50 changes of history in a row, with children, summaries and nodes by hand, do what a simple reference says, and nothing is ever wrong', async () => {
  const from = only === undefined ? 1 : Number(only)
  const to = only === undefined ? seeds : from
  for (let seed = from; seed <= to; seed++) {
    repeatable(seed, () => tryHistory({ seed, operations: 50, auditEvery: auditEvery(seed) }))
    // The loop of the runner goes on.
    if (seed % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  figure('random histories', `${(to - from + 1).toLocaleString('en-US')} of 50 changes each, all as the reference says`)
}, 14_400_000)

test('any 800 changes of a long talk, its summaries and its answers do what a simple reference says', async () => {
  const from = only === undefined ? 100_150 : Number(only)
  const count = only === undefined ? (isFull ? 5_000 : 4) : 1
  for (let seed = from; seed < from + count; seed++) {
    repeatable(seed, () => tryHistory({ seed, operations: 800, mix: 'summaries', auditEvery: 200 }))
    // The loop of the runner goes on.
    if (seed % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  figure('random summaries', `${count.toLocaleString('en-US')} talks of 800 changes each, all as the reference says`)
}, 14_400_000)

test('a summary made by itself is left out where one by hand was made of its turn and more meanwhile', () => {
  repeatable(870_003_559, () => tryHistory({ seed: 870_003_559, operations: 200, auditEvery: 100 }))
})

test('a seed that fails names the line that repeats it, and what was done', () => {
  const fail = () => tryHistory({ seed: 7, operations: 5, auditEvery: 1, damageAt: 4 })

  expect(() => repeatable(7, fail)).toThrow(
    /^To repeat: LEGATE_SEED=7 npx vitest run --project suite test\/conversation\/history\/random.test.ts\nseed 7: .+(\n.+){4}$/,
  )
})

/** One that is repeated, and every tenth when there is time, is looked through after each change. */
function auditEvery(seed: number): number {
  if (only !== undefined) return 1
  if (!isFull) return seed % 2 === 0 ? 25 : 50
  return seed % 10 === 0 ? 1 : 10
}

function repeatable(seed: number, trial: () => void): void {
  try {
    trial()
  } catch (error) {
    const repeat = `LEGATE_SEED=${seed} npx vitest run --project suite test/conversation/history/random.test.ts`
    throw new Error(`To repeat: ${repeat}\n${error instanceof Error ? error.message : String(error)}`)
  }
}
