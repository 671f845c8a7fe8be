import { CrashCase, type WorkerLine } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { programFile } from './support/program.ts'

const CHILDREN = 24
const counter = await useCounter()

const passes = (lines: readonly WorkerLine[], point: string) =>
  lines.filter((line) => line.type === 'pass' && line.point === point).length
const ends = (lines: readonly WorkerLine[]) =>
  lines.filter((line) => line.type === 'commit' && line.kind === 'end').length

test.each([
  ['in the middle of', { point: 'before:end', hit: 12 }, { ended: 0, askedAgain: CHILDREN }],
  ['right after', { point: 'after:end', hit: 1 }, { ended: CHILDREN, askedAgain: 0 }],
])(
  'after kill -9 %s a transaction that the ends of many children share, all of them are there or none',
  async (_, killAt, { ended, askedAgain }) => {
    const place = new CrashCase({ program: programFile('wide'), counter })
    const killed = await place.ended(place.start({ role: 'together', killAt }))
    expect(killed.signal).toBe('SIGKILL')
    await place.checkStanding()
    const before = place.evidence().lines
    expect(passes(before, 'before:end')).toBeGreaterThanOrEqual(12)
    expect([passes(before, 'member:asked'), ends(before)]).toEqual([CHILDREN, ended])

    await place.ended(place.start())

    const { lines, trees } = await place.conclude()
    expect(passes(lines, 'member:asked') - CHILDREN).toBe(askedAgain)
    const turns = trees.flatMap((tree) => [...tree.turns.values()])
    expect(turns.map(({ outcome }) => outcome?.status)).toEqual(Array(CHILDREN + 1).fill('completed'))
  },
)
