import path from 'node:path'
import { expect, test } from 'vitest'

interface Sample {
  readonly ok: boolean
  readonly workload: string
  readonly peer: string
  readonly key: string
  readonly us: number
}

interface Goals {
  compareWithGoals(
    samples: readonly Sample[],
    workloads: readonly string[],
    goals: readonly object[],
  ): { readonly lines: readonly string[]; readonly missed: number }
}

const { compareWithGoals } = (await import(path.resolve(import.meta.dirname, '../bench/goals.mjs'))) as Goals
const goal = { name: 'A goal', workload: 'w1', key: 'w1', figure: 'us', ours: 'legate', peer: 'pi', atMost: 0.5 }
const sample = (peer: string, us: number): Sample => ({ ok: true, workload: 'w1', peer, key: 'w1', us })

test.each([
  [4, 0, '0.40x of pi, goal 0.50x of pi: met'],
  [5.4, 0, '0.54x of pi, goal 0.50x of pi: met within a tenth'],
  [5.6, 1, '0.56x of pi, goal 0.50x of pi: MISSED'],
])('a goal of the benchmark for a figure of %s beside 10', (us, missed, told) => {
  const found = compareWithGoals([sample('legate', us), sample('pi', 10)], ['w1'], [goal])
  expect(found).toEqual({ missed, lines: [`${'A goal'.padEnd(58)} ${told}`] })
})

test('a goal of a workload that gave no figure is missed, and one of a workload that was not asked for is left out', () => {
  const failed = { ...sample('legate', 1), ok: false }
  for (const samples of [[], [sample('legate', 1)], [sample('pi', 1)], [failed, sample('pi', 1)]]) {
    const found = compareWithGoals(samples, ['w1'], [goal])
    expect(found).toMatchObject({ missed: 1, lines: [expect.stringMatching(/no figure.*MISSED$/)] })
  }
  expect(compareWithGoals([], ['w2'], [goal])).toEqual({ lines: [], missed: 0 })
})

test('a goal without a peer is a figure as it is', () => {
  const bytes = { ...goal, peer: undefined, unit: 'bytes' }
  expect(compareWithGoals([sample('legate', 1)], ['w1'], [bytes]).lines).toEqual([
    `${'A goal'.padEnd(58)} 1 bytes, goal 0.5 bytes: MISSED`,
  ])
})
