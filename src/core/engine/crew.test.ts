import { describe, expect, test } from 'vitest'
import { engineRow } from '../../testing/conformance/store-rows.ts'
import type { EngineRow } from '../graph/commit.ts'
import { Crew } from './crew.ts'

const NOW = 1_000
const ids = ['one', 'two', 'three', 'four']
const trees = Array.from({ length: 400 }, (_, at) => `tree-${at}`)
const rows = ids.map(
  (id): EngineRow => ({ ...engineRow(id), bootId: 'elsewhere', leaseUntil: NOW + 1, agents: ['host'] }),
)

function crewOf(id: string, engines: readonly EngineRow[]): Crew {
  const crew = new Crew(id, true)
  crew.learn(engines, NOW)
  return crew
}

const work = (rootId: string) => ({ rootId, runnable: true, isLeft: false, stop: false, ended: [] })

describe('work that several processes hear of', () => {
  test('one process takes each piece of work, and each process takes about as much', () => {
    const crews = ids.map((id) => crewOf(id, rows))
    const taken = crews.map((crew) => trees.filter((rootId) => crew.hear(work(rootId))))

    expect(taken.flat().toSorted()).toEqual(trees.toSorted())
    for (const { length } of taken) expect(length).toBeGreaterThan(60)
  })

  test('a process that is gone, or that runs nothing, is not waited for', () => {
    const gone = rows.map((row, at) => (at === 0 ? row : { ...row, leaseUntil: NOW }))
    const idle = rows.map((row, at) => (at === 0 ? row : { ...row, agents: [] }))

    for (const engines of [gone, idle, []]) {
      const crew = crewOf('one', engines)
      expect(trees.every((rootId) => crew.hear(work(rootId)))).toBe(true)
      // There is nobody who could be told.
      expect(crew.begin()()).toEqual([])
    }
  })

  test('without a worker it leaves all that it was to take; they all look for it', () => {
    const crew = crewOf('one', rows)
    const mine = trees.filter((rootId) => crew.hear(work(rootId)))
    const [first = ''] = mine
    const leave = crew.begin()
    // This one comes too late for the look, and is for the next.
    crew.hear(work(first))

    expect(leave()).toEqual(mine)
    expect(crew.begin()()).toEqual([first])
    expect(crew.begin()()).toEqual([])
    expect(ids.every((id) => crewOf(id, rows).hear({ ...work(first), isLeft: true }))).toBe(true)
  })

  test('a sweep leaves nodes to who is first for them, and takes those that are still there at the next two', () => {
    const nodes = trees.map((rootId) => ({ id: `node of ${rootId}`, rootId }))
    const crew = crewOf('one', rows)
    const first = nodes.filter((node) => crew.beginSweep()?.(node))
    expect(first).toEqual(nodes.filter(({ rootId }) => crew.isFirst(rootId)))

    const [seen = [], fresh = []] = [nodes.slice(0, 200), nodes.slice(200)]
    const other = crewOf('one', rows)
    const sweep = other.beginSweep()
    for (const node of seen) sweep?.(node)
    const [next, afterNext] = [other.beginSweep(), other.beginSweep()]
    expect(seen.every((node) => next?.(node) && afterNext?.(node))).toBe(true)
    expect(fresh.filter((node) => next?.(node))).toEqual(fresh.filter(({ rootId }) => crew.isFirst(rootId)))
    // It was told that there is nobody else.
    expect(crewOf('one', rows.slice(0, 1)).beginSweep()).toBeUndefined()
  })

  test('a process leaves to others the work that it did not find, unless they have code that it lacks', () => {
    const same = crewOf('one', rows)
    const mine = trees.filter((rootId) => same.hear(work(rootId)))
    const [first = '', ...rest] = mine
    expect(same.begin()(new Set([first]))).toEqual([])

    const mixed = crewOf('one', [
      ...rows.slice(0, 3),
      ...rows.slice(3).map((row) => ({ ...row, agents: ['host', 'sub'] })),
    ])
    for (const rootId of mine) mixed.hear(work(rootId))
    expect(mixed.begin()(new Set([first]))).toEqual(rest)
  })
})
