import { expect, test } from 'vitest'
import type { GraphNode } from '../../web/data/types.ts'
import { type Column, nearTheirHosts } from '../../web/pages/graph/columns.ts'
import { layoutColumns } from '../../web/pages/graph/layout.ts'
import type { ColumnShape } from '../../web/pages/graph/places.ts'

const line = (id: string, nodes: readonly string[], from: string | null = null): ColumnShape => ({
  id,
  nodes,
  edges: nodes.slice(1).map((to, at) => ({ from: nodes[at] ?? '', to })),
  from,
})

test('a node stands below the one before it, and a child beside the task that began it', () => {
  const { columns, nodes } = layoutColumns([line('host', ['a', 'b', 'c']), line('child', ['d', 'e'], 'c')])

  expect(nodes['b']?.y).toBeGreaterThan(nodes['a']?.y ?? 0)
  expect(nodes['c']?.y).toBeGreaterThan(nodes['b']?.y ?? 0)
  expect(columns['child']?.x).toBeGreaterThan((columns['host']?.x ?? 0) + (columns['host']?.width ?? 0))
  expect((columns['child']?.y ?? 0) + (nodes['d']?.y ?? 0)).toBe((columns['host']?.y ?? 0) + (nodes['c']?.y ?? 0))
})

test('tasks without an edge between them stand side by side', () => {
  const { nodes } = layoutColumns([
    {
      id: 'host',
      nodes: ['a', 'b', 'c'],
      edges: [
        { from: 'a', to: 'b' },
        { from: 'a', to: 'c' },
      ],
      from: null,
    },
  ])
  expect(nodes['b']?.y).toBe(nodes['c']?.y)
  expect(Math.abs((nodes['b']?.x ?? 0) - (nodes['c']?.x ?? 0))).toBeGreaterThan(100)
})

test('a column without nodes has its head', () => {
  expect(layoutColumns([line('empty', [])]).columns['empty']).toMatchObject({ x: 0, y: 0 })
})

test('a subagent stands right behind the one that asked it', () => {
  const column = (id: string, from: string | null): Column => ({
    id,
    from,
    agent: id,
    role: '',
    isFork: false,
    nodes: [{ id: `node of ${id}` } as GraphNode],
    edges: [],
    versions: {},
  })
  const found = nearTheirHosts([
    column('lead', null),
    column('fixer', 'node of lead'),
    column('writer', 'node of lead'),
    column('tester', 'node of fixer'),
  ])
  expect(found.map(({ id }) => id)).toEqual(['lead', 'fixer', 'tester', 'writer'])
})
