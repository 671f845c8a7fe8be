import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConflictError, InputError } from '../../src/core/base/error.ts'
import type { EdgeType, Id, NodeState } from '../../src/core/graph/rows.ts'
import { planApproval } from '../../src/core/rules/turn/approve.ts'
import { planCancel } from '../../src/core/rules/turn/cancel.ts'
import type { NodeEnd } from '../../src/core/rules/turn/end-node.ts'
import { planRecover } from '../../src/core/rules/turn/result.ts'
import { Graph } from '../support/graph.ts'
import { eventsOfType } from '../support/rows.ts'
import { type Rows, stores } from '../support/stores.ts'

const ENDS: readonly NodeEnd['state'][] = ['finished', 'errored', 'rejected', 'skipped', 'stopped', 'uncertain']

describe.each(stores)('gating on %s', (_, create) => {
  let rows: Rows
  let graph: Graph
  let conversationId: Id

  beforeEach(async () => {
    rows = create()
    graph = new Graph(rows.open(), { kinds: { work: {}, gate: {} } })
    conversationId = await graph.conversation()
  })

  afterEach(() => rows.drop())

  describe('what a parent lets run', () => {
    test.each<[NodeState, EdgeType]>([
      ['pending', 'sequence'],
      ['pending', 'dependency'],
      ['awaiting_approval', 'sequence'],
      ['awaiting_approval', 'dependency'],
      ['running', 'sequence'],
      ['running', 'dependency'],
      ['waiting', 'sequence'],
      ['waiting', 'dependency'],
    ])('a parent that is %s holds a %s child back', async (state, type) => {
      const [parent, child] = await pair(type, state === 'awaiting_approval' ? state : 'pending')
      if (state === 'running' || state === 'waiting') await graph.claim(parent)
      if (state === 'waiting') await park(parent)

      expect(graph.node(parent).state).toBe(state)
      expect(graph.node(child)).toMatchObject({ state: 'pending', blockers: 1 })
      expect(await graph.tryClaim(child)).toBeUndefined()
    })

    test.each(ENDS)('a parent that ends %s lets a branch child be', async (state) => {
      const [parent, child] = await pair('branch')

      await endAs(parent, state)

      expect(graph.node(child)).toMatchObject({ state: 'pending', blockers: 0 })
      expect(await graph.tryClaim(child)).toBeDefined()
    })

    test.each<[NodeEnd['state'], EdgeType, NodeState]>([
      ['finished', 'sequence', 'pending'],
      ['finished', 'dependency', 'pending'],
      ['errored', 'sequence', 'pending'],
      ['errored', 'dependency', 'skipped'],
      ['rejected', 'sequence', 'pending'],
      ['rejected', 'dependency', 'skipped'],
      ['skipped', 'sequence', 'pending'],
      ['skipped', 'dependency', 'skipped'],
      ['uncertain', 'sequence', 'pending'],
      ['uncertain', 'dependency', 'skipped'],
      // Stopping never starts what comes after.
      ['stopped', 'sequence', 'stopped'],
      ['stopped', 'dependency', 'stopped'],
    ])('a parent that ends %s over a %s edge leaves its child %s', async (state, type, expected) => {
      const [parent, child] = await pair(type, state === 'rejected' ? 'awaiting_approval' : 'pending')

      await endAs(parent, state)

      expect(graph.node(parent).state).toBe(state)
      expect(graph.node(child).state).toBe(expected)
      expect((await graph.tryClaim(child)) !== undefined).toBe(expected === 'pending')
    })
  })

  describe('failure goes along dependencies', () => {
    test('B and C of A(errored) -> B -> C are skipped, each naming what blocked it, while a sequence child runs', async () => {
      const { a, b, c, after } = await graph.mutate(conversationId, (m) => {
        const [a, b, c, after] = ['work', 'work', 'work', 'work'].map((kind) => m.createNode({ kind }).id) as Four
        m.createEdge(a, b, 'dependency')
        m.createEdge(b, c, 'dependency')
        m.createEdge(a, after, 'sequence')
        return { a, b, c, after }
      })

      await graph.end(await graph.claim(a), { state: 'errored', failure: { code: 'kind', message: 'broke' } })

      expect(graph.node(b)).toMatchObject({ state: 'skipped', failure: { code: 'blocked_by_failed_dependencies' } })
      expect(graph.node(b).failure?.message).toContain(`${a} (errored) over a dependency edge`)
      expect(graph.node(c).failure?.message).toContain(`${b} (skipped) over a dependency edge`)
      expect(await graph.tryClaim(after)).toBeDefined()
    })

    test('a child of two skipped parents is skipped once and releases what follows it once', async () => {
      const { a, c, other, join } = await graph.mutate(conversationId, (m) => {
        const [a, b, c, other] = ['work', 'work', 'work', 'work'].map((kind) => m.createNode({ kind }).id) as Four
        const join = m.createNode({ kind: 'work' }).id
        m.createEdge(a, c, 'dependency')
        m.createEdge(a, b, 'dependency')
        m.createEdge(b, c, 'dependency')
        m.createEdge(c, join, 'sequence')
        m.createEdge(other, join, 'sequence')
        return { a, b, c, other, join }
      })

      await graph.end(await graph.claim(a), { state: 'errored' })

      expect(graph.node(c).state).toBe('skipped')
      expect(graph.node(join).blockers).toBe(1)
      expect(await graph.tryClaim(join)).toBeUndefined()
      const told = eventsOfType(graph.store, conversationId, 'node-state').filter(({ nodeId }) => nodeId === c)
      expect(told).toHaveLength(1)
      await graph.end(await graph.claim(other), { state: 'finished' })
      expect(await graph.tryClaim(join)).toBeDefined()
    })
  })

  describe('edges', () => {
    test('a circle, of whatever edges, and an edge to itself are refused, and nothing is written', async () => {
      const ids = await graph.mutate(conversationId, (m) => {
        const [a, b, c] = ['work', 'work', 'work'].map((kind) => m.createNode({ kind }).id) as Three
        m.createEdge(a, b, 'sequence')
        m.createEdge(b, c, 'branch')
        return { a, b, c, turnId: m.runId }
      })
      const before = graph.store.lastSeq(conversationId)

      const circle = graph.mutate(conversationId, (m) => m.createEdge(ids.c, ids.a, 'dependency'), ids.turnId)
      await expect(circle).rejects.toThrow(/circle/)
      const loop = graph.mutate(conversationId, (m) => m.createEdge(ids.a, ids.a, 'sequence'), ids.turnId)
      await expect(loop).rejects.toThrow(ConflictError)

      expect(graph.store.lastSeq(conversationId)).toBe(before)
      expect(graph.store.edgesFrom(ids.c)).toEqual([])
    })

    test('two edges that close a circle only together have one winner', async () => {
      const { a, b, turnId } = await loose()
      const other = new Graph(rows.open(), { kinds: { work: {}, gate: {} } })

      const made = await Promise.allSettled([
        graph.mutate(conversationId, (m) => m.createEdge(a, b, 'branch'), turnId),
        other.mutate(conversationId, (m) => m.createEdge(b, a, 'sequence'), turnId),
      ])

      expect(made.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    })

    test('an edge that comes too late to hold a node back is refused', async () => {
      const { a, b, turnId } = await loose()
      await graph.claim(b)

      const late = graph.mutate(conversationId, (m) => m.createEdge(a, b, 'sequence'), turnId)

      await expect(late).rejects.toThrow(/can no longer hold it back/)
    })

    test('the same edge twice is one edge and one blocker', async () => {
      const { a, b, turnId } = await loose()

      for (let time = 0; time < 2; time++) {
        await graph.mutate(conversationId, (m) => m.createEdge(a, b, 'dependency'), turnId)
      }

      expect(graph.store.edgesTo(b)).toHaveLength(1)
      expect(graph.node(b).blockers).toBe(1)
    })

    test('an edge to a node of another conversation is not found, and the store refuses it too', async () => {
      const { a, turnId } = await loose()
      const foreign = graph.turn((await graph.say('elsewhere')).id).entryNodeId

      const over = graph.mutate(conversationId, (m) => m.createEdge(a, foreign, 'sequence'), turnId)
      await expect(over).rejects.toThrow(/There is no node/)

      const around = graph.commit('mutate', conversationId, (draft) => {
        draft.addEdge(graph.node(a), graph.node(foreign), 'sequence')
        draft.touchTurn(turnId)
        draft.event(graph.turn(turnId), a, { type: 'warning', message: 'bypass' })
      })
      await expect(around).rejects.toThrow(ConflictError)
      expect(graph.store.edgesTo(foreign)).toHaveLength(1)
    })

    test('an edge that would hold a node of another turn back is refused: turns end on their own', async () => {
      const { a, turnId } = await loose()
      const queued = await graph.say('next', { conversationId })
      expect(queued.state).toBe('queued')

      const across = graph.mutate(conversationId, (m) => m.createEdge(a, queued.entryNodeId, 'sequence'), turnId)

      await expect(across).rejects.toThrow(/another turn/)
    })

    test('an edge from a node that has ended badly skips what depends on it', async () => {
      const { a, b, turnId } = await loose()
      await graph.end(await graph.claim(a), { state: 'errored' })

      await graph.mutate(conversationId, (m) => m.createEdge(a, b, 'dependency'), turnId)

      expect(graph.node(b).state).toBe('skipped')
    })
  })

  describe('nodes', () => {
    test('a kind that is not executable cannot be pending', async () => {
      const asked = graph.mutate(conversationId, (m) => m.createNode({ kind: 'user_message', state: 'pending' }))

      await expect(asked).rejects.toThrow(InputError)
      expect(graph.store.turnsOf(conversationId, { limit: 9 })).toHaveLength(1)
    })

    test('an unknown kind is refused by name', async () => {
      const asked = graph.mutate(conversationId, (m) => m.createNode({ kind: 'wrok' }))

      await expect(asked).rejects.toThrow(/no node kind "wrok".*work/)
    })

    test('the same key and request give the same node, another request is a conflict', async () => {
      const spec = { kind: 'work', input: { value: { n: 1 } }, idempotencyKey: 'first' } as const
      const made = await graph.mutate(conversationId, (m) => {
        const node = m.createNode(spec)
        expect(m.createNode(spec).id).toBe(node.id)
        return { id: node.id, turnId: m.runId }
      })

      const again = await graph.mutate(conversationId, (m) => m.createNode(spec).id, made.turnId)
      expect(again).toBe(made.id)

      const other = graph.mutate(
        conversationId,
        (m) => m.createNode({ ...spec, input: { value: { n: 2 } } }),
        made.turnId,
      )
      await expect(other).rejects.toThrow(ConflictError)
      expect(graph.store.nodesOf(made.turnId)).toHaveLength(1)
    })

    test('a turn that was asked to stop takes no more nodes', async () => {
      const { a, turnId } = await loose()
      await graph.claim(a)
      await cancel(turnId)

      const late = graph.mutate(conversationId, (m) => m.createNode({ kind: 'work' }), turnId)

      await expect(late).rejects.toThrow(/asked to stop/)
    })

    test('a mutation that puts nothing in makes no turn', async () => {
      await expect(graph.mutate(conversationId, () => undefined)).rejects.toThrow(InputError)

      expect(graph.store.turnsOf(conversationId, { limit: 9 })).toHaveLength(1)
    })
  })

  describe('how a turn may end', () => {
    test('a user message alone grows a pending reply', async () => {
      const turnId = await graph.mutate(conversationId, (m) => {
        m.createNode({ kind: 'user_message', content: 'hello' })
        return m.runId
      })

      const [user, reply] = graph.store.nodesOf(turnId)
      expect(reply).toMatchObject({ kind: 'agent_message', state: 'pending', purpose: 'answer' })
      expect(graph.store.edgesFrom(user?.id ?? '')).toMatchObject([{ to: reply?.id, type: 'sequence' }])
      expect(graph.turn(turnId).state).toBe('running')
    })

    test('a task that was the last grows a reply when it has ended', async () => {
      const { a, b, turnId } = await loose()

      await graph.end(await graph.claim(b), { state: 'finished' })
      expect(graph.store.nodesOf(turnId)).toHaveLength(2)
      await graph.end(await graph.claim(a), { state: 'errored' })

      expect(graph.store.nodesOf(turnId).at(-1)).toMatchObject({ kind: 'agent_message', state: 'pending' })
    })

    test('a stopped leaf grows a finished placeholder and no new work', async () => {
      const { a, turnId } = await loose()
      const claim = await graph.claim(a)

      await cancel(turnId, 'no longer wanted')
      await graph.end(claim, stopped('no longer wanted'))

      const last = graph.store.nodesOf(turnId).at(-1)
      expect(last).toMatchObject({ kind: 'agent_message', state: 'finished', preview: 'Stopped: no longer wanted' })
      expect(graph.turn(turnId)).toMatchObject({ state: 'ended', outcome: { status: 'cancelled' } })
      expect(graph.store.openNodes(turnId)).toEqual([])
    })

    test('a leaf that was stopped alone is no success', async () => {
      const { a, b, turnId } = await loose()
      await graph.end(await graph.claim(a), { state: 'finished' })

      await graph.end(await graph.claim(b), stopped('not this one'))

      expect(graph.turn(turnId)).toMatchObject({
        state: 'ended',
        outcome: { status: 'cancelled', error: { message: 'not this one' } },
      })
    })

    test('the leaf is the node that nothing follows, in whatever order the nodes were made', async () => {
      const { turnId, task, reply } = await graph.mutate(conversationId, (m) => {
        const reply = m.createNode({ kind: 'agent_message' }).id
        const task = m.createNode({ kind: 'work' }).id
        m.createEdge(task, reply, 'dependency')
        return { turnId: m.runId, task, reply }
      })

      await graph.end(await graph.claim(task), { state: 'finished', output: { content: 'found' } })
      await graph.end(await graph.claim(reply), { state: 'finished', output: { content: 'done' } })

      expect(graph.store.nodesOf(turnId)).toHaveLength(2)
      expect(graph.turn(turnId).outcome).toMatchObject({ status: 'completed', answerNodeId: reply })
    })

    test('a reply that depended on what failed is skipped, and the turn says so', async () => {
      const { turnId, task, reply } = await graph.mutate(conversationId, (m) => {
        const task = m.createNode({ kind: 'work' }).id
        const reply = m.createNode({ kind: 'agent_message' }).id
        m.createEdge(task, reply, 'dependency')
        return { turnId: m.runId, task, reply }
      })

      await graph.end(await graph.claim(task), { state: 'errored' })

      expect(graph.node(reply).state).toBe('skipped')
      expect(graph.turn(turnId).outcome).toMatchObject({
        status: 'failed',
        error: { code: 'blocked_by_failed_dependencies' },
      })
    })
  })

  type Three = [Id, Id, Id]
  type Four = [Id, Id, Id, Id]

  /** Two nodes of one turn with one edge, and a third that keeps the turn open. */
  function pair(type: EdgeType, state: 'pending' | 'awaiting_approval' = 'pending'): Promise<[Id, Id]> {
    return graph.mutate(conversationId, (m) => {
      const parent = m.createNode({ kind: 'work', state }).id
      const child = m.createNode({ kind: 'work' }).id
      m.createNode({ kind: 'gate' })
      m.createEdge(parent, child, type)
      return [parent, child]
    })
  }

  function loose(): Promise<{ a: Id; b: Id; turnId: Id }> {
    return graph.mutate(conversationId, (m) => {
      const [a, b] = ['work', 'work'].map((kind) => m.createNode({ kind }).id) as [Id, Id]
      return { a, b, turnId: m.runId }
    })
  }

  async function endAs(nodeId: Id, state: NodeEnd['state']): Promise<void> {
    if (state === 'skipped') return skip(nodeId)
    if (state === 'rejected' && graph.node(nodeId).state === 'awaiting_approval') return deny(nodeId)
    if (state === 'uncertain') return lose(nodeId)
    await graph.end(await graph.claim(nodeId), state === 'stopped' ? stopped('enough') : { state })
  }

  /** Failure comes to it from a node before it. */
  async function skip(nodeId: Id): Promise<void> {
    const { turnId } = graph.node(nodeId)
    const before = await graph.mutate(
      conversationId,
      (m) => {
        const before = m.createNode({ kind: 'work' }).id
        m.createEdge(before, nodeId, 'dependency')
        return before
      },
      turnId,
    )
    await graph.end(await graph.claim(before), { state: 'errored' })
  }

  function deny(nodeId: Id): Promise<void> {
    return graph.commit('answer', conversationId, (draft) =>
      planApproval(draft, nodeId, { allowed: false, by: 'user', reason: 'no' }),
    )
  }

  async function lose(nodeId: Id): Promise<void> {
    const { engineId } = await graph.claim(nodeId)
    await graph.commit('recover', conversationId, (draft) => planRecover(draft, nodeId, { engineId, reason: 'Gone.' }))
  }

  function park(nodeId: Id): Promise<unknown> {
    return graph.commit('spawn', conversationId, (draft) =>
      draft.changeNode(draft.node(nodeId), { state: 'waiting', engineId: null }),
    )
  }

  function cancel(turnId: Id, reason: string | null = null): Promise<void> {
    return graph.commit('cancel', conversationId, (draft) => planCancel(draft, turnId, { cause: 'cancelled', reason }))
  }

  function stopped(message: string): NodeEnd {
    return { state: 'stopped', failure: { code: 'stopped', message } }
  }
})
