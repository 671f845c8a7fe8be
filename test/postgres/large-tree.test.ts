import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { systemScheduler } from '../../src/core/base/clock.ts'
import { ConversationPages } from '../../src/core/conversation/conversation-pages.ts'
import { emptyCommit } from '../../src/core/graph/commit.ts'
import { BUILT_IN_KINDS } from '../../src/core/graph/kinds.ts'
import type { TreeReader } from '../../src/core/graph/reader.ts'
import type { Conversation, Id, Node, Turn } from '../../src/core/graph/rows.ts'
import { expansionIds } from '../../src/core/graph/tasks.ts'
import { readTreeData } from '../../src/core/operations/look/tree-data.ts'
import { childIds } from '../../src/core/rules/delegation/spawn.ts'
import { createRuntime, type Runtime } from '../../src/core/runtime/runtime.ts'
import { agent } from '../../src/core/runtime/standalone.ts'
import { toLines } from '../../src/core/store/codec/tree-text.ts'
import { look } from '../../src/core/store/look.ts'
import type { Store } from '../../src/core/store/store.ts'
import { toUIMessages } from '../../src/doors/ai-sdk.ts'
import { Database } from '../../src/stores/postgres/connection/database.ts'
import type { PostgresClient, PostgresPool } from '../../src/stores/postgres/connection/driver.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { Trees } from '../../src/stores/postgres/replica/trees.ts'
import { postgresTransport } from '../../src/stores/postgres/transport.ts'
import { scriptedModel } from '../../src/testing/stand-ins/scripted-model.ts'
import { figure } from '../crash/support/figure.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { leaveUnaudited } from '../support/unaudited.ts'
import { COUNTING, StatementCounter, sumOf } from './support/statements.ts'

const isFull = process.env['LEGATE_FULL'] === '1'
const TURNS = isFull ? 33_400 : 5_000
/** Of the newest turns, what a model is shown, and one delegation: some hundred rows, however long the conversation is. */
const FEW = 600
/** Twenty turns, with the runs that they delegated and those around them. */
const MORE = 1_500

describe.skipIf(noPostgres !== undefined)('a conversation of many thousands of turns', async () => {
  const server =
    noPostgres === undefined ? await usePostgres({ settings: COUNTING }) : (undefined as unknown as PostgresServer)

  test('a further turn or a page loads few rows, in the process that wrote the conversation and in another', async () => {
    const writer = await open(server)
    const conversationId = await writer.say('first')
    const turnAt = await repeatTurn(writer.store, conversationId, TURNS)
    const another = await open(server)
    for (const { name, opened } of [
      { name: 'the writer', opened: writer },
      { name: 'another process', opened: another },
    ]) {
      const first = await rowsOf(opened, () => opened.say('again', conversationId))
      const more = await rowsOf(opened, () => opened.say('and again', conversationId))
      const page = await rowsOf(opened, async () => {
        const conversation = await opened.runtime.conversation(conversationId)
        const { transcript, beforeRunId } = await conversation.transcriptPage({ limitTurns: 20 })
        expect(transcript.length).toBeGreaterThan(20)
        const older = await conversation.transcriptPage({ limitTurns: 20, beforeRunId: beforeRunId ?? '' })
        expect(older.runIds.length).toBe(20)
        const old = await conversation.transcriptPage({ limitTurns: 20, beforeRunId: turnAt(100) })
        expect(old.runIds.at(-1)).toBe(turnAt(99))
      })
      figure('large tree', `${TURNS} turns, ${name}: ${first} rows, then ${more}, for three pages ${page}`)
      expect(Math.max(first, more, page)).toBeLessThan(FEW)
    }
    const { short, long } = await blocksOf(server, writer, conversationId)
    figure('large tree', `blocks that the commits of one more turn read: ${long}, in a young conversation ${short}`)
    expect(long / short).toBeLessThan(1.3)
    // Each sees what the other wrote, and nothing is broken.
    const turns = await another.store.openTurns(9)
    expect(turns).toEqual([])
    await writer.close()
    await another.close()
  })

  test('each surface loads what it shows, and lets other work run', async () => {
    const reader = await open(server)
    const rootId = await longest(server)
    const turns = await look(reader.store, rootId, (tree) => tree.turnsOf(rootId, { last: 100, limit: 1 }))
    for (const [what, ask] of Object.entries(asksOf(reader, rootId, turns[0]?.id ?? ''))) {
      const { rows, gap } = await told(reader, what, ask)
      expect(rows, what).toBeLessThan(MORE)
      expect(gap, what).toBeLessThan(500)
    }
    await reader.close()
  })

  test('audits, pictures, exports and traces of a whole tree read it in parts', async () => {
    const writer = await open(server)
    const rootId = await writer.say('first')
    await repeatTurn(writer.store, rootId, isFull ? TURNS : 600)
    await writer.close()
    await analyze(server)
    const reader = await open(server)
    const { runtime, store } = reader
    const audit = await told(reader, 'an audit', async () => {
      const { findings, checked } = await runtime.audit({ rootId })
      expect(findings).toEqual([])
      expect(checked.turns).toBe(2 * (isFull ? TURNS : 600))
    })
    const lines: string[] = []
    const parts = await told(reader, 'an export', async () => {
      for await (const line of runtime.export(rootId)) lines.push(line)
    })
    const trace = await told(reader, 'a trace', () => runtime.otlp(rootId))
    const picture = await told(reader, 'a picture', () => runtime.picture(rootId))
    for (const { most } of [audit, trace, picture]) expect(most).toBeLessThan(5_000)
    expect(parts.most).toBeLessThan(1_001)
    // All of it, at one moment.
    const whole = await store.archive?.read(rootId)
    expect(lines.length).toBeGreaterThan(5_000)
    expect(whole !== undefined && isDeepStrictEqual(lines, [...toLines(whole)])).toBe(true)
    if (isFull) await told(reader, 'an audit with hashes', () => runtime.audit({ rootId, verify: true }))
    await runtime.forget(rootId)
    await reader.close()
  })

  test('a commit that another process tells of while the tree is being loaded is in the next read', async () => {
    const [writer, reader] = [await open(server), await open(server)]
    const rootId = await longest(server)
    for (let round = 0; round < 10; round++) {
      const early = look(reader.store, rootId, (tree) => tree.lastSeq(rootId))
      await writer.say(`round ${round}`, rootId)
      const now = await look(writer.store, rootId, (tree) => tree.lastSeq(rootId))
      const [seen, newest] = await look(reader.store, rootId, (tree) => [
        tree.lastSeq(rootId),
        tree.turnsOf(rootId, { limit: 1 })[0]?.input,
      ])
      expect({ seen, newest }).toEqual({ seen: now, newest: `round ${round}` })
      await early
    }
    await writer.close()
    await reader.close()
  })

  test('old turns that are read are let go again', async () => {
    const database = new Database({ ...PLACE, url: server.url() })
    const rootId = await longest(server)
    const trees = treesOn(database)
    let before: Id | null = null
    let read = 0
    const sizes: number[] = []
    do {
      const query: { limitTurns: number; beforeRunId?: Id } = { limitTurns: 200 }
      if (before !== null) query.beforeRunId = before
      const pageIn = (tree: TreeReader) => new ConversationPages(tree, rootId, BUILT_IN_KINDS).transcript(query)
      const page = await look({ near: (id) => trees.near(id), tree: (id) => trees.tree(id) }, rootId, pageIn)
      before = page.beforeRunId
      read += page.transcript.length
      await systemScheduler.pause(1)
      sizes.push(trees.known(rootId)?.size ?? 0)
    } while (before !== null)
    figure('large tree', `reading ${read} lines back to the first keeps at most ${Math.max(...sizes)} rows`)
    expect(read).toBeGreaterThan(2 * TURNS)
    expect(Math.max(...sizes)).toBeLessThan(6_000)
    // Whoever wants all of it gets all of it.
    expect((await trees.tree(rootId)).turnsOf(rootId, { limit: TURNS * 2 }).length).toBeGreaterThan(TURNS)
    expect(trees.known(rootId)?.isWhole).toBe(false)
    await database.close()
  })
})

/** The conversation that has the most commits. */
async function longest(server: PostgresServer): Promise<Id> {
  const database = new Database({ ...PLACE, url: server.url() })
  const [row] = await database.query('SELECT @.id_text(root_id) FROM @.trees ORDER BY n DESC LIMIT 1')
  await database.close()
  return String(row?.[0])
}

/** What the commits of one more turn cost the server, of this conversation and of a young one. */
async function blocksOf(server: PostgresServer, { say }: Opened, conversationId: Id) {
  const counter = await StatementCounter.open(server.url())
  const young = await say('young')
  await counter.expectSmallTrees()
  const cost = async (id: Id) => {
    const several = async () => {
      for (let times = 0; times < 12; times++) await say('once more', id)
    }
    // Each connection makes its plans anew.
    await several()
    return sumOf(await counter.during(several), /commit_1/).blocks
  }
  const found = { short: await cost(young), long: await cost(conversationId) }
  await counter.close()
  return found
}

interface Counts {
  rows: number
  most: number
}

interface Opened {
  readonly runtime: Runtime
  readonly store: Store
  readonly counts: Counts
  say(text: string, conversationId?: Id): Promise<Id>
  close(): Promise<void>
}

async function open(server: PostgresServer): Promise<Opened> {
  const pool = new pg.Pool({ connectionString: server.url(), max: 6 })
  const counts = { rows: 0, most: 0 }
  const store = postgresStore({ pool: counting(pool as unknown as PostgresPool, counts) })
  leaveUnaudited(store)
  const sub = agent({ name: 'sub', instructions: '', model: scriptedModel(() => 'found') })
  const host = agent({
    name: 'host',
    instructions: '',
    contextTurns: 10,
    subagents: { sub: { agent: sub, briefing: 'none' } },
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'sub', input: { message: 'look' } }] },
    ),
  })
  const runtime = createRuntime({ store, agents: [host, sub] })
  return {
    runtime,
    store,
    counts,
    say: async (text, conversationId) => {
      const run = runtime.run(host, text, conversationId === undefined ? {} : { conversationId })
      const types: string[] = []
      for await (const { type } of run.events()) types.push(type)
      expect(types.filter((type) => type === 'delegation-end').length).toBe(1)
      const outcome = await run.result
      expect(outcome.status).toBe('completed')
      return outcome.conversationId
    },
    close: async () => {
      await runtime.close()
      await store.close()
      await pool.end()
    },
  }
}

/** Counts the rows that come from the database, and the most that one answer has. */
function counting(pool: PostgresPool, counts: Counts): PostgresPool {
  const clientOf = (client: PostgresClient): PostgresClient => ({
    query: async (config) => {
      const result = await client.query(config)
      counts.rows += result.rows?.length ?? 0
      counts.most = Math.max(counts.most, result.rows?.length ?? 0)
      return result
    },
    on: (event, heard) => client.on(event, heard),
    off: (event, heard) => client.off(event, heard),
    release: (isBroken) => client.release(isBroken),
  })
  return {
    connect: async () => clientOf(await pool.connect()),
    end: () => pool.end(),
    on: (event, heard) => pool.on(event, heard),
  }
}

/** What surfaces ask of a long conversation, of its newest turns and of old ones: each answer costs what it shows. */
function asksOf({ runtime, store }: Opened, conversationId: Id, oldId: Id): Asks {
  const conversation = () => runtime.conversation(conversationId)
  return {
    'UI messages': async () => toUIMessages(await conversation(), { limitTurns: 20 }),
    'old UI messages': async () => toUIMessages(await conversation(), { limitTurns: 20, beforeRunId: oldId }),
    'a graph': () => runtime.graph(conversationId),
    'an old graph': () => runtime.graph(conversationId, { before: oldId }),
    'a tree': () => runtime.tree(conversationId, { limitTurns: 20 }),
    'a timeline': () => runtime.timeline(oldId),
    'a trace': () => runtime.otlp(oldId),
    'the usage': () => runtime.usage(oldId),
    'a difference': () => runtime.diff(oldId, oldId),
    why: () => runtime.why(oldId),
    'the inbox': () => runtime.inbox(),
    'fields of all': async () => read((await runtime.attach(oldId)).fields(undefined, { agent: '*' })),
    'events with fields': async () => read((await runtime.attach(oldId)).events({ fields: true })),
    'rows for a remote desk': () => readTreeData(store, conversationId),
  }
}

interface Asks {
  readonly [what: string]: () => Promise<unknown>
}

async function read(all: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of all);
}

async function told({ counts }: Opened, what: string, ask: () => Promise<unknown>): Promise<Told> {
  const gaps = new Gaps()
  const before = counts.rows
  counts.most = 0
  const began = performance.now()
  await ask()
  const found = { rows: counts.rows - before, most: counts.most, gap: gaps.end() }
  const time = `${Math.round(performance.now() - began)} ms, the loop stood still for ${found.gap} ms at most`
  figure('large tree', `${what}: ${found.rows} rows, at most ${found.most} at a time, ${time}`)
  return found
}

interface Told extends Counts {
  /** The longest time for which the event loop stood still. */
  readonly gap: number
}

/** How long the event loop stands still. */
class Gaps {
  private last = performance.now()
  private longest = 0
  private readonly timer = setInterval(() => this.note(), 5)

  private note(): void {
    const now = performance.now()
    this.longest = Math.max(this.longest, now - this.last - 5)
    this.last = now
  }

  end(): number {
    this.note()
    clearInterval(this.timer)
    return Math.round(this.longest)
  }
}

async function rowsOf({ counts }: Opened, work: () => Promise<unknown>): Promise<number> {
  const before = counts.rows
  await work()
  return counts.rows - before
}

/** As the server does by itself, some time after many rows were written. */
async function analyze(server: PostgresServer): Promise<void> {
  const database = new Database({ ...PLACE, url: server.url() })
  await database.query('ANALYZE @.rows')
  await database.close()
}

const PLACE = { pool: undefined, schema: 'legate', readOnly: false, busyMs: 5_000, connections: 4 }

function treesOn(database: Database): Trees {
  const transport = postgresTransport(database, { isRelaxed: false, known: () => 0 })
  return new Trees({
    transport: { ...transport, listen: () => () => undefined },
    requireOpen: () => undefined,
    defer: () => new Promise((resolve) => systemScheduler.defer(resolve)),
    pause: (ms) => systemScheduler.pause(ms),
    patienceMs: 5_000,
    now: () => performance.now(),
  })
}

/** Writes turns like the first one, which has ended: each with its events, its call and the run that it delegated. */
async function repeatTurn(store: Store, rootId: Id, count: number): Promise<(ordinal: number) => Id> {
  const { conversations, turns, nodes, links, edges, events } = await firstTurn(store, rootId)
  const names = new RegExp([...conversations.slice(1), ...turns, ...nodes].map(({ id }) => id).join('|'), 'g')
  let [root] = conversations as [Conversation]
  for (let from = 1; from < count; from += LOT) {
    const ordinals = Array.from({ length: Math.min(LOT, count - from) }, (_, at) => from + at)
    const copies = <Row>(rows: readonly Row[], change: (row: Row, ordinal: number) => object = () => ({})): Row[] =>
      ordinals.flatMap((ordinal) => {
        const ids = idsOfCopy(nodes, ordinal)
        const text = JSON.stringify(rows).replaceAll(names, (id) => ids(id))
        return (JSON.parse(text) as Row[]).map((row) => ({ ...row, version: 1, ...change(row, ordinal) }))
      })
    root = { ...root, version: root.version + 1, turnCount: from + ordinals.length }
    await store.commit({
      ...emptyCommit('mutate', Date.now(), rootId),
      id: `repeat-${from}`,
      conversations: [root, ...copies(conversations.slice(1))],
      turns: copies(turns, (turn, ordinal) => ({
        afterSeq: turn.afterSeq + ordinal * events.length,
        ordinal: turn.laneId === rootId ? ordinal : turn.ordinal,
      })),
      nodes: copies(nodes),
      links: copies(links),
      edges: copies(edges),
      events: copies(events),
      plannedOn: -1,
    })
  }
  return (ordinal) => idsOfCopy(nodes, ordinal)(turns[0]?.id ?? '')
}

/** The ids of a copy. Those of tasks and of what they start are derived, as rules do it. */
function idsOfCopy(nodes: readonly Node[], ordinal: number): (id: Id) => Id {
  const copyOf = (id: Id) => id.slice(0, -6) + ordinal.toString(16).padStart(6, '0')
  const ids = new Map<Id, Id>()
  for (const { id, output } of nodes) {
    const count = output.calls?.length ?? 0
    if (count === 0) continue
    const made = [expansionIds(id, count), expansionIds(copyOf(id), count)] as const
    made[0].forEach((old, at) => {
      ids.set(old, made[1][at] ?? '')
    })
    const [child, copy] = made.map(([taskId = '']) => {
      const { turn, conversation, nodes: others } = childIds(taskId, 1)
      return [turn, conversation, ...others]
    }) as [Id[], Id[]]
    child.forEach((old, at) => {
      ids.set(old, copy[at] ?? '')
    })
  }
  return (id) => ids.get(id) ?? copyOf(id)
}

/** So many turns are written with one commit. */
const LOT = 25

async function firstTurn(store: Store, rootId: Id) {
  const tree = await store.tree(rootId)
  const [first] = tree.turnsOf(rootId, { limit: 1 }) as [Turn]
  const links = tree.linksOf(first.id)
  const turns = [first, ...links.flatMap(({ id }) => tree.turn(id) ?? [])]
  const nodes = turns.flatMap(({ id }) => tree.nodesOf(id))
  const conversations = [...new Set(turns.map(({ conversationId }) => conversationId))]
  return {
    conversations: conversations.flatMap((id) => tree.conversation(id) ?? []),
    turns,
    nodes,
    links,
    edges: nodes.flatMap(({ id }) => tree.edgesTo(id)),
    events: await store.events(rootId, 0, 1_000),
  }
}
