import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConflictError } from '../../src/base/error.ts'
import { planApproval } from '../../src/graph/approve.ts'
import { planCancel } from '../../src/graph/cancel.ts'
import { Draft } from '../../src/graph/draft.ts'
import type { Id, NodeState } from '../../src/graph/rows.ts'
import { memoryStore } from '../../src/store/memory.ts'
import { nodeRow, placeIn } from '../../src/testing/store-rows.ts'
import { Graph } from '../support/graph.ts'
import { eventsOfType } from '../support/rows.ts'
import { type Rows, stores } from '../support/stores.ts'

const STATES: readonly NodeState[] = [
  'pending',
  'awaiting_approval',
  'running',
  'waiting',
  'finished',
  'errored',
  'rejected',
  'skipped',
  'stopped',
  'uncertain',
]

const LEGAL: ReadonlySet<string> = new Set([
  'awaiting_approval -> pending',
  'awaiting_approval -> rejected',
  'awaiting_approval -> stopped',
  'awaiting_approval -> skipped',
  'pending -> running',
  'pending -> skipped',
  'pending -> stopped',
  'running -> finished',
  'running -> errored',
  'running -> rejected',
  'running -> stopped',
  'running -> uncertain',
  'running -> waiting',
  'running -> pending',
  'waiting -> finished',
  'waiting -> errored',
  'waiting -> rejected',
  'waiting -> stopped',
  'waiting -> uncertain',
  'waiting -> pending',
])

describe('cybros A32: the ways between states', () => {
  const ways = STATES.flatMap((from) => STATES.filter((to) => to !== from).map((to) => [from, to] as const))

  test.each(ways.filter(([from, to]) => LEGAL.has(`${from} -> ${to}`)))('%s may become %s', (from, to) => {
    const draft = new Draft(memoryStore(), 0)

    const changed = draft.changeNode(nodeRow(placeIn('root'), 'node', { state: from }), { state: to })

    expect(changed.state).toBe(to)
  })

  test.each(ways.filter(([from, to]) => !LEGAL.has(`${from} -> ${to}`)))('%s never becomes %s', (from, to) => {
    const draft = new Draft(memoryStore(), 0)
    const node = nodeRow(placeIn('root'), 'node', { state: from })

    expect(() => draft.changeNode(node, { state: to })).toThrow(`is ${from}: it cannot become ${to}`)

    expect(draft.isEmpty).toBe(true)
  })
})

describe.each(stores)('cybros A32: two writers on %s', (_, create) => {
  let rows: Rows
  let one: Graph
  let two: Graph
  let conversationId: Id

  beforeEach(async () => {
    rows = create()
    one = new Graph(rows.open(), { kinds: { work: {} }, engineId: 'engine-1' })
    two = new Graph(rows.open(), { kinds: { work: {} }, engineId: 'engine-2' })
    conversationId = await one.conversation()
  })

  afterEach(() => rows.drop())

  test('two claims of one node have one winner', async () => {
    const nodeId = await one.mutate(conversationId, (m) => m.createNode({ kind: 'work' }).id)

    const claims = await Promise.all([one.tryClaim(nodeId), two.tryClaim(nodeId)])

    const won = claims.filter((claim) => claim !== undefined)
    expect(won).toHaveLength(1)
    expect(one.node(nodeId)).toMatchObject({ state: 'running', epoch: 1, engineId: won[0]?.engineId })
  })

  test('an approval and a denial at the same time have one winner, and the other is told', async () => {
    const nodeId = await one.mutate(
      conversationId,
      (m) => m.createNode({ kind: 'work', state: 'awaiting_approval' }).id,
    )

    const answers = await Promise.allSettled([answer(one, nodeId, true), answer(two, nodeId, false)])

    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const lost = answers.find((given) => given.status === 'rejected')
    expect(lost?.reason).toBeInstanceOf(ConflictError)
    expect(eventsOfType(one.store, conversationId, 'approval-answer')).toHaveLength(1)
  })

  test('a result and a cancel at the same time leave one end, and the turn ends once', async () => {
    const { nodeId, turnId } = await one.mutate(conversationId, (m) => {
      return { nodeId: m.createNode({ kind: 'agent_message' }).id, turnId: m.turnId }
    })
    const claim = await one.claim(nodeId)

    await Promise.all([
      one.end(claim, { state: 'finished', output: { content: 'done' } }),
      two.commit('cancel', conversationId, (draft) => planCancel(draft, turnId, { cause: 'cancelled', reason: null })),
    ])

    expect(one.node(nodeId).state).toBe('finished')
    expect(one.turn(turnId).state).toBe('ended')
    const ends = eventsOfType(one.store, conversationId, 'run-end').filter((event) => event.turnId === turnId)
    expect(ends).toHaveLength(1)
  })

  function answer(graph: Graph, nodeId: Id, allowed: boolean): Promise<void> {
    return graph.commit('answer', conversationId, (draft) =>
      planApproval(draft, nodeId, { allowed, by: 'somebody', reason: null }),
    )
  }
})
