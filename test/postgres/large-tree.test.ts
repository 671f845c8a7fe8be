import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { systemScheduler } from '../../src/base/clock.ts'
import { ConversationPages } from '../../src/conversation/conversation-pages.ts'
import { emptyCommit } from '../../src/graph/commit.ts'
import { BUILT_IN_KINDS } from '../../src/graph/kinds.ts'
import type { TreeReader } from '../../src/graph/reader.ts'
import type { Id, Turn } from '../../src/graph/rows.ts'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts'
import { agent } from '../../src/runtime/standalone.ts'
import { look } from '../../src/store/look.ts'
import { Database } from '../../src/store/postgres/database.ts'
import type { PostgresClient, PostgresPool } from '../../src/store/postgres/driver.ts'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { postgresTransport } from '../../src/store/postgres/transport.ts'
import { Trees } from '../../src/store/replica/trees.ts'
import type { Store } from '../../src/store/store.ts'
import { scriptedModel } from '../../src/testing/stand-ins/scripted-model.ts'
import { figure } from '../crash/support/figure.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

const isFull = process.env['LEGATE_FULL'] === '1'
const TURNS = isFull ? 33_400 : 5_000
/** Of the newest turns, what a model is shown, and one delegation: some hundred rows, however long the conversation is. */
const FEW = 600

describe.skipIf(noPostgres !== undefined)('a conversation of many thousands of turns', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)

  test('one more turn loads few rows, in the process that wrote it and in another; so does a page of it', async () => {
    const writer = await open(server)
    const conversationId = await writer.say('first')
    await repeatTurn(writer.store, conversationId, TURNS)
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
        const old = await conversation.transcriptPage({ limitTurns: 20, beforeRunId: `${conversationId}-t100` })
        expect(old.runIds.at(-1)).toBe(`${conversationId}-t99`)
      })
      figure('large tree', `${TURNS} turns, ${name}: ${first} rows, then ${more}, for three pages ${page}`)
      expect(Math.max(first, more, page)).toBeLessThan(FEW)
    }
    // Each sees what the other wrote, and nothing is broken.
    const turns = await another.store.openTurns(9)
    expect(turns).toEqual([])
    await writer.close()
    await another.close()
  })

  test('old turns that are read are let go again', async () => {
    const database = new Database({ ...PLACE, url: server.url() })
    const [row] = await database.query('SELECT @.id_text(root_id) FROM @.trees')
    const rootId = String(row?.[0])
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

interface Opened {
  readonly runtime: Runtime
  readonly store: Store
  readonly counts: { rows: number }
  say(text: string, conversationId?: Id): Promise<Id>
  close(): Promise<void>
}

async function open(server: PostgresServer): Promise<Opened> {
  const pool = new pg.Pool({ connectionString: server.url(), max: 6 })
  const counts = { rows: 0 }
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

/** Counts the rows that come from the database. */
function counting(pool: PostgresPool, counts: { rows: number }): PostgresPool {
  const clientOf = (client: PostgresClient): PostgresClient => ({
    query: async (config) => {
      const result = await client.query(config)
      counts.rows += result.rows?.length ?? 0
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

async function rowsOf({ counts }: Opened, work: () => Promise<unknown>): Promise<number> {
  const before = counts.rows
  await work()
  return counts.rows - before
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

/** Writes turns like the first one, which has ended. */
async function repeatTurn(store: Store, rootId: Id, count: number): Promise<void> {
  const tree = await store.tree(rootId)
  const [turn] = tree.turnsOf(rootId, { limit: 1 }) as [Turn]
  const nodes = tree.nodesOf(turn.id).filter(({ kind }) => kind !== 'task')
  let conversation = tree.conversation(rootId)
  for (let from = 1; from < count; from += 1_000) {
    if (conversation === undefined) throw new Error('it is gone')
    const ordinals = Array.from({ length: Math.min(1_000, count - from) }, (_, at) => from + at)
    const turnCount = from + ordinals.length
    conversation = { ...conversation, version: conversation.version + 1, turnCount }
    await store.commit({
      ...emptyCommit('mutate', Date.now(), rootId),
      id: `repeat-${from}`,
      conversations: [conversation],
      turns: ordinals.map((ordinal) => ({ ...turn, id: `${rootId}-t${ordinal}`, version: 1, ordinal })),
      nodes: ordinals.flatMap((ordinal) =>
        nodes.map((node) => ({ ...node, id: `${node.id}-${ordinal}`, version: 1, turnId: `${rootId}-t${ordinal}` })),
      ),
      plannedOn: -1,
    })
  }
}
