import assert from 'node:assert/strict'
import { isLegateError } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import type { Commit } from '../../core/graph/commit.ts'
import type { Store } from '../../core/store/store.ts'
import { fullCommit, idsOf, type Law } from './store-read-laws.ts'
import {
  commitOf,
  conversationRow,
  edgeRow,
  engineRow,
  linkRow,
  next,
  nodeRow,
  placeIn,
  treeCommit,
  turnRow,
  warningEvent,
} from './store-rows.ts'

const place = placeIn('root-a')
const far = placeIn('root-b')

/** Laws about commits: each is applied completely or refused. */
export const commitLaws: readonly Law[] = [
  [
    'a commit that is refused in its last row changes nothing, and leaves no gap in the sequence',
    async (store) => {
      await store.commit(fullCommit())
      const before = await snapshot(store)
      const known = (await store.tree('root-a')).node('node-0')
      assert.ok(known)
      const refused = commitOf('root-a', {
        conversations: [
          next(conversationRow('root-a'), { title: 'new' }),
          conversationRow('child', { rootId: 'root-a' }),
        ],
        turns: [next(turnRow(place), { state: 'ended' }), turnRow({ ...place, turnId: 'new-turn' }, { ordinal: 1 })],
        nodes: [next(known, { state: 'running' }), nodeRow(place, 'new-node', { ordinal: 9, idempotencyKey: 'key' })],
        links: [next(linkRow(place, 'link-0'), { deliveredTo: 'x' }), linkRow(place, 'new-link', { ordinal: 9 })],
        bodies: [{ hash: 'new-body', text: 'text' }],
        engines: [next(engineRow('engine-0')), engineRow('new-engine')],
        edges: [
          edgeRow(place, 'node-1', 'node-2'),
          edgeRow(place, 'node-2', 'new-node'),
          edgeRow(place, 'node-0', 'node-1'),
        ],
        dropEngines: ['engine-0'],
        events: [warningEvent(place, 'refused')],
      })

      await refuses(store, refused, 'edges')

      assert.deepEqual(await snapshot(store), before)
      assert.equal(refused.events[0]?.seq, 0)
      const tree = await store.tree('root-a')
      assert.deepEqual(
        [tree.turn('new-turn'), tree.node('new-node'), tree.link('new-link')],
        new Array(3).fill(undefined),
      )
      assert.equal(tree.nodeByKey(place.turnId, 'task', 'key'), undefined)
      const accepted = { ...refused, edges: refused.edges.slice(0, 2) }
      await store.commit(accepted)
      assert.equal(accepted.events[0]?.seq, 3)
    },
  ],
  [
    'a row is put only on the version before it',
    async (store) => {
      await store.commit(fullCommit())
      const conversation = conversationRow('root-a')
      const [turn, link, engine] = [turnRow(place), linkRow(place, 'link-0'), engineRow('engine-0')]
      const node = nodeRow(place, 'node-0')

      for (const version of [0, 1, 3, 99]) {
        await refuses(store, commitOf('root-a', { conversations: [{ ...conversation, version }] }), 'conversations')
        await refuses(store, commitOf('root-a', { turns: [{ ...turn, version }] }), 'turns')
        await refuses(store, commitOf('root-a', { nodes: [{ ...node, version }] }), 'nodes')
        await refuses(store, commitOf('root-a', { links: [{ ...link, version }] }), 'links')
        await refuses(store, commitOf(null, { engines: [{ ...engine, version }] }), 'engines')
      }
      await refuses(store, commitOf('root-a', { nodes: [nodeRow(place, 'unknown', { version: 2 })] }), 'nodes')

      const all = { conversations: [next(conversation)], turns: [next(turn)], nodes: [next(node)], links: [next(link)] }
      await store.commit(commitOf('root-a', { ...all, engines: [next(engine)] }))
      assert.equal((await store.tree('root-a')).node('node-0')?.version, 2)
    },
  ],
  [
    'of many writers on one version exactly one wins',
    async (store) => {
      await store.commit(treeCommit('root-a', { nodes: [nodeRow(place, 'prize')] }))

      for (let round = 0; round < 5; round++) {
        const prize = (await store.tree('root-a')).node('prize')
        assert.ok(prize)
        const tries = Array.from({ length: 100 }, async (_, index) =>
          store.commit(
            commitOf('root-a', {
              nodes: [next(prize, { preview: `winner ${index}` })],
              events: [warningEvent(place, `winner ${index}`)],
            }),
          ),
        )
        const won = (await Promise.allSettled(tries)).flatMap((result, index) =>
          result.status === 'fulfilled' ? [index] : [],
        )

        assert.equal(won.length, 1)
        assert.equal((await store.tree('root-a')).node('prize')?.preview, `winner ${won[0]}`)
        assert.equal((await store.tree('root-a')).lastSeq('root-a'), round + 1)
      }
    },
  ],
  [
    'an edge stays inside its conversation, between nodes that exist',
    async (store) => {
      await store.commit(
        treeCommit('root-a', { nodes: [nodeRow(place, 'a-1'), nodeRow(place, 'a-2', { ordinal: 1 })] }),
      )
      await store.commit(treeCommit('root-b', { nodes: [nodeRow(far, 'b-1')] }))
      const inside = { rootId: 'root-a', conversationId: 'child', laneId: 'child', turnId: 'child-turn' }
      const child = conversationRow('child', { rootId: 'root-a', type: 'sub_agent' })
      const nodes = [nodeRow(inside, 'c-1')]
      await store.commit(commitOf('root-a', { conversations: [child], turns: [turnRow(inside)], nodes }))

      await refuses(store, commitOf('root-a', { edges: [edgeRow(place, 'a-1', 'b-1')] }), 'edges')
      await refuses(store, commitOf('root-a', { edges: [edgeRow(place, 'a-1', 'c-1')] }), 'edges')
      await refuses(store, commitOf('root-a', { edges: [edgeRow(inside, 'c-1', 'a-1')] }), 'edges')
      await refuses(store, commitOf('root-a', { edges: [edgeRow(inside, 'a-1', 'a-2')] }), 'edges')
      await refuses(store, commitOf('root-a', { edges: [edgeRow(place, 'a-1', 'nowhere')] }), 'edges')
      await refuses(store, commitOf('root-a', { edges: [edgeRow(place, 'a-1', 'a-1')] }), 'edges')
      const tree = await store.tree('root-a')
      const foreign = await store.tree('root-b')
      assert.deepEqual([...tree.edgesFrom('a-1'), ...tree.edgesTo('c-1'), ...foreign.edgesTo('b-1')], [])
    },
  ],
  [
    'an edge of one type between two nodes exists once',
    async (store) => {
      const edge = edgeRow(place, 'a-1', 'a-2')
      const nodes = [nodeRow(place, 'a-1'), nodeRow(place, 'a-2', { ordinal: 1 })]
      await refuses(store, treeCommit('root-a', { nodes, edges: [edge, edge] }), 'edges')
      await store.commit(treeCommit('root-a', { nodes, edges: [edge] }))

      await refuses(store, commitOf('root-a', { edges: [edge] }), 'edges')
      await store.commit(commitOf('root-a', { edges: [{ ...edge, type: 'branch' }] }))

      assert.deepEqual(
        (await store.tree('root-a'))
          .edgesTo('a-2')
          .map(({ type }) => type)
          .sort(),
        ['branch', 'sequence'],
      )
    },
  ],
  [
    'an idempotency key is unique in its turn and kind',
    async (store) => {
      const keyed = (id: string, ordinal: number) => nodeRow(place, id, { idempotencyKey: 'same', ordinal })
      await store.commit(treeCommit('root-a', { nodes: [keyed('k-1', 0)] }))

      await refuses(store, commitOf('root-a', { nodes: [keyed('k-2', 1)] }), 'nodes')
      await refuses(
        store,
        treeCommit('root-b', {
          nodes: [
            { ...keyed('k-3', 0), ...far },
            { ...keyed('k-4', 1), ...far },
          ],
        }),
        'nodes',
      )

      await store.commit(treeCommit('root-b', { nodes: [{ ...keyed('k-3', 0), ...far }] }))
      assert.equal((await store.tree('root-a')).nodeByKey(place.turnId, 'task', 'same')?.id, 'k-1')
      assert.equal((await store.tree('root-b')).nodeByKey(far.turnId, 'task', 'same')?.id, 'k-3')
    },
  ],
  [
    'a row belongs to the tree, conversation and turn it names',
    async (store) => {
      await store.commit(fullCommit())
      await store.commit(treeCommit('root-b'))
      const known = (await store.tree('root-a')).node('node-0')
      assert.ok(known)

      await refuses(store, commitOf('root-a', { nodes: [nodeRow({ ...place, turnId: 'nowhere' }, 'n')] }), 'nodes')
      await refuses(store, commitOf('root-a', { nodes: [nodeRow({ ...place, turnId: far.turnId }, 'n')] }), 'nodes')
      await refuses(store, commitOf('root-a', { nodes: [nodeRow(far, 'n')] }), 'nodes')
      await refuses(store, commitOf('root-a', { nodes: [next(known, { turnId: far.turnId })] }), 'nodes')
      await refuses(
        store,
        commitOf('root-a', { turns: [turnRow({ ...place, conversationId: 'nowhere', turnId: 't' })] }),
        'turns',
      )
      await refuses(
        store,
        commitOf('root-a', { turns: [turnRow({ ...place, conversationId: 'root-b', turnId: 't' })] }),
        'turns',
      )
      await refuses(store, commitOf('root-a', { links: [linkRow({ ...place, turnId: 'nowhere' }, 'l')] }), 'links')
      await refuses(
        store,
        commitOf('root-a', { conversations: [conversationRow('child', { rootId: 'root-b' })] }),
        'conversations',
      )
      await refuses(store, commitOf('nowhere', { events: [warningEvent(place, 'lost')] }), 'trees')
      await refuses(store, commitOf(null, { events: [warningEvent(place, 'lost')] }), 'trees')
      assert.equal((await store.tree('nowhere')).lastSeq('nowhere'), 0)
    },
  ],
  [
    'hostile ids and texts are kept as they are',
    async (first, reopen) => {
      let store = first
      const texts = [
        `'"; drop table nodes; --`,
        'a\u0000b',
        '👩‍🚀 \u2028 \ufffd',
        '__proto__',
        'constructor',
        '%_\\',
        '\u{10ffff}',
        ' ',
      ]
      for (const text of texts) {
        const rootId = `id ${text.replaceAll('\u0000', '0')}`
        const hostile = placeIn(rootId)
        const metadata = { [`key ${text}`]: text, list: [text], ['__proto__']: 1 } satisfies { [key: string]: Json }
        const node = nodeRow(hostile, `${rootId}-node`, { preview: text, metadata, kind: text, idempotencyKey: text })
        const bodies = [{ hash: `hash ${rootId}`, text: `${text} ${text}` }]
        await store.commit(treeCommit(rootId, { nodes: [node], bodies, events: [warningEvent(hostile, text)] }))
        store = await reopen()
        const tree = await store.tree(rootId)

        assert.deepEqual(tree.node(node.id), node)
        assert.deepEqual(tree.nodesOf(hostile.turnId), [node])
        assert.equal(tree.nodeByKey(hostile.turnId, text, text)?.id, node.id)
        assert.equal(tree.body(`hash ${rootId}`), `${text} ${text}`)
        assert.deepEqual(await store.events(rootId, 0, 1), [{ ...warningEvent(hostile, text), seq: 1 }])
        assert.ok(idsOf(await store.findIds(`${rootId}-node`.slice(-9), 99)).includes(node.id))
      }
      assert.equal((await store.roots({ limit: 99 })).length, texts.length)
    },
  ],
  [
    'a body of 10 MB is kept',
    async (store) => {
      const text = 'ä10\u0000 megabytes '.repeat(700_000)

      await store.commit(treeCommit('root-a', { bodies: [{ hash: 'big', text }] }))
      await store.commit(commitOf('root-a', { bodies: [{ hash: 'big', text }] }))

      assert.ok((await store.tree('root-a')).body('big') === text)
    },
  ],
  [
    'reopening keeps everything that is in the rows',
    async (first, reopen) => {
      await first.commit(fullCommit())
      const before = await snapshot(first)

      const store = await reopen()

      assert.deepEqual(await snapshot(store), before)
      assert.deepEqual(idsOf(await store.runnable({ now: 0, limit: 9, kinds: ['task'], agents: ['editor'] })), [
        'node-0',
        'node-1',
        'node-2',
      ])
      const node = (await store.tree('root-a')).node('node-1')
      assert.ok(node)
      await store.commit(commitOf('root-a', { nodes: [next(node)], events: [warningEvent(place, 'third')] }))
      assert.equal((await store.tree('root-a')).lastSeq('root-a'), 3)
    },
  ],
  [
    'a closed store says so, and closing twice is harmless',
    async (store) => {
      await store.commit(fullCommit())
      await store.close()
      await store.close()

      const isClosed = (error: unknown) => isLegateError(error, 'store_closed')
      await assert.rejects(async () => store.commit(treeCommit('root-b')), isClosed)
      const reads = [
        async () => (await store.tree('root-a')).node('node-0'),
        async () => (await store.tree('root-a')).nodesOf(place.turnId),
        async () => store.events('root-a', 0, 1),
        async () => store.runnable({ now: 0, limit: 1, kinds: [], agents: [] }),
        async () => store.engines(),
        async () => store.rootOf('node-0'),
        async () => store.watch(() => undefined),
      ]
      for (const read of reads) await assert.rejects(read, isClosed)
    },
  ],
  [
    'the id of a commit and the work that it leaves for others change nothing in the rows',
    async (store, reopen) => {
      const wakes = (...ids: string[]) => ids.map((id, at) => ({ id, at: at === 0 ? null : at }))
      const plain = fullCommit()
      await store.commit({ ...plain, id: 'commit-1', wakes: wakes('root-a:1', 'root-a@1', '__proto__', '') })
      const known = (await store.tree('root-a')).node('node-0')
      assert.ok(known)
      const step = commitOf('root-a', { nodes: [next(known)], wakes: wakes('root-a:1', 'root-a:1', "'; --") })
      await store.commit({ ...step, id: "commit '2" })
      await refuses(store, { ...step, id: 'commit-3' }, 'nodes')
      await store.commit(commitOf(null, { kind: 'lease', engines: [engineRow('e-1')], wakes: wakes('engine') }))

      for (const open of [() => store, reopen]) {
        const tree = await (await open()).tree('root-a')
        assert.deepEqual(tree.nodesOf(place.turnId), [next(known), ...plain.nodes.slice(1)])
        assert.deepEqual(
          [tree.conversation('root-a'), tree.turn(place.turnId)],
          [plain.conversations[0], plain.turns[0]],
        )
        assert.equal(tree.lastSeq('root-a'), 2)
      }
    },
  ],
]

/** Reads everything of the tree `root-a`. */
export async function snapshot(store: Store): Promise<unknown> {
  const tree = await store.tree('root-a')
  return {
    conversation: tree.conversation('root-a'),
    turns: tree.turnsOf('root-a', { limit: 99 }),
    nodes: tree.nodesOf(place.turnId),
    open: tree.openNodes(place.turnId),
    edges: tree.nodesOf(place.turnId).map(({ id }) => [tree.edgesFrom(id), tree.edgesTo(id)]),
    links: [tree.linksOf(place.turnId), tree.openLinks(place.turnId)],
    bodies: [tree.body('hash-1'), tree.body('new-body')],
    engines: await store.engines(),
    events: await store.events('root-a', 0, 99),
    lastSeq: tree.lastSeq('root-a'),
    roots: await store.roots({ limit: 99 }),
    openRoots: await store.openRoots({ limit: 99 }),
    claimed: await store.claimedBy('engine-0', 99),
  }
}

async function refuses(store: Store, commit: Commit, table: string): Promise<void> {
  await assert.rejects(
    async () => store.commit(commit),
    (error) => {
      assert.ok(isLegateError(error, 'conflict'), String(error))
      assert.equal(error.name, 'ConflictError')
      assert.equal(error.details['table'], table, error.message)
      return true
    },
  )
}
