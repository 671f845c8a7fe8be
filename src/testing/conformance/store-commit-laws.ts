import assert from 'node:assert/strict'
import { isLegateError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { Commit } from '../../graph/commit.ts'
import type { Store } from '../../store/store.ts'
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
      const before = snapshot(store)
      const known = store.node('node-0')
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

      assert.deepEqual(snapshot(store), before)
      assert.equal(refused.events[0]?.seq, 0)
      assert.deepEqual(
        [store.turn('new-turn'), store.node('new-node'), store.link('new-link')],
        [undefined, undefined, undefined],
      )
      assert.equal(store.nodeByKey(place.turnId, 'task', 'key'), undefined)
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
      assert.equal(store.node('node-0')?.version, 2)
    },
  ],
  [
    'of many writers on one version exactly one wins',
    async (store) => {
      await store.commit(treeCommit('root-a', { nodes: [nodeRow(place, 'prize')] }))

      for (let round = 0; round < 5; round++) {
        const prize = store.node('prize')
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
        assert.equal(store.node('prize')?.preview, `winner ${won[0]}`)
        assert.equal(store.lastSeq('root-a'), round + 1)
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
      assert.deepEqual([...store.edgesFrom('a-1'), ...store.edgesTo('c-1'), ...store.edgesTo('b-1')], [])
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
        store
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
      assert.equal(store.nodeByKey(place.turnId, 'task', 'same')?.id, 'k-1')
      assert.equal(store.nodeByKey(far.turnId, 'task', 'same')?.id, 'k-3')
    },
  ],
  [
    'a row belongs to the tree, conversation and turn it names',
    async (store) => {
      await store.commit(fullCommit())
      await store.commit(treeCommit('root-b'))
      const known = store.node('node-0')
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
      assert.equal(store.lastSeq('nowhere'), 0)
    },
  ],
  [
    'hostile ids and texts are kept as they are',
    async (store) => {
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
        store.reopen()

        assert.deepEqual(store.node(node.id), node)
        assert.deepEqual(store.nodesOf(hostile.turnId), [node])
        assert.equal(store.nodeByKey(hostile.turnId, text, text)?.id, node.id)
        assert.equal(store.body(`hash ${rootId}`), `${text} ${text}`)
        assert.deepEqual(store.events(rootId, 0, 1), [{ ...warningEvent(hostile, text), seq: 1 }])
        assert.ok(idsOf(store.findIds(`${rootId}-node`.slice(-9), 99)).includes(node.id))
      }
      assert.equal(store.roots({ limit: 99 }).length, texts.length)
    },
  ],
  [
    'a body of 10 MB is kept',
    async (store) => {
      const text = 'ä10\u0000 megabytes '.repeat(700_000)

      await store.commit(treeCommit('root-a', { bodies: [{ hash: 'big', text }] }))
      await store.commit(commitOf('root-a', { bodies: [{ hash: 'big', text }] }))

      assert.ok(store.body('big') === text)
    },
  ],
  [
    'reopening keeps everything that is in the rows',
    async (store) => {
      await store.commit(fullCommit())
      const before = snapshot(store)

      store.reopen()

      assert.deepEqual(snapshot(store), before)
      assert.deepEqual(idsOf(store.runnable({ now: 0, limit: 9, kinds: ['task'], agents: ['editor'] })), [
        'node-0',
        'node-1',
        'node-2',
      ])
      const node = store.node('node-1')
      assert.ok(node)
      await store.commit(commitOf('root-a', { nodes: [next(node)], events: [warningEvent(place, 'third')] }))
      assert.equal(store.lastSeq('root-a'), 3)
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
        () => store.node('node-0'),
        () => store.nodesOf(place.turnId),
        () => store.events('root-a', 0, 1),
        () => store.runnable({ now: 0, limit: 1, kinds: [], agents: [] }),
        () => store.engines(),
        () => store.watch(() => undefined),
        () => store.reopen(),
      ]
      for (const read of reads) assert.throws(read, isClosed)
    },
  ],
]

/** Reads everything of the tree `root-a`. */
export function snapshot(store: Store): unknown {
  return {
    conversation: store.conversation('root-a'),
    turns: store.turnsOf('root-a', { limit: 99 }),
    nodes: store.nodesOf(place.turnId),
    open: store.openNodes(place.turnId),
    edges: store.nodesOf(place.turnId).map(({ id }) => [store.edgesFrom(id), store.edgesTo(id)]),
    links: [store.linksOf(place.turnId), store.openLinks(place.turnId)],
    bodies: [store.body('hash-1'), store.body('new-body')],
    engines: store.engines(),
    events: store.events('root-a', 0, 99),
    lastSeq: store.lastSeq('root-a'),
    roots: store.roots({ limit: 99 }),
    openRoots: store.openRoots(99),
    claimed: store.claimedBy('engine-0', 99),
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
