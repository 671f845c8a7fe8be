import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Id } from '../../src/core/graph/rows.ts'
import { childIds, planSpawn, type SpawnOutcome, type SpawnRequest } from '../../src/core/rules/delegation/spawn.ts'
import type { Claim } from '../../src/core/rules/turn/claim.ts'
import { planRecover } from '../../src/core/rules/turn/result.ts'
import { Graph, spawnRequest } from '../support/graph.ts'
import { eventsOfType } from '../support/rows.ts'
import { type Rows, stores } from '../support/stores.ts'

describe.each(stores)('a spawn that is repeated, on %s', (_, create) => {
  let rows: Rows
  let graph: Graph
  let rootId: Id
  let turnId: Id
  let task: Id

  beforeEach(async () => {
    rows = create()
    graph = new Graph(rows.open())
    rootId = await graph.conversation()
    const made = await graph.mutate(rootId, (m) => {
      const call = { id: 'call', name: 'ask', input: { message: 'x' } }
      const task = m.createNode({ kind: 'task', effect: 'idempotent', input: { call } }).id
      const next = m.createNode({ kind: 'agent_message' }).id
      m.createEdge(task, next, 'sequence')
      return { task, turnId: m.runId }
    })
    task = made.task
    turnId = made.turnId
  })

  afterEach(() => rows.drop())

  test('under a new claim finds the child it made before: one link, one child', async () => {
    const first = await spawn(await graph.claim(task), { mode: 'called' })
    await lose()

    const second = await spawn(await graph.claim(task), { mode: 'called' })

    expect(linkOf(second).id).toBe(linkOf(first).id)
    expect(graph.store.linksOf(turnId)).toHaveLength(1)
    expect(graph.turn(turnId).account).toMatchObject({ children: 1, live: 1 })
    expect(eventsOfType(graph.store, rootId, 'delegation-start')).toHaveLength(1)
  })

  test('under the lost claim makes nothing', async () => {
    const claim = await graph.claim(task)
    await lose()

    expect(await spawn(claim)).toEqual({ lost: true })

    expect(graph.store.linksOf(turnId)).toEqual([])
    expect(eventsOfType(graph.store, rootId, 'late-result')).toHaveLength(1)
  })

  test('under a claim that another has taken over makes nothing, and tells it', async () => {
    const claim = await graph.claim(task)
    await lose()
    const heir = new Graph(rows.open(), { engineId: 'engine-2' })
    await heir.claim(task)

    expect(await spawn(claim)).toEqual({ lost: true })
    expect(await graph.end(claim, { state: 'finished', output: { content: 'stale' } })).toBe(false)

    expect(graph.node(task)).toMatchObject({ state: 'running', engineId: 'engine-2', epoch: 3, output: {} })
    expect(graph.store.linksOf(turnId)).toEqual([])
    expect(eventsOfType(graph.store, rootId, 'late-result')).toHaveLength(2)
  })

  test('under its own older claim makes nothing either', async () => {
    const claim = await graph.claim(task)
    await lose()
    await graph.claim(task)

    expect(await spawn(claim)).toEqual({ lost: true })

    expect(graph.node(task)).toMatchObject({ state: 'running', epoch: 3 })
  })

  test('waits again for a child that still works', async () => {
    const first = linkOf(await spawn(await graph.claim(task)))
    expect(graph.node(task)).toMatchObject({ state: 'waiting', engineId: null, wait: { refs: [first.id] } })
    await unpark()

    const second = linkOf(await spawn(await graph.claim(task)))

    expect(second.id).toBe(first.id)
    expect(graph.node(task)).toMatchObject({ state: 'waiting', wait: { refs: [first.id] } })
  })

  test('takes the answer of a child that has ended meanwhile, and the turn goes on', async () => {
    const link = linkOf(await spawn(await graph.claim(task)))
    await unpark()
    const entry = graph.turn(link.id).entryNodeId
    await graph.end(await graph.claim(entry), { state: 'finished', output: { content: 'found' } })
    expect(graph.node(task).state).toBe('pending')

    await spawn(await graph.claim(task))

    expect(graph.node(task)).toMatchObject({ state: 'finished', output: { content: expect.stringContaining('found') } })
    expect(graph.store.link(link.id)).toMatchObject({ deliveredTo: task, outcome: { status: 'completed' } })
    expect(graph.store.openNodes(turnId)).toMatchObject([{ kind: 'agent_message', state: 'pending', blockers: 0 }])
  })

  test('with another question is refused: a child answers the one it was asked', async () => {
    await spawn(await graph.claim(task), { mode: 'called' })
    await lose()

    const changed = await spawn(await graph.claim(task), { mode: 'called', input: { message: 'something else' } })

    expect(changed).toMatchObject({ refused: 'changed' })
    expect(graph.store.linksOf(turnId)).toHaveLength(1)
  })

  test('twice at the same time makes one child', async () => {
    const claim = await graph.claim(task)
    const other = new Graph(rows.open())

    const spawned = await Promise.all([spawn(claim), spawnOn(other, claim)])

    expect(spawned.filter((result) => 'link' in result)).toHaveLength(1)
    expect(spawned.filter((result) => 'lost' in result)).toHaveLength(1)
    expect(graph.store.linksOf(turnId)).toHaveLength(1)
  })

  test('has ids that depend on the task and its place alone', () => {
    expect(childIds(task, 0)).toEqual(childIds(task, 0))
    const ids = [childIds(task, 0), childIds(task, 1)].flatMap(({ turn, conversation, nodes }) => [
      turn,
      conversation,
      ...nodes,
    ])
    expect(new Set(ids).size).toBe(ids.length)
  })

  function spawn(claim: Claim, request: Partial<SpawnRequest> = {}): Promise<SpawnOutcome> {
    return spawnOn(graph, claim, request)
  }

  function spawnOn(on: Graph, claim: Claim, request: Partial<SpawnRequest> = {}): Promise<SpawnOutcome> {
    return on.commit('spawn', rootId, (draft) => planSpawn(draft, spawnRequest(claim, request)))
  }

  function linkOf(spawned: SpawnOutcome) {
    if ('link' in spawned) return spawned.link
    throw new Error(`no child: ${JSON.stringify(spawned)}`)
  }

  async function lose(): Promise<void> {
    const lost = { engineId: graph.engineId, reason: 'Gone.' }
    await graph.commit('recover', rootId, (draft) => planRecover(draft, task, lost))
  }

  /** As if the task had not been parked yet when its process died. */
  async function unpark(): Promise<void> {
    await graph.commit('recover', rootId, (draft) => {
      draft.changeNode(draft.node(task), { state: 'pending', wait: null })
    })
  }
})
