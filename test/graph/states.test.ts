import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConflictError } from '../../src/core/base/error.ts'
import { Draft } from '../../src/core/graph/draft.ts'
import type { Id, NodeState } from '../../src/core/graph/rows.ts'
import { childIds, planSpawn } from '../../src/core/rules/delegation/spawn.ts'
import { planApproval } from '../../src/core/rules/turn/approve.ts'
import { planCancel } from '../../src/core/rules/turn/cancel.ts'
import type { Claim } from '../../src/core/rules/turn/claim.ts'
import { planRecover, planRetry } from '../../src/core/rules/turn/result.ts'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import { nodeRow, placeIn } from '../../src/testing/conformance/store-rows.ts'
import { Graph, spawnRequest } from '../support/graph.ts'
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

const SAID = { state: 'finished', output: { content: 'done' } } as const

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
  'running -> awaiting_approval',
  'waiting -> finished',
  'waiting -> errored',
  'waiting -> rejected',
  'waiting -> stopped',
  'waiting -> uncertain',
  'waiting -> pending',
])

describe('the ways between states', () => {
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

describe.each(stores)('two writers on %s', (_, create) => {
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
      return { nodeId: m.createNode({ kind: 'agent_message' }).id, turnId: m.runId }
    })
    const claim = await one.claim(nodeId)

    await Promise.all([
      one.end(claim, { state: 'finished', output: { content: 'done' } }),
      two.commit('cancel', conversationId, (draft) => planCancel(draft, turnId, { cause: 'cancelled', reason: null })),
    ])

    expect(one.node(nodeId).state).toBe('finished')
    expect(one.turn(turnId).state).toBe('ended')
    const ends = eventsOfType(one.store, conversationId, 'run-end').filter((event) => event.runId === turnId)
    expect(ends).toHaveLength(1)
  })

  test('one commit ends the running turn and the queued one behind it, and the third starts', async () => {
    const [running, second, third] = [
      await one.say('one', { conversationId }),
      await one.say('two', { conversationId }),
      await one.say('three', { conversationId }),
    ]

    await one.commit('cancel', conversationId, (draft) => {
      for (const { id } of [second, running]) planCancel(draft, id, { cause: 'cancelled', reason: null })
    })

    expect([running, second, third].map(({ id }) => one.turn(id).state)).toEqual(['ended', 'ended', 'running'])
    expect(one.store.conversation(conversationId)?.activeTurnId).toBe(third.id)
  })

  test('the last two nodes of a turn end at the same time, and the turn ends', async () => {
    const { ids, turnId } = await one.mutate(conversationId, (m) => {
      return {
        ids: [m.createNode({ kind: 'agent_message' }).id, m.createNode({ kind: 'agent_message' }).id],
        turnId: m.runId,
      }
    })
    const claims = [await one.claim(ids[0] ?? ''), await two.claim(ids[1] ?? '')] as const

    await Promise.all([one.end(claims[0], SAID), two.end(claims[1], SAID)])

    expect(one.turn(turnId)).toMatchObject({ state: 'ended', outcome: { status: 'completed' } })
  })

  test('two parents end at the same time, and their child is free', async () => {
    const { ids, child } = await one.mutate(conversationId, (m) => {
      const ids = [m.createNode({ kind: 'work' }).id, m.createNode({ kind: 'work' }).id]
      const child = m.createNode({ kind: 'work' }).id
      for (const id of ids) m.createEdge(id, child, 'dependency')
      return { ids, child }
    })
    const claims = [await one.claim(ids[0] ?? ''), await two.claim(ids[1] ?? '')] as const

    await Promise.all([one.end(claims[0], SAID), two.end(claims[1], SAID)])

    expect(one.node(child)).toMatchObject({ state: 'pending', blockers: 0 })
  })

  test('a node ends while an edge from it is made, and its child is not held for ever', async () => {
    const { a, b, turnId } = await one.mutate(conversationId, (m) => {
      const [a, b, c] = ['work', 'work', 'work'].map((kind) => m.createNode({ kind }).id) as [Id, Id, Id]
      m.createEdge(a, c, 'sequence')
      return { a, b, turnId: m.runId }
    })
    const claim = await one.claim(a)

    await Promise.all([one.end(claim, SAID), two.mutate(conversationId, (m) => m.createEdge(a, b, 'sequence'), turnId)])

    expect(one.node(b).blockers).toBe(0)
    expect(await one.tryClaim(b)).toBeDefined()
  })

  test('a retry and a cancel at the same time leave nothing pending', async () => {
    const { nodeId, turnId } = await lonelyNode()
    const claim = await one.claim(nodeId)

    await Promise.all([
      one.commit('retry', conversationId, (d) => planRetry(d, claim, { wakeAt: d.now + 1_000, error: 'overloaded' })),
      cancel(two, turnId),
    ])

    expect(one.node(nodeId).state).toBe('stopped')
    expect(one.turn(turnId).state).toBe('ended')
  })

  test('a recovery and a cancel at the same time leave nothing pending', async () => {
    const { nodeId, turnId } = await lonelyNode()
    const { engineId } = await one.claim(nodeId)

    await Promise.all([
      one.commit('recover', conversationId, (d) => planRecover(d, nodeId, { engineId, reason: 'Gone.' })),
      cancel(two, turnId),
    ])

    expect(one.node(nodeId).state).toBe('stopped')
    expect(one.turn(turnId).state).toBe('ended')
  })

  test('two children of one host end at the same time, and both are counted', async () => {
    const { task, turnId } = await one.mutate(conversationId, (m) => {
      const task = m.createNode({ kind: 'task', effect: 'pure' }).id
      return { task, turnId: m.runId }
    })
    const claim = await one.claim(task)
    const children = [await spawn(claim, 0), await spawn(claim, 1)]
    const entries = children.map((id) => one.turn(id).entryNodeId)
    const claims = [await one.claim(entries[0] ?? ''), await two.claim(entries[1] ?? '')] as const

    await Promise.all([one.end(claims[0], SAID), two.end(claims[1], SAID)])

    expect(one.turn(turnId).account).toMatchObject({ children: 2, live: 0 })
    expect(one.store.openLinks(turnId)).toEqual([])
  })

  function lonelyNode(): Promise<{ nodeId: Id; turnId: Id }> {
    return one.mutate(conversationId, (m) => {
      return { nodeId: m.createNode({ kind: 'agent_message' }).id, turnId: m.runId }
    })
  }

  async function spawn(claim: Claim, ordinal: number): Promise<Id> {
    const request = spawnRequest(claim, { ids: childIds(claim.nodeId, ordinal), mode: 'called' })
    const spawned = await one.commit('spawn', conversationId, (draft) => planSpawn(draft, request))
    return 'link' in spawned ? spawned.link.id : ''
  }

  function cancel(graph: Graph, turnId: Id): Promise<void> {
    return graph.commit('cancel', conversationId, (draft) =>
      planCancel(draft, turnId, { cause: 'cancelled', reason: null }),
    )
  }

  function answer(graph: Graph, nodeId: Id, allowed: boolean): Promise<void> {
    return graph.commit('answer', conversationId, (draft) =>
      planApproval(draft, nodeId, { allowed, by: 'somebody', reason: null }),
    )
  }
})
