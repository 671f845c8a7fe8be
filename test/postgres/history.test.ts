import type { CountedEffect, TreeRows, WorkerLine } from 'legate/testing'
import { readTrees, scriptedModel } from 'legate/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Node, Turn } from '../../src/core/graph/rows.ts'
import { createRuntime } from '../../src/core/runtime/runtime.ts'
import { agent } from '../../src/core/runtime/standalone.ts'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import type { Store } from '../../src/core/store/store.ts'
import { simpleTool } from '../support/agents.ts'
import { type History, type ReadLine, type StoredCommit, wrongInHistory } from './support/history.ts'

type CommitLine = Extract<WorkerLine, { type: 'commit' }>

/** A real run with one effect, and the history that a process would have logged of it. */
let whole: History

beforeAll(async () => {
  whole = await historyOfRun()
})

test('a history without a fault has nothing wrong', () => {
  expect(wrongInHistory(whole)).toEqual([])
  expect(whole.chain.length).toBeGreaterThan(3)
})

describe('each law finds the fault that is planted against it', () => {
  test('an acknowledged commit that is not in the chain', () => {
    const [, ...rest] = whole.chain.toReversed()
    expect(found({ chain: rest.toReversed() })).toEqual([expect.stringMatching(/^lost .* is not in the chain$/)])
  })

  test('acknowledged events that are not in the tree', () => {
    const trees = whole.trees.map((tree) => ({ ...tree, events: tree.events.slice(0, -1) }))
    expect(found({ trees })).toContainEqual(expect.stringMatching(/^L1 .* is lost$/))
  })

  test('a chain with a hole, and one whose events do not add up', () => {
    expect(found({ chain: changed(2, ({ n }) => ({ n: n + 1 })) })).toContainEqual(expect.stringMatching(/^chain /))
    expect(found({ chain: changed(2, ({ count }) => ({ count: count + 1 })) })).toContainEqual(
      expect.stringMatching(/^chain .* ends at/),
    )
  })

  test('one id for two commits is found', () => {
    const { id } = whole.chain[0] ?? { id: '' }
    expect(found({ chain: changed(1, () => ({ id })) })).toContainEqual(expect.stringMatching(/^doubled /))
  })

  test('a commit that is acknowledged twice', () => {
    const lines = [...whole.lines, ...whole.lines.slice(0, 1)]
    expect(found({ lines })).toContainEqual(expect.stringMatching(/^doubled .* acknowledged twice$/))
  })

  test('a commit at another place than was acknowledged', () => {
    const lines = relined(1, (line) => ({ events: line.events.map((event) => ({ ...event, seq: event.seq + 1 })) }))
    expect(found({ lines })).toContainEqual(expect.stringMatching(/^misplaced /))
  })

  test('a commit that was sent after another was acknowledged, and comes before it', () => {
    const late = Number.MAX_SAFE_INTEGER
    const lines = relined(0, () => ({ sent: late, at: late + 1 }))
    expect(found({ lines })).toEqual([expect.stringMatching(/^order .* commit 1 was sent after \d+ was acknowledged$/)])
  })

  test('a reader that misses an event, and one that sees it twice', () => {
    const seen = eventsSeen()
    expect(found({ lines: [...whole.lines, read({ events: seen.toSpliced(1, 1) })] })).toContainEqual(
      expect.stringMatching(/^gap .* saw 3 at place 2$/),
    )
    const again = [read({ events: seen.slice(0, 3) }), read({ events: seen.slice(2), after: 2 })]
    expect(found({ lines: [...whole.lines, ...again] })).toContainEqual(
      expect.stringMatching(/^gap .* went on from 2, not 3$/),
    )
  })

  test('a reader that sees what is not stored', () => {
    const events = eventsSeen().with(0, [1, 'warning'])
    expect(found({ lines: [...whole.lines, read({ events })] })).toEqual([expect.stringMatching(/^misread /)])
  })

  test('a read without a write that was acknowledged before it was asked', () => {
    const old = read({ events: eventsSeen().slice(0, 2), asked: 1e9, answered: 1e9 + 1 })
    expect(found({ lines: [...whole.lines, old] })).toEqual([
      expect.stringMatching(/^stale .* saw up to 2 when \d+ was/),
    ])
    const full: ReadLine = { ...old, isFull: true }
    expect(found({ lines: [...whole.lines, full] })).toEqual([])
  })

  test('a read that sees less than another process had seen before', () => {
    const none = whole.lines.filter((line) => line.type !== 'commit')
    const reads = [
      read({ reader: 'one', asked: 1, answered: 2 }),
      read({ reader: 'two', asked: 3, answered: 4, events: eventsSeen().slice(0, 2) }),
    ]
    expect(found({ lines: [...none, ...reads] })).toEqual([expect.stringMatching(/^stale .* the reader two/)])
    const beside = reads.with(1, { ...(reads[1] as ReadLine), asked: 1.5 })
    expect(found({ lines: [...none, ...beside] })).toEqual([])
  })

  test('an effect that happened twice, and one that did not happen', () => {
    const [effect] = whole.effects
    expect(found({ effects: [effect, effect] as CountedEffect[] })).toEqual([
      expect.stringMatching(/^L5 .* had 2 effects/),
    ])
    expect(found({ effects: [] })).toEqual([expect.stringMatching(/^L5 .* had 0 effects/)])
  })

  test('a call in doubt that no outcome reports', () => {
    const trees = withNode((node) => node.input.call?.name === 'pay', { state: 'uncertain' })
    expect(found({ trees })).toContainEqual(expect.stringMatching(/uncertain|doubt/))
  })

  test('a run that is left open', () => {
    const trees = whole.trees.map((tree) => {
      const turns = new Map([...tree.turns].map(([id, turn]) => [id, { ...turn, state: 'running' } as Turn]))
      return { ...tree, events: tree.events, turns }
    })
    expect(found({ trees })).toContainEqual(expect.stringMatching(/^L3 turn .* is running$/))
  })
})

function found(fault: Partial<History>): string[] {
  return wrongInHistory({ ...whole, ...fault })
}

function changed(at: number, change: (commit: StoredCommit) => Partial<StoredCommit>): StoredCommit[] {
  return whole.chain.map((commit, index) => (index === at ? { ...commit, ...change(commit) } : commit))
}

function relined(at: number, change: (line: CommitLine) => Partial<CommitLine>): WorkerLine[] {
  return (whole.lines as CommitLine[]).map((line, index) => (index === at ? { ...line, ...change(line) } : line))
}

function eventsSeen(): (readonly [number, string])[] {
  return (whole.trees[0]?.events ?? []).map(({ seq, body }) => [seq, body.type] as const)
}

/** A read of the whole tree, before anything was acknowledged unless it says when. */
function read(given: Partial<ReadLine>): ReadLine {
  const rootId = whole.trees[0]?.rootId ?? ''
  const line = {
    type: 'read',
    pid: 2,
    reader: 'one',
    rootId,
    asked: -2,
    answered: -1,
    after: 0,
    isFull: false,
  } as const
  return { ...line, events: eventsSeen(), ...given }
}

function withNode(isIt: (node: Node) => boolean, change: Partial<Node>): TreeRows[] {
  return whole.trees.map((tree) => {
    const nodes = new Map([...tree.nodes].map(([id, node]) => [id, isIt(node) ? { ...node, ...change } : node]))
    return { ...tree, events: tree.events, nodes }
  })
}

async function historyOfRun(): Promise<History> {
  const memory = memoryStore()
  const lines: CommitLine[] = []
  const chain: StoredCommit[] = []
  const store: Store = {
    ...memory,
    commit: (commit) => {
      memory.commit(commit)
      const { id, kind, rootId, events } = commit
      if (rootId === null) return
      const n = chain.length + 1
      lines.push({ type: 'commit', pid: 1, id, kind, rootId, events, sent: n * 10, at: n * 10 + 5 })
      chain.push({ rootId, n, id, kind, seq: memory.lastSeq(rootId), count: events.length })
    },
  }
  const effects: CountedEffect[] = []
  const pay = simpleTool(
    (_, { idempotencyKey }) => {
      effects.push({ group: '', key: idempotencyKey, name: 'pay', pid: 1 })
      return 'paid'
    },
    { effect: 'effectful' },
  )
  const model = scriptedModel([{ calls: [{ name: 'pay', input: {} }] }, 'done'])
  const runtime = createRuntime({ store })
  await runtime.run(agent({ name: 'clerk', instructions: '', model, tools: { pay } }), 'go').result
  const trees = readTrees(memory).map((tree) => ({ ...tree, events: tree.events }))
  await runtime.close()
  return { lines, chain, trees, effects }
}
