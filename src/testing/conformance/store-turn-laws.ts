import assert from 'node:assert/strict'
import type { RunnableQuery } from '../../core/graph/reader.ts'
import type { Id, Node } from '../../core/graph/rows.ts'
import type { Store } from '../../core/store/store.ts'
import { idsOf, type Law } from './store-read-laws.ts'
import { commitOf, conversationRow, next, nodeRow, placeIn, treeCommit, turnRow } from './store-rows.ts'

/** Laws about the turns that owners take with their runnable nodes. */
export const turnLaws: readonly Law[] = [
  [
    'runnable nodes come of each owner in turn, its oldest first, trees without an owner being one owner',
    async (store, reopen) => {
      await flood(store, 'ann', 40)
      await putTree(store, { root: 'b', owner: 'bo', nodes: ['b-0', 'b-1'] })
      await putTree(store, { root: 'c', owner: 'cy', nodes: ['c-0'] })
      await putTree(store, { root: 'd', owner: 'cy', nodes: ['d-0'], createdAt: 50 })
      await putTree(store, { root: 'x', owner: null, nodes: ['x-0'] })
      await putTree(store, { root: 'y', owner: null, nodes: ['y-0'], createdAt: 5 })

      for (const open of [() => store, reopen]) {
        const runnable = runnableIn(await open())
        const turns = ['y-0', 'ann-0', 'b-0', 'd-0', 'x-0', 'ann-1', 'b-1', 'c-0', 'ann-2', 'ann-3']
        for (const limit of [0, 1, 3, 4, 7, 10]) assert.deepEqual(await runnable({ limit }), turns.slice(0, limit))
        assert.equal((await runnable({ limit: 99 })).length, 46)
        assert.equal((await runnable({ limit: Number.MAX_SAFE_INTEGER })).length, 46)
      }
    },
  ],
  [
    'the turn goes on after the owner who was served last, and round',
    async (store) => {
      await flood(store, 'bo', 9)
      await putTree(store, { root: 'd', owner: 'dee', nodes: ['d-0', 'd-1'] })
      await putTree(store, { root: 'x', owner: null, nodes: ['x-0', 'x-1'] })
      const runnable = runnableIn(store)

      for (const [after, turns] of [
        [undefined, ['x-0', 'bo-0', 'd-0', 'x-1']],
        [null, ['bo-0', 'd-0', 'x-0', 'bo-1']],
        ['ann', ['bo-0', 'd-0', 'x-0', 'bo-1']],
        ['bo', ['d-0', 'x-0', 'bo-0', 'd-1']],
        ['cy', ['d-0', 'x-0', 'bo-0', 'd-1']],
        ['dee', ['x-0', 'bo-0', 'd-0', 'x-1']],
        ['z', ['x-0', 'bo-0', 'd-0', 'x-1']],
      ] as const) {
        const place = after === undefined ? {} : { after }
        for (const limit of [1, 2, 3, 4]) {
          assert.deepEqual(await runnable({ limit, ...place }), turns.slice(0, limit), `after ${after}, ${limit}`)
        }
      }
    },
  ],
  [
    'ten claims of one node each serve all owners',
    async (store) => {
      await flood(store, 'ann', 20)
      await putTree(store, { root: 'b', owner: 'bo', nodes: ['b-0', 'b-1', 'b-2'] })
      await putTree(store, { root: 'c', owner: 'cy', nodes: ['c-0', 'c-1'] })

      assert.deepEqual(await claimOneByOne(store, 10), [
        ...['ann-0', 'b-0', 'c-0', 'ann-1', 'b-1', 'c-1', 'ann-2', 'b-2', 'ann-3', 'ann-4'],
      ])
      assert.deepEqual((await store.archive?.verify())?.findings ?? [], [])
    },
  ],
  [
    'kinds, agents, blockers and times are asked for before the turn is taken',
    async (store) => {
      await flood(store, 'ann', 5)
      await putTree(store, { root: 'b', owner: 'bo', nodes: ['b-0'], fields: { kind: 'note' } })
      await putTree(store, { root: 'c', owner: 'cy', nodes: ['c-0'], agent: 'writer' })
      await putTree(store, { root: 'd', owner: 'dee', nodes: ['d-0'], fields: { wakeAt: 5001 } })
      await putTree(store, { root: 'e', owner: 'eve', nodes: ['e-0'], fields: { blockers: 1 } })
      const runnable = runnableIn(store)

      assert.deepEqual(await runnable({ limit: 4 }), ['ann-0', 'b-0', 'c-0', 'ann-1'])
      assert.deepEqual(await runnable({ limit: 4, now: 5001 }), ['ann-0', 'b-0', 'c-0', 'd-0'])
      assert.deepEqual(await runnable({ limit: 3, kinds: ['task'] }), ['ann-0', 'c-0', 'ann-1'])
      assert.deepEqual(await runnable({ limit: 3, agents: ['editor'], after: 'ann' }), ['b-0', 'ann-0', 'ann-1'])
      assert.deepEqual(await runnable({ limit: 2, agents: ['writer'] }), ['c-0'])
      assert.deepEqual(await runnable({ limit: 2, agents: [] }), [])
    },
  ],
  [
    'a runnable node of a child waits in the turn of the owner of its tree, also when it was imported',
    async (store) => {
      const place = { ...placeIn('b-child'), rootId: 'b' }
      const child = conversationRow('b-child', { rootId: 'b', type: 'sub_agent', depth: 1, owner: 'somebody else' })
      await flood(store, 'ann', 3)
      await putTree(store, { root: 'b', owner: 'bo', nodes: [] })
      const below = { conversations: [child], turns: [turnRow(place)], nodes: [nodeRow(place, 'b-below')] }
      await store.commit(commitOf('b', below))
      const runnable = runnableIn(store)
      const turns = ['ann-0', 'b-below', 'ann-1', 'ann-2']
      assert.deepEqual(await runnable({}), turns)

      const { archive } = store
      if (archive === undefined) return
      const over = [place, placeIn('b')].map((at) => next(turnRow(at), { state: 'ended', endedAt: 1 }))
      await store.commit(commitOf('b', { turns: over }))
      const whole = await archive.read('b')
      assert.ok(whole !== undefined)
      await archive.remove('b', { at: 1, reason: 'test' })
      assert.deepEqual(await runnable({}), ['ann-0', 'ann-1', 'ann-2'])
      await archive.restore(whole)
      assert.deepEqual(await runnable({}), turns)
      assert.deepEqual(await runnable({ limit: 1, after: 'ann' }), ['b-below'])
      assert.deepEqual((await archive.verify()).findings, [])
    },
  ],
]

type Runnable = (query: Partial<RunnableQuery>) => Promise<Id[]>

function runnableIn(store: Store): Runnable {
  const all = { now: 5000, limit: 99, kinds: ['task', 'note'], agents: ['editor', 'writer'] }
  return async (query) => idsOf(await store.runnable({ ...all, ...query }))
}

/** Claims the next node so many times, as an engine with one worker does. */
async function claimOneByOne(store: Store, times: number): Promise<Id[]> {
  const claimed: Id[] = []
  let last: { readonly after?: string | null } = {}
  for (let left = times; left > 0; left--) {
    const [node] = await store.runnable({ now: 5000, limit: 1, kinds: ['task'], agents: ['editor'], ...last })
    assert.ok(node !== undefined)
    claimed.push(node.id)
    last = { after: (await store.tree(node.rootId)).conversation(node.rootId)?.owner ?? null }
    const running = next(node, { state: 'running', engineId: 'engine-0', epoch: 1 })
    await store.commit(commitOf(node.rootId, { nodes: [running] }))
  }
  return claimed
}

/** An owner with many trees, each with one runnable node: `ann-0` is the oldest. */
async function flood(store: Store, owner: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await putTree(store, { root: `${owner}-tree-${n}`, owner, nodes: [`${owner}-${n}`], createdAt: 10 + n })
  }
}

interface TreeFacts {
  readonly root: Id
  readonly owner: string | null
  readonly nodes: readonly Id[]
  readonly agent?: string
  readonly createdAt?: number
  readonly fields?: Partial<Node>
}

async function putTree(store: Store, facts: TreeFacts): Promise<void> {
  const { root, owner, nodes, agent = 'editor', createdAt = 100, fields = {} } = facts
  const place = placeIn(root)
  const rows = nodes.map((id, at) => nodeRow(place, id, { createdAt: createdAt + at, ordinal: at, ...fields }))
  const home = conversationRow(root, { owner, agent: { name: agent, hash: 'h' }, path: [agent] })
  await store.commit(treeCommit(root, { conversations: [home], nodes: rows }))
}
