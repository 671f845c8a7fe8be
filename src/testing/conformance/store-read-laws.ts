import assert from 'node:assert/strict'
import type { Commit } from '../../core/graph/commit.ts'
import { PLAIN_LANE } from '../../core/graph/lane.ts'
import type { Node } from '../../core/graph/rows.ts'
import type { Store } from '../../core/store/store.ts'
import {
  commitOf,
  conversationRow,
  edgeRow,
  engineRow,
  linkRow,
  next,
  nodeRow,
  outcomeOf,
  placeIn,
  treeCommit,
  turnRow,
  warningEvent,
} from './store-rows.ts'

/** A law that every store must keep, with its check on an empty store. */
export type Law = readonly [sentence: string, check: (store: Store, reopen: () => Promise<Store>) => Promise<void>]

const place = placeIn('root-a')

export const readLaws: readonly Law[] = [
  [
    'what history says of a lane, a turn and a node comes back as it was put, also after the store was opened anew',
    async (store, reopen) => {
      const lane = {
        from: { laneId: 'root-b', nodeId: 'node-9', last: -1 },
        newest: 'lane-1',
        before: 'lane-0',
        skips: [
          [0, 2],
          [5, 5],
        ] as const,
        fold: 3,
        archivedAt: 7,
      }
      const fold = { summaryId: 'node-8', upTo: -1, before: null, previous: 0 }
      const history = { after: -1, source: 'turn-0', merges: [{ laneId: 'lane-2', last: 4 }], fold }
      const marks = { replacedBy: 'node-1', excludedAt: 1, deletedAt: 2, stop: { at: 3, reason: 'enough' } }
      const conversation = conversationRow('root-a', { lane })
      const turn = turnRow(place, { history })
      const node = nodeRow(place, 'node-0', { marks, versionSet: 'set', retryOf: 'node-7', attempt: 2 })

      await store.commit(commitOf('root-a', { conversations: [conversation], turns: [turn], nodes: [node] }))

      for (const open of [() => store, reopen]) {
        const tree = await (await open()).tree('root-a')
        assert.deepEqual(tree.conversation('root-a'), conversation)
        assert.deepEqual(tree.turn(turn.id), turn)
        assert.deepEqual(tree.node('node-0'), node)
      }
    },
  ],
  [
    'who may run and who waits comes back as it was put, also after the store was opened anew',
    async (store, reopen) => {
      const waiting = ['link-1', 'link-2']
      const conversation = conversationRow('root-a', { places: [{ key: '__proto__', live: 2, waiting }] })
      const turn = turnRow(place, { tree: { limit: 3, live: 1, waiting: [place.turnId] } })
      const plain = linkRow(place, 'link-0')
      const limited = linkRow(place, 'link-1', {
        ordinal: 1,
        released: false,
        keyed: { key: '__proto__', limit: 2 },
        attempt: 2,
        retry: { most: 3, delayMs: 0 },
      })
      await store.commit(commitOf('root-a', { conversations: [conversation], turns: [turn], links: [plain, limited] }))

      for (const open of [() => store, reopen]) {
        const tree = await (await open()).tree('root-a')
        assert.deepEqual(tree.conversation('root-a'), conversation)
        assert.deepEqual(tree.turn(turn.id), turn)
        assert.deepEqual(tree.linksOf(turn.id), [plain, limited])
      }
    },
  ],
  [
    'rows come back as they were put',
    async (store, reopen) => {
      const commit = fullCommit()

      await store.commit(commit)

      for (const open of [() => store, reopen]) {
        const opened = await open()
        const tree = await opened.tree('root-a')
        assert.deepEqual(tree.conversation('root-a'), commit.conversations[0])
        assert.deepEqual(tree.turn(place.turnId), commit.turns[0])
        for (const node of commit.nodes) assert.deepEqual(tree.node(node.id), node)
        assert.deepEqual(tree.link('link-1'), commit.links[1])
        assert.equal(tree.body('hash-1'), 'a large text')
        assert.equal(tree.body('hash-2'), '')
        assert.deepEqual(await opened.engine('engine-0'), commit.engines[0])
      }
    },
  ],
  [
    'the root of every conversation, turn and node is found, and of nothing else',
    async (store, reopen) => {
      const inner = { ...placeIn('child'), rootId: 'root-a' }
      const child = conversationRow('child', { rootId: 'root-a', type: 'sub_agent', depth: 1 })
      await store.commit(fullCommit())
      const rows = { conversations: [child], turns: [turnRow(inner)], nodes: [nodeRow(inner, 'child-node')] }
      await store.commit(commitOf('root-a', rows))
      await store.commit(treeCommit('root-b'))

      for (const open of [() => store, reopen]) {
        const opened = await open()
        const rootsOf = (...ids: string[]) => Promise.all(ids.map(async (id) => opened.rootOf(id)))
        assert.deepEqual(await rootsOf('root-a', place.turnId, 'node-1'), ['root-a', 'root-a', 'root-a'])
        assert.deepEqual(await rootsOf('child', 'child-turn', 'child-node'), ['root-a', 'root-a', 'root-a'])
        assert.deepEqual(await rootsOf('root-b', 'root-b-turn', 'root-b-turn-node'), ['root-b', 'root-b', 'root-b'])
        const strange = ['nowhere', '', '__proto__', 'constructor', 'engine-0', 'hash-1', 'node-', "' or 1=1 --"]
        assert.deepEqual(await rootsOf(...strange), new Array(strange.length).fill(undefined))
        for (const id of ['root-a', place.turnId, 'node-1', 'child', 'child-turn', 'child-node', ...strange]) {
          const rootId = await opened.rootOf(id)
          const owner = (await opened.tree(rootId ?? '')).conversation(rootId ?? '')?.owner ?? null
          assert.deepEqual(await opened.ownerOf(id), rootId === undefined ? undefined : { rootId, owner })
        }
      }
    },
  ],
  [
    'a tree that does not exist is empty, and has its rows once they are committed',
    async (store) => {
      for (const rootId of ['root-a', '', '__proto__', 'constructor']) {
        const tree = await store.tree(rootId)
        const rows = [tree.conversation(rootId), tree.turn(place.turnId), tree.node('node-0'), tree.queuedTurn(rootId)]
        assert.deepEqual(rows, new Array(4).fill(undefined))
        assert.deepEqual([tree.turnsOf(rootId, { limit: 9 }), tree.nodesOf(place.turnId)], [[], []])
        assert.equal(tree.lastSeq(rootId), 0)
      }
      assert.deepEqual(await store.roots({ limit: 9 }), [])

      const commit = fullCommit()
      await store.commit(commit)

      const tree = await store.tree('root-a')
      assert.deepEqual([tree.conversation('root-a'), tree.lastSeq('root-a')], [commit.conversations[0], 2])
      assert.deepEqual(idsOf(tree.nodesOf(place.turnId)), ['node-0', 'node-1', 'node-2'])
    },
  ],
  [
    'what does not exist is undefined or empty',
    async (store) => {
      await store.commit(fullCommit())

      const tree = await store.tree('root-a')
      for (const id of ['nowhere', '', '__proto__', 'constructor', "' or 1=1 --"]) {
        assert.equal(tree.conversation(id), undefined)
        assert.equal(tree.turn(id), undefined)
        assert.equal(tree.node(id), undefined)
        assert.equal(tree.link(id), undefined)
        assert.equal(tree.body(id), undefined)
        assert.equal(await store.engine(id), undefined)
        assert.equal(tree.nodeByKey(id, 'task', id), undefined)
        assert.equal(tree.linkAt(id, 0), undefined)
        assert.equal(tree.queuedTurn(id), undefined)
        assert.equal(tree.lastSeq(id), 0)
        const lists = [tree.edgesFrom(id), tree.edgesTo(id), tree.nodesOf(id), tree.openNodes(id), tree.linksOf(id)]
        const more = [tree.openLinks(id), tree.turnsOf(id, { limit: 9 })]
        const told = [await store.events(id, 0, 9), await store.blocks(id, 0)]
        const last = [await store.claimedBy(id, 9), await store.findIds(`${id}?`, 9)]
        for (const list of [...lists, ...more, ...told, ...last]) assert.deepEqual(list, [])
      }
    },
  ],
  [
    'edges are found from both ends',
    async (store) => {
      const commit = fullCommit()

      await store.commit(commit)

      const tree = await store.tree('root-a')
      assert.deepEqual(tree.edgesFrom('node-0'), commit.edges)
      assert.deepEqual(tree.edgesTo('node-0'), [])
      assert.deepEqual(tree.edgesTo('node-1'), [commit.edges[0]])
    },
  ],
  [
    'nodes of a turn are ordered by ordinal, not by id or by when they were put',
    async (store) => {
      const ordinals = [7, 3, 9, 0, 12, 1]
      await store.commit(
        treeCommit('root-a', { nodes: ordinals.map((n) => nodeRow(place, `id-${n}`, { ordinal: n })) }),
      )
      await store.commit(commitOf('root-a', { nodes: [nodeRow(place, 'a-late-one', { ordinal: 5 })] }))

      const tree = await store.tree('root-a')
      assert.deepEqual(ordinalsOf(tree.nodesOf(place.turnId)), [0, 1, 3, 5, 7, 9, 12])
      assert.deepEqual(ordinalsOf(tree.openNodes(place.turnId)), [0, 1, 3, 5, 7, 9, 12])
    },
  ],
  [
    'open nodes are those pending, awaiting approval, running or waiting',
    async (store) => {
      const states: Node['state'][] = [
        'finished',
        'pending',
        'errored',
        'awaiting_approval',
        'rejected',
        'running',
        'skipped',
        'waiting',
        'stopped',
        'uncertain',
      ]
      const nodes = states.map((state, ordinal) => nodeRow(place, `n-${state}`, { state, ordinal }))
      await store.commit(treeCommit('root-a', { nodes }))

      assert.deepEqual(ordinalsOf((await store.tree('root-a')).openNodes(place.turnId)), [1, 3, 5, 7])

      await store.commit(commitOf('root-a', { nodes: nodes.slice(0, 4).map((n) => next(n, { state: 'finished' })) }))
      assert.deepEqual(ordinalsOf((await store.tree('root-a')).openNodes(place.turnId)), [5, 7])

      const again = (await store.tree('root-a')).node('n-finished')
      assert.ok(again)
      await store.commit(commitOf('root-a', { nodes: [next(again, { state: 'pending' })] }))
      assert.deepEqual(ordinalsOf((await store.tree('root-a')).openNodes(place.turnId)), [0, 5, 7])
    },
  ],
  [
    'a node is found by turn, kind and idempotency key',
    async (store) => {
      const nodes = [
        nodeRow(place, 'k-1', { idempotencyKey: 'key' }),
        nodeRow(place, 'k-2', { idempotencyKey: 'key', kind: 'note', ordinal: 1 }),
      ]
      await store.commit(treeCommit('root-a', { nodes }))

      const tree = await store.tree('root-a')
      assert.equal(tree.nodeByKey(place.turnId, 'task', 'key')?.id, 'k-1')
      assert.equal(tree.nodeByKey(place.turnId, 'note', 'key')?.id, 'k-2')
      assert.equal(tree.nodeByKey(place.turnId, 'task', 'other'), undefined)
      assert.equal(tree.nodeByKey('other', 'task', 'key'), undefined)
    },
  ],
  [
    'links of a run are ordered, found by ordinal, and open until they have an outcome',
    async (store) => {
      const links = [2, 0, 1].map((ordinal) => linkRow(place, `l-${ordinal}`, { ordinal }))
      await store.commit(treeCommit('root-a', { links }))

      const ended = next(links[1] ?? linkRow(place, ''), { outcome: outcomeOf('l-0', 'root-a') })
      await store.commit(commitOf('root-a', { links: [ended] }))

      const tree = await store.tree('root-a')
      assert.deepEqual(idsOf(tree.linksOf(place.turnId)), ['l-0', 'l-1', 'l-2'])
      assert.deepEqual(idsOf(tree.openLinks(place.turnId)), ['l-1', 'l-2'])
      assert.deepEqual(tree.linkAt(place.turnId, 0), ended)
      assert.equal(tree.linkAt(place.turnId, 1)?.id, 'l-1')
      assert.equal(tree.linkAt(place.turnId, 3), undefined)
    },
  ],
  [
    'turns of a lane are paged from the newest, oldest first',
    async (store) => {
      const turns = [0, 1, 2, 3, 4].map((ordinal) => turnRow({ ...place, turnId: `t-${9 - ordinal}` }, { ordinal }))
      await store.commit(commitOf('root-a', { conversations: [conversationRow('root-a')], turns }))
      const tree = await store.tree('root-a')
      const ordinals = (range: { last?: number; limit: number }) => ordinalsOf(tree.turnsOf('root-a', range))

      assert.deepEqual(ordinals({ limit: 2 }), [3, 4])
      assert.deepEqual(ordinals({ limit: 99 }), [0, 1, 2, 3, 4])
      assert.deepEqual(ordinals({ last: 2, limit: 2 }), [1, 2])
      assert.deepEqual(ordinals({ last: 0, limit: 2 }), [0])
      assert.deepEqual(ordinals({ last: -1, limit: 2 }), [])
      assert.deepEqual(ordinals({ limit: 0 }), [])
    },
  ],
  [
    'the first queued turn of a lane is found',
    async (store) => {
      const states = ['ended', 'running', 'queued', 'queued'] as const
      const turns = states.map((state, ordinal) => turnRow({ ...place, turnId: `t-${ordinal}` }, { ordinal, state }))
      await store.commit(commitOf('root-a', { conversations: [conversationRow('root-a')], turns }))
      assert.equal((await store.tree('root-a')).queuedTurn('root-a')?.id, 't-2')

      const [, running, queued] = turns
      assert.ok(running && queued)
      const step = [next(running, { state: 'ended' }), next(queued, { state: 'running' })]
      await store.commit(commitOf('root-a', { turns: step }))
      assert.equal((await store.tree('root-a')).queuedTurn('root-a')?.id, 't-3')
    },
  ],
  [
    'the first queued turn is found also when one behind it has ended, and when its lane is another conversation’s',
    async (store) => {
      const states = ['running', 'queued', 'ended', 'queued'] as const
      const turns = states.map((state, ordinal) => turnRow({ ...place, turnId: `t-${ordinal}` }, { ordinal, state }))
      const lane = { ...PLAIN_LANE, from: { laneId: 'root-a', nodeId: 'node', last: 2 }, skips: [[0, 1] as const] }
      const fork = conversationRow('lane-b', { rootId: 'root-a', lane })
      await store.commit(commitOf('root-a', { conversations: [conversationRow('root-a'), fork], turns }))

      const tree = await store.tree('root-a')
      assert.equal(tree.queuedTurn('root-a')?.id, 't-1')
      assert.equal(tree.queuedTurn('lane-b'), undefined)
      assert.deepEqual(tree.conversation('lane-b'), fork)
    },
  ],
  [
    'root conversations are listed newest first and paged by id; children are not among them',
    async (store) => {
      for (const id of ['r-3', 'r-1', 'r-2']) await store.commit(treeCommit(id))
      const child = conversationRow('child', { rootId: 'r-1', type: 'sub_agent', depth: 1 })
      await store.commit(commitOf('r-1', { conversations: [child] }))

      assert.deepEqual(idsOf(await store.roots({ limit: 9 })), ['r-2', 'r-1', 'r-3'])
      assert.deepEqual(idsOf(await store.roots({ limit: 1, before: 'r-2' })), ['r-1'])
      assert.deepEqual(idsOf(await store.roots({ limit: 9, before: 'r-1' })), ['r-3'])
      assert.deepEqual(await store.roots({ limit: 9, before: 'nowhere' }), [])
    },
  ],
  [
    'ids are found by any ending, exactly',
    async (store) => {
      await store.commit(treeCommit('root-0123-abcdefgh'))

      const find = async (ending: string) => {
        const found = await store.findIds(ending, 9)
        return found.map(({ id, type }) => `${type} ${id}`)
      }
      assert.deepEqual(await find('efgh'), ['conversation root-0123-abcdefgh'])
      assert.deepEqual(await find('abcdefgh'), ['conversation root-0123-abcdefgh'])
      assert.deepEqual(await find('3-abcdefgh'), ['conversation root-0123-abcdefgh'])
      assert.deepEqual(await find('defgh-turn'), ['turn root-0123-abcdefgh-turn'])
      assert.deepEqual(await find('-node'), ['node root-0123-abcdefgh-turn-node'])
      for (const ending of ['EFGH', 'e_gh', '%', '4-abcdefgh', '']) assert.deepEqual(await find(ending), [])
      assert.equal((await store.findIds('n', 1)).length, 1)
    },
  ],
  [
    'open roots are turns of user conversations that have not ended',
    async (store) => {
      await store.commit(treeCommit('r-1'))
      await store.commit(treeCommit('r-2', { turns: [turnRow(placeIn('r-2'), { state: 'ended' })], nodes: [] }))
      const inside = { rootId: 'r-1', conversationId: 'child', laneId: 'child', turnId: 'child-turn' }
      const child = conversationRow('child', { rootId: 'r-1', type: 'sub_agent', depth: 1 })
      await store.commit(commitOf('r-1', { conversations: [child], turns: [turnRow(inside)] }))
      const queued = turnRow({ ...placeIn('r-2'), turnId: 'again' }, { state: 'queued', ordinal: 1 })
      await store.commit(commitOf('r-2', { turns: [queued] }))

      assert.deepEqual(idsOf(await store.openRoots({ limit: 9 })).sort(), ['again', 'r-1-turn'])
      assert.equal((await store.openRoots({ limit: 1 })).length, 1)
    },
  ],
]

/** Makes a tree with a row of every table. */
export function fullCommit(): Commit {
  return treeCommit('root-a', {
    nodes: [0, 1, 2].map((ordinal) => nodeRow(place, `node-${ordinal}`, { ordinal, metadata: { deep: [{ a: 1 }] } })),
    edges: [edgeRow(place, 'node-0', 'node-1'), { ...edgeRow(place, 'node-0', 'node-2'), type: 'dependency' }],
    links: [linkRow(place, 'link-0'), linkRow(place, 'link-1', { ordinal: 1 })],
    bodies: [
      { hash: 'hash-1', text: 'a large text' },
      { hash: 'hash-2', text: '' },
    ],
    engines: [engineRow('engine-0')],
    events: [warningEvent(place, 'first'), warningEvent(place, 'second')],
  })
}

export function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map((row) => row.id)
}

function ordinalsOf(rows: readonly { readonly ordinal: number }[]): number[] {
  return rows.map((row) => row.ordinal)
}
