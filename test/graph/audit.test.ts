import type { AuditOptions, FindingType } from 'legate/rows'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { EventBody, EventRow } from '../../src/core/graph/event.ts'
import type { OutcomeRecord } from '../../src/core/graph/outcome.ts'
import type { Link, Node, Turn } from '../../src/core/graph/rows.ts'
import { FINDING_TYPES, FINDINGS } from '../../src/core/store/archive.ts'
import { edgeMark } from '../../src/core/store/commit-chain.ts'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { next, Planted, type Tree } from '../support/planted.ts'

/** Puts one defect in, and says of what id it is. */
type Plant = (world: Planted) => Promise<string>

const defects: { readonly [Type in FindingType]?: Plant } = {
  unknown_kind: (world) => changed(world, world.done.nodes[0], { kind: 'riddle' }),
  open_but_not_executable: (world) => changed(world, world.open.nodes[0], { state: 'pending', endedAt: null }),
  wrong_end_time: (world) => changed(world, world.done.nodes[0], { endedAt: null }),
  running_without_claim: (world) => changed(world, world.open.nodes[3], { state: 'running' }),
  leftover_claim: (world) => changed(world, world.done.nodes[1], { engineId: 'engine' }),
  lost_claim: (world) => changed(world, world.open.nodes[3], { state: 'running', engineId: 'gone', epoch: 1 }),
  wrong_blockers: (world) => changed(world, world.open.nodes[3], { blockers: 2 }),
  never_runs: async (world) => {
    const { first, second } = await byHand(world)
    await world.change(first, { state: 'errored', endedAt: 1 })
    return second.id
  },
  open_in_ended_turn: (world) => added(world, world.done, { state: 'pending', endedAt: null }),
  missing_task: (world) => {
    const calls = [...(world.done.nodes[1].output.calls ?? []), { id: 'x', name: 'other', input: {} }]
    return changed(world, world.done.nodes[1], { output: { ...world.done.nodes[1].output, calls } })
  },
  missing_body: (world) =>
    changed(world, world.done.nodes[2], { output: { ...world.done.nodes[2].output, bodyRef: 'nothing' } }),
  two_active_versions: (world) => changed(world, world.done.nodes[3], { versionSet: world.done.nodes[1].versionSet }),
  waits_for_nothing: (world) => changed(world, world.open.nodes[2], { wait: null }),
  cycle: async (world) => {
    const [first, , , last] = world.done.nodes
    const { rootId, conversationId } = first
    await world.put(rootId, { edges: [{ rootId, conversationId, from: last.id, to: first.id, type: 'sequence' }] })
    return expect.stringContaining(' -> ')
  },
  wrong_outcome: (world) => changedTurn(world, world.done.turn, { outcome: null }),
  wrong_answer: (world) =>
    changedTurn(world, world.done.turn, {
      outcome: { ...outcomeOf(world.done.turn), answerNodeId: world.done.nodes[1].turnId },
    }),
  nothing_open: async (world) => {
    const turn = await world.graph.say('go')
    const [, answer] = world.store.nodesOf(turn.id)
    if (answer) await world.change(answer, { state: 'finished', endedAt: 1, output: { content: 'done' } })
    return turn.id
  },
  wrong_account: (world) =>
    changedTurn(world, world.done.turn, { account: { ...world.done.turn.account, children: 3 } }),
  wrong_lane: async (world) => {
    await world.changeConversation(world.done.root, { activeTurnId: world.done.turn.id })
    return world.done.root.id
  },
  two_running: async (world) => {
    const { conversationId } = await world.graph.say('one')
    const second = await world.graph.say('two', { conversationId })
    const entry = world.graph.node(second.entryNodeId)
    await world.put(conversationId, {
      turns: [next(world.graph.turn(second.id), { state: 'running' })],
      nodes: [next(entry, { blockers: 0 })],
    })
    return conversationId
  },
  turn_order: async (world) => {
    const { turn, root } = world.done
    const odd = { ...endedTurn(turn, 'odd-turn'), ordinal: 7 }
    await world.put(root.id, { conversations: [next(root, { turnCount: 2 })], turns: [odd] })
    return odd.id
  },
  wrong_turn_count: async (world) => {
    await world.changeConversation(world.done.root, { turnCount: 9 })
    return world.done.root.id
  },
  node_order: (world) => added(world, world.done, { ordinal: 9 }),
  wrong_node_count: (world) => changedTurn(world, world.done.turn, { nodeCount: 9 }),
  wrong_pause: (world) => changedTurn(world, world.open.turn, { paused: { asks: 5, leftMs: 1000 } }),
  leftover_hold: (world) => {
    const spend = { limit: { tokens: 9, usd: null }, spent: { tokens: 1, usd: 0 }, held: { tokens: 5, usd: 0 } }
    return changedTurn(world, world.done.turn, { spend })
  },
  dangling_child: (world) =>
    addedLink(world, world.done, { id: 'ghost-turn', childConversationId: 'ghost', mode: 'called', outcome: null }),
  dangling_task: async (world) => {
    const link = await secondTurn(world, world.done)
    return addedLink(world, world.done, { ...link, taskId: 'ghost-task', mode: 'called' })
  },
  two_children: async (world) => {
    await addedLink(world, world.done, await secondTurn(world, world.done))
    return world.done.nodes[2].id
  },
  orphan_child: async (world) => {
    const orphan = { ...world.done.child, id: 'orphan', version: 1, parentTaskId: 'ghost-task', turnCount: 0 }
    await world.put(world.done.root.id, { conversations: [orphan] })
    return 'orphan'
  },
  wrong_link_outcome: (world) =>
    changedLink(world, world.done.link, { outcome: { ...outcomeOf(world.done.childTurn), status: 'failed' } }),
  waits_for_ended: async (world) => {
    await world.changeTurn(world.open.turn, { paused: null })
    await endRun(world, world.open.childTurn, { ...outcomeOf(world.done.childTurn), runId: world.open.childTurn.id })
    return world.open.link.id
  },
  undelivered: (world) => changedLink(world, world.done.link, { deliveredTo: null }),
  child_of_ended_parent: async (world) => {
    await endRun(world, world.open.turn, { ...outcomeOf(world.done.turn), status: 'cancelled', answerNodeId: null })
    return world.open.link.id
  },
  wrong_parentage: async (world) => {
    await world.changeConversation(world.done.child, { depth: 5 })
    return world.done.child.id
  },
  wrong_places: async (world) => {
    await world.changeConversation(world.done.root, { places: [{ key: 'k', live: 1, waiting: [] }] })
    return world.done.root.id
  },
  held_back: async (world) => {
    const { account } = world.open.turn
    await world.put(world.open.root.id, {
      turns: [next(world.open.turn, { account: { ...account, live: 0 } })],
      links: [next(world.open.link, { released: false })],
    })
    return world.open.link.id
  },
  wrong_background: async (world) => {
    await world.changeConversation(world.done.root, { background: [world.done.link.id] })
    return world.done.root.id
  },
  leftover_block: async (world) => {
    const node = world.open.nodes[3]
    await world.change(node, { state: 'running', engineId: 'engine', epoch: 1 })
    await world.put(node.rootId, { blocks: [{ nodeId: node.id, rootId: node.rootId, epoch: 1, events: [] }] })
    return changed(world, node, { state: 'pending', engineId: null, epoch: 1 })
  },
  unpaired_event: async (world) => {
    const outcome = outcomeOf(world.done.turn)
    const body = { type: 'run-end', status: outcome.status, outcome } as const
    await world.put(world.done.root.id, { events: [eventOf(world.done.turn, body)] })
    return world.done.turn.id
  },
}

/** What only the file itself can be made to say. */
const fileDefects: { readonly [Type in FindingType]?: Plant } = {
  dangling_edge: async (world) => {
    const [first] = world.done.nodes
    insertEdge(world, first, JSON.stringify(['ghost', placeIn(world, first.id), 's']))
    return `ghost -> ${first.id}`
  },
  edge_across_conversations: async (world) => {
    const [first] = world.done.nodes
    const [other] = world.done.childNodes
    insertEdge(world, first, JSON.stringify([other?.id, placeIn(world, first.id), 'b']))
    return `${other?.id} -> ${first.id}`
  },
  event_gap: async (world) => {
    world.sql('UPDATE commits SET seq = seq + 1 WHERE n / 16777216 = ?', treeNumber(world))
    return world.done.root.id
  },
}

/** Those that are found by their hashes have tests of their own. */
const byHash: readonly FindingType[] = [
  'altered_row',
  'missing_row',
  'unknown_row',
  'altered_body',
  'altered_index',
  'broken_chain',
  'unreadable',
]

describe.each([
  ['memory', defects],
  ['sqlite', { ...defects, ...fileDefects }],
] as const)('an audit of %s', (kind, planted) => {
  let world: Planted

  beforeEach(async () => {
    world = await Planted.in(kind)
  })
  afterEach(() => world.close())

  test('finds nothing where nothing is wrong', async () => {
    const { findings, repaired, checked } = await world.runtime.audit({ repair: true })

    expect([findings, repaired]).toEqual([[], []])
    expect(checked).toMatchObject({ trees: 2, conversations: 4, turns: 4, links: 2 })
    expect(checked.nodes).toBeGreaterThan(10)
  })

  test.each(Object.entries(planted))('finds %s, exactly', async (name, plant) => {
    const type = name as FindingType
    const id = await plant(world)
    const audit = async (options: AuditOptions = {}) => (await world.runtime.audit(options)).findings

    const found = (await audit()).map((one) => [one.type, one.id])
    const same = (await audit({ types: [type] })).map((one) => [one.type, one.id])

    expect(found).toEqual([[type, id]])
    expect(same).toEqual(found)
    expect(await audit({ types: FINDING_TYPES.filter((other) => other !== type) })).toEqual([])
    await checkRepair(world, { type, id })
  })

  test('a repair is an event of its conversation', async () => {
    await defects.wrong_account?.(world)
    await world.runtime.audit({ repair: true })

    const talk = await world.runtime.conversation(world.done.root.id)
    const changes = (await talk.eventPage({ limit: 500 })).filter(({ type }) => type === 'graph-change')
    expect(changes).toMatchObject([
      { change: 'repair', detail: { finding: 'wrong_account', subject: 'turn', id: world.done.turn.id } },
    ])
  })

  test('of one tree finds what is wrong in it and nothing else; of one conversation too', async () => {
    await defects.wrong_node_count?.(world)
    await defects.wrong_link_outcome?.(world)
    await defects.wrong_blockers?.(world)
    const typesIn = async (options: object) => (await world.runtime.audit(options)).findings.map(({ type }) => type)

    expect(await typesIn({ rootId: world.open.root.id })).toEqual(['wrong_blockers'])
    expect(await typesIn({ rootId: world.done.root.id })).toEqual(['wrong_node_count', 'wrong_link_outcome'])
    const child = await world.runtime.conversation(world.done.child.id)
    expect((await child.audit()).findings.map(({ type }) => type)).toEqual(['wrong_link_outcome'])
  })

  test('a conversation whose owner is not its root’s is a finding: its files and memories would belong to somebody else', async () => {
    await world.changeConversation(world.done.child, { owner: 'eve' })

    expect((await world.runtime.audit()).findings).toMatchObject([
      { type: 'wrong_parentage', severity: 'error', id: world.done.child.id },
    ])
  })

  test('an unknown type or tree is refused in words', async () => {
    await expect(world.runtime.audit({ types: ['nonsense' as FindingType] })).rejects.toThrow(/no finding of the type/)
    await expect(world.runtime.audit({ rootId: world.done.child.id })).rejects.toThrow(/no root conversation/)
  })
})

test('every type of finding is planted by a test', () => {
  const planted = [...Object.keys(defects), ...Object.keys(fileDefects), ...byHash]

  expect(planted.sort()).toEqual([...FINDING_TYPES].sort())
})

/** What can be mended is, and a second scan is clean; the rest stays as it is: a repair could lose something. */
async function checkRepair({ runtime }: Planted, { type, id }: { type: FindingType; id: string }): Promise<void> {
  const [, isRepairable] = FINDINGS[type]

  const { findings, repaired } = await runtime.audit({ repair: true })

  expect(findings.map((one) => one.type)).toEqual(isRepairable ? [] : [type])
  const mended = repaired.map((one) => [one.type, one.id])
  expect(isRepairable ? mended : []).toEqual(isRepairable ? expect.arrayContaining([[type, id]]) : mended)
  expect((await runtime.audit()).findings).toEqual(findings)
}

async function changed(world: Planted, row: Node, fields: Partial<Node>): Promise<string> {
  await world.change(row, fields)
  return row.id
}

async function changedTurn(world: Planted, row: Turn, fields: Partial<Turn>): Promise<string> {
  await world.changeTurn(row, fields)
  return row.id
}

async function changedLink(world: Planted, row: Link, fields: Partial<Link>): Promise<string> {
  await world.changeLink(row, fields)
  return row.id
}

/** One more node of a turn that has ended. */
async function added(world: Planted, { turn, nodes }: Tree, fields: Partial<Node>): Promise<string> {
  const node = { ...nodes[0], id: 'one-more', versionSet: 'one-more', version: 1, kind: 'task', ordinal: 4, ...fields }
  await world.put(turn.rootId, { turns: [next(turn, { nodeCount: turn.nodeCount + 1 })], nodes: [node] })
  return node.id
}

/** One more delegation of a run, counted. */
async function addedLink(world: Planted, { turn, link }: Tree, fields: Partial<Link>): Promise<string> {
  const more = { ...link, version: 1, ordinal: 1, released: false, ...fields }
  const account = { ...turn.account, children: turn.account.children + 1 }
  await world.put(turn.rootId, { turns: [next(turn, { account })], links: [more] })
  return more.id
}

/** One more turn of the child, which has ended too. */
async function secondTurn(world: Planted, { child, childTurn }: Tree): Promise<Pick<Link, 'id' | 'outcome'>> {
  const turn = { ...endedTurn(childTurn, 'second-turn'), ordinal: 1 }
  await world.put(child.rootId, { conversations: [next(child, { turnCount: 2 })], turns: [turn] })
  return { id: turn.id, outcome: turn.outcome }
}

function endedTurn(turn: Turn, id: string): Turn {
  const outcome = { ...outcomeOf(turn), status: 'cancelled', runId: id, answerNodeId: null } as const
  const account = { ...turn.account, children: 0 }
  return { ...turn, id, version: 1, nodeCount: 0, outcome, account, startedAt: null }
}

/** Ends a run as if its end had been told, but to nobody above or below it. */
async function endRun(world: Planted, turn: Turn, outcome: OutcomeRecord): Promise<void> {
  const home = world.store.conversation(turn.conversationId)
  const nodes = world.store.openNodes(turn.id)
  const answer = nodes.at(-1)?.id ?? null
  const whole = { ...outcome, conversationId: turn.conversationId, answerNodeId: outcome.answerNodeId && answer }
  await world.put(turn.rootId, {
    conversations: home ? [next(home, { activeTurnId: null })] : [],
    turns: [next(turn, { state: 'ended', outcome: whole, endedAt: 1, paused: null })],
    nodes: nodes.map((node) => {
      const state = node.id === outcome.answerNodeId || whole.answerNodeId !== null ? 'finished' : 'stopped'
      return next(node, { state, endedAt: 1, blockers: 0, wait: null, wakeAt: null })
    }),
    events: [eventOf(turn, { type: 'run-end', status: whole.status, outcome: whole })],
  })
}

function outcomeOf({ outcome }: Turn): OutcomeRecord {
  if (outcome === null) throw new Error('the turn has no outcome')
  return outcome
}

function eventOf({ id, conversationId }: Turn, body: EventBody): EventRow {
  return { seq: 0, at: 1, conversationId, runId: id, nodeId: null, path: ['editor'], parentId: null, body }
}

/** Two tasks of a turn, the second after the first. */
async function byHand({ graph }: Planted): Promise<{ readonly first: Node; readonly second: Node }> {
  return graph.mutate(await graph.conversation(), (m) => {
    const [first, second] = [m.createNode({ kind: 'task' }), m.createNode({ kind: 'task' })]
    m.createEdge(first.id, second.id, 'dependency')
    return { first, second }
  })
}

function placeIn(world: Planted, nodeId: string): number {
  return numberOf(world, nodeId) % 2 ** 20
}

function treeNumber(world: Planted): number {
  return Math.floor(numberOf(world, world.done.root.id) / 2 ** 20)
}

function numberOf({ file }: Planted, id: string): number {
  const db = connectTo(file ?? '')
  try {
    return Number(db.first("SELECT n FROM keys WHERE id = ? AND slot IN ('c', 'n')", [id])?.[0])
  } finally {
    db.close()
  }
}

function insertEdge(world: Planted, node: Node, ends: string): void {
  const span = Math.floor(numberOf(world, node.id) / 2 ** 20)
  const last = 'SELECT max(n) + 1 FROM rows WHERE n < (? + 1) * 1048576'
  world.sql(`INSERT INTO rows (n, data) VALUES ((${last}), ?)`, span, `{"edges":[${ends}]}`)
  // The record is made to say so too: otherwise the row is not read at all.
  const [from, to, letter] = JSON.parse(ends) as [string, number, string]
  const mark = edgeMark({
    from,
    to: to === placeIn(world, node.id) ? node.id : '',
    type: letter === 's' ? 'sequence' : 'branch',
  })
  const newest = 'SELECT max(n) FROM commits WHERE n / 16777216 = ?'
  world.sql(`UPDATE commits SET marks = marks || ? WHERE n = (${newest})`, mark, treeNumber(world))
  world.sql(
    `UPDATE rows SET writer = (${newest}) WHERE n = (SELECT max(n) FROM rows WHERE n < (? + 1) * 1048576)`,
    treeNumber(world),
    span,
  )
  world.sql('UPDATE rows SET size = size + 1 WHERE n = ? * 1048576', span)
}
