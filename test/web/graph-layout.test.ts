import { expect, test } from 'vitest'
import type { GraphNode } from '../../web/data/types.ts'
import { type Column, nearTheirHosts } from '../../web/pages/graph/columns.ts'
import { layoutColumns } from '../../web/pages/graph/layout.ts'
import { type ColumnShape, NODE } from '../../web/pages/graph/places.ts'

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

test('columns of one depth stand below each other, and lines to them cross no node', () => {
  const tasks = ['b', 'c', 'd']
  const host = { id: 'host', nodes: ['a', ...tasks], edges: tasks.map((to) => ({ from: 'a', to })), from: null }
  const children = tasks.map((task) => line(`child ${task}`, [`${task}1`, `${task}2`], task))
  const shapes: ColumnShape[] = [host, ...children, line('grandchild', ['x', 'y'], 'b1')]
  const { columns, nodes, routes } = layoutColumns(shapes)
  const placeOf = (id: string) => columns[id] ?? { x: 0, y: 0, width: 0, height: 0 }

  expect(Object.keys(routes)).toEqual([...children.map(({ id }) => id), 'grandchild'])
  for (const { id, nodes: own } of shapes) {
    for (const { x, y } of own.map((node) => nodes[node] ?? { x: 0, y: 0 })) {
      const box = { left: placeOf(id).x + x, top: placeOf(id).y + y }
      for (const route of Object.values(routes)) expect(passes(route, box), `${route} ${id}`).toBe(false)
    }
  }
  const [first, second, third] = children.map(({ id }) => placeOf(id))
  expect([second?.x, third?.x]).toEqual([first?.x, first?.x])
  expect(second?.y).toBeGreaterThan((first?.y ?? 0) + (first?.height ?? 0))
  expect(third?.y).toBeGreaterThan((second?.y ?? 0) + (second?.height ?? 0))
})

/** True where a route of horizontal and vertical lines goes through the inside of a node. */
function passes(route: string, { left, top }: { readonly left: number; readonly top: number }): boolean {
  const [from = '', ...steps] = route.slice(1).split(' ')
  let [x = 0, y = 0] = from.split(',').map(Number)
  return steps.some((step) => {
    const [x0, y0] = [x, y]
    if (step.startsWith('H')) x = Number(step.slice(1))
    else y = Number(step.slice(1))
    const isAcross = Math.max(x0, x) > left && Math.min(x0, x) < left + NODE.width
    return isAcross && Math.max(y0, y) > top && Math.min(y0, y) < top + NODE.height
  })
}

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
