import { describe, expect, test } from 'vitest'
import type { RunEvent } from '../../index.ts'
import { painter } from '../terminal/paint.ts'
import { widthOf } from '../terminal/width.ts'
import { layout } from './layout.ts'
import { WatchedTree } from './run-tree.ts'
import { treeRows } from './tree-rows.ts'

/** A host with some subagents, of whom the first have ended. */
function host({ children, ended, name = 'scout' }: { children: number; ended: number; name?: string }): WatchedTree {
  const tree = new WatchedTree('host')
  take(tree, { runId: 'host', path: ['host'], type: 'run-start', agent: 'host' })
  for (let at = 0; at < children; at++) {
    const place = { runId: `child ${at}`, parentId: 'host', path: ['host', name] }
    const child = { childRunId: place.runId, childConversationId: `talk ${at}`, agent: name, tool: 'ask' }
    take(tree, { runId: 'host', path: ['host'], type: 'delegation-start', ...child })
    take(tree, { ...place, type: 'run-start', agent: name })
    take(tree, { ...place, type: 'usage', model: 'test/model', usage: { ...NONE, inputTokens: 10 } })
    const status = at === 0 ? 'failed' : 'completed'
    if (at < ended) take(tree, { ...place, type: 'run-end', outcome: { status, error: null } })
  }
  return tree
}

const ASKED = { path: ['host', 'scout'], type: 'message', role: 'user', calls: [], state: 'finished' }
const NONE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

let seq = 0

function take(tree: WatchedTree, event: object): void {
  tree.take({ seq: ++seq, at: 0, conversationId: 'c', nodeId: null, parentId: null, ...event } as RunEvent)
}

function lines(tree: WatchedTree, most: number, columns = 80): string[] {
  const doing = () => ({ text: 'thinking', mood: 'works' }) as const
  const rows = treeRows([tree], { doing, now: 1_000, most })
  return layout(rows, { paint: painter({}, {}), columns }).map(({ text }) => text)
}

describe('the rows of a tree', () => {
  test('are one for every run, while there is room', () => {
    const shown = lines(host({ children: 3, ended: 2 }), 10)

    expect(shown.length).toBe(4)
    expect(shown[1]).toMatch(/^├─ ✗ scout {2}failed/)
    expect(shown[3]).toMatch(/^└─ ● scout {2}thinking/)
  })

  test('tell subagents of one name apart by what they were asked', () => {
    const tree = host({ children: 2, ended: 0 })
    const asked = (at: number, content: string) =>
      take(tree, { ...ASKED, nodeId: `01b8dac5-b400-7000-8000-0000${seq}`, runId: `child ${at}`, content })
    asked(0, 'Look at the sky')
    asked(0, 'and at the sea')
    asked(1, '{"topic":"the sea","deep":2}')
    const [, first = '', second = ''] = lines(tree, 10)

    expect(first).toMatch(/^├─ ● scout: Look at the sky {2}thinking/)
    expect(second).toMatch(/^└─ ● scout: the sea, 2 +thinking/)
  })

  test('say what a limit refused, once for each limit', () => {
    const tree = host({ children: 1, ended: 1 })
    const budget = { runId: 'host', path: ['host'], type: 'budget', limit: 'children', message: 'Refused.' }
    for (let at = 0; at < 3; at++) take(tree, budget)
    take(tree, { ...budget, limit: 'tokens', message: 'Spent.' })
    expect(lines(tree, 10).at(-1)).toBe('   3 times: Refused.')
  })

  test('show the end of what is being said', () => {
    const tree = host({ children: 0, ended: 0 })
    const text = `says: ${'word '.repeat(50)}end`
    const rows = treeRows([tree], { doing: () => ({ text, mood: 'works', label: 6 }), now: 1_000, most: 5 })
    const [line = ''] = layout(rows, { paint: painter({}, {}), columns: 60 }).map((one) => one.text)

    expect(line).toMatch(/^● host {2}says: ….*word end +1\.0 s$/)
    expect(widthOf(line)).toBeLessThan(60)
  })

  test('fold what has ended where there is not, and say how many and how', () => {
    const shown = lines(host({ children: 9, ended: 7 }), 5)

    expect(shown.length).toBe(4)
    expect(shown.at(-1)).toMatch(/^└─ ✗ 7 ended {2}1 failed, 6 completed +70 tok$/)
  })

  test('say how many are missing where even that is not enough', () => {
    const shown = lines(host({ children: 30, ended: 10 }), 6)

    expect(shown.length).toBe(6)
    expect(shown.at(-1)).toBe('… and 17 more lines')
  })

  test('are never wider than the terminal, whatever the names are', () => {
    for (const columns of [20, 34, 60, 80, 200]) {
      for (const name of ['scout', '日本語'.repeat(20), 'x'.repeat(100)]) {
        for (const line of lines(host({ children: 3, ended: 1, name }), 10, columns)) {
          expect(widthOf(line)).toBeLessThan(columns)
        }
      }
    }
  })
})
