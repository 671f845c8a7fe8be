import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, type Runtime, tool } from 'legate'
import { jsonStore } from 'legate/store/json'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { WholeTree } from '../../src/core/store/archive.ts'
import { follows, markOf } from '../../src/core/store/codec/tree-text.ts'
import { type ChainRecord, chainHash, edgeMark } from '../../src/core/store/commit-chain.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { type Connection, connectTo } from '../../src/stores/sqlite/driver.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

const isFull = process.env['LEGATE_FULL'] === '1'

let folder: string
const open: Runtime[] = []

beforeEach(() => {
  folder = tempFolder()
})

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close()
})

describe('a later change of a stored record is found', () => {
  test('every byte of every row and commit of a tree of 200 nodes', { timeout: 120_000 }, async () => {
    const runtime = runtimeOn(sqliteStore(path.join(folder, 'rows.db')))
    const rootId = await largeTree(runtime, 4)
    for (let turn = 0; turn < 12; turn++) await runtime.run(host, '4', { conversationId: rootId }).result
    const tree = await wholeOf(runtime, rootId)
    expect(tree.rows.filter(({ letter }) => letter === 'n').length).toBeGreaterThanOrEqual(200)
    const last = lastMarks(tree)
    const unfound: string[] = []
    let changes = 0
    const note = (isFound: boolean, what: string): void => {
      changes++
      if (!isFound) unfound.push(what)
    }

    for (const row of tree.rows) {
      const { key, hash } = markOf(row)
      expect(last.get(key)).toBe(hash)
      for (const text of flips(row.text)) note(last.get(key) !== markOf({ ...row, text }).hash, row.id)
    }
    for (const [at, record] of tree.records.entries()) {
      const before = tree.records[at - 1] ?? { hash: '', seq: 0 }
      expect(follows(record, before)).toBe(true)
      for (const forged of forgeries(record)) note(!follows(forged, before), `commit ${at}`)
    }

    expect(unfound).toEqual([])
    expect(changes).toBeGreaterThan(100_000)
  })

  test('in the file itself: a byte of any column of any table', { timeout: 120_000 }, async () => {
    const file = path.join(folder, 'rows.db')
    const runtime = runtimeOn(sqliteStore(file))
    await largeTree(runtime, 12)
    const db = connectTo(file)
    const unfound: string[] = []
    const clean = await runtime.audit({ verify: true })
    expect(clean).toMatchObject({ findings: [], verified: { rows: expect.any(Number), commits: expect.any(Number) } })

    await runtime.close()
    const store = sqliteStore(file)
    for (const { table, column, n } of places(db)) {
      const restore = flipIn(db, { table, column, n })
      store.reopen()
      const { findings = [] } = (await store.archive?.verify()) ?? {}
      if (findings.length === 0) unfound.push(`${table}.${column} of ${n}`)
      restore()
    }

    db.close()
    expect(unfound).toEqual([])
    store.reopen()
    expect((await store.archive?.verify())?.findings).toEqual([])
    await store.close()
  })

  test('an edge of a type that there is not is no sequence', async () => {
    const file = path.join(folder, 'rows.db')
    const runtime = runtimeOn(sqliteStore(file))
    await largeTree(runtime, 2)
    await runtime.close()
    const db = connectTo(file)
    const [n = 0] = db.first(`SELECT n FROM rows WHERE data LIKE '{"edges":%"s"]%'`) ?? []
    db.run(`UPDATE rows SET data = replace(data, '"s"]', '"r"]') WHERE n = ?`, [n])
    db.close()
    const store = sqliteStore(file)

    expect((await store.archive?.verify())?.findings).not.toEqual([])

    await store.close()
  })

  test('a row that is put back to what it was before, left out, or added', async () => {
    const file = path.join(folder, 'rows.db')
    const runtime = runtimeOn(sqliteStore(file))
    leaveUnaudited(localStore(runtime))
    const rootId = await largeTree(runtime, 10)
    const talk = { conversationId: rootId }
    const db = connectTo(file)
    const [old] = db.first("SELECT data FROM rows WHERE data ->> '$.conversation' = ?", [rootId]) ?? []
    await runtime.run(host, 'again', talk).result
    const typesAfter = async (sql: string, values: (string | number)[]) => {
      db.exec('SAVEPOINT planted')
      db.run(sql, values)
      db.exec('RELEASE planted')
      localStore(runtime).reopen()
      return (await runtime.audit({ rootId, verify: true })).findings.map(({ type }) => type)
    }

    const set = "UPDATE rows SET data = ? WHERE data ->> '$.conversation' = ?"
    const [now] = db.first("SELECT data FROM rows WHERE data ->> '$.conversation' = ?", [rootId]) ?? []
    expect(await typesAfter(set, [String(old), rootId])).toContain('altered_row')
    expect(await typesAfter(set, [String(now), rootId])).toEqual([])
    const task = "(SELECT n FROM rows WHERE data ->> '$.kind' = 'task' LIMIT 1)"
    const [n, data] = db.first(`SELECT n, data FROM rows WHERE n = ${task}`) ?? []
    expect(await typesAfter(`DELETE FROM rows WHERE n = ${task}`, [])).toContain('missing_row')
    await typesAfter('INSERT INTO rows (n, data) VALUES (?, ?)', [Number(n), String(data)])
    const extra = String(data)
      .replace(/"node":"[^"]{8}/, '"node":"ffffffff')
      .replace(/.{4}","version/, 'ffff","version')
    const added = await typesAfter('INSERT INTO rows (n, data) VALUES (? + 500000, ?)', [Number(n), extra])
    expect(added).toContain('unknown_row')
    db.close()
  })

  test('in a JSON store: a byte of any line, while it is open and when it is opened', async () => {
    const runtime = runtimeOn(jsonStore(folder))
    await largeTree(runtime, 20)
    expect((await runtime.audit({ verify: true })).findings).toEqual([])
    const journal = path.join(folder, 'store.journal')
    const { size } = statSync(journal)
    const step = Math.ceil(size / (isFull ? 2_000 : 20))

    const unfound: number[] = []
    for (let at = step - 1; at < size; at += step) {
      flipByte(journal, at)
      const { findings = [] } = (await runtime.store.archive?.verify()) ?? {}
      if (findings.length === 0) unfound.push(at)
      flipByte(journal, at)
    }

    expect(unfound).toEqual([])
  })

  test('a store in memory has nothing that could be changed behind its back, and says so', async () => {
    const runtime = runtimeOn(memoryStore())
    await largeTree(runtime, 5)

    expect((await runtime.audit({ verify: true })).verified).toEqual({ rows: 0, commits: 0 })
  })
})

const kinds = ['memory', 'sqlite', 'json'] as const
const ways = kinds.flatMap((from) => kinds.map((to) => [from, to] as const))

describe.each(ways)('a tree of %s is taken by %s', (from, to) => {
  test('whole: rows, events, texts and hashes; and goes on there', async () => {
    const source = runtimeOn(storeOf(from, 'a'))
    const rootId = await largeTree(source, 12)
    const lines = await linesOf(source, rootId)
    const target = runtimeOn(storeOf(to, 'b'))

    expect(await target.import(lines)).toBe(rootId)

    expect((await target.audit({ verify: true })).findings).toEqual([])
    expect(rowsIn(localStore(target), rootId)).toEqual(rowsIn(localStore(source), rootId))
    expect(localStore(target).events(rootId, 0, 1e6)).toEqual(localStore(source).events(rootId, 0, 1e6))
    if (to !== 'memory') expect((await linesOf(target, rootId)).toSorted()).toEqual(lines.toSorted())
    expect(await target.import(lines)).toBe(rootId)
    const { status } = await target.run(host, 'one more', { conversationId: rootId }).result
    expect(status).toBe('completed')
    expect((await target.audit({ verify: true })).findings).toEqual([])
    await expect(target.import(lines)).rejects.toThrow(/already/)
  })
})

describe('an export', () => {
  test('of a run that waits for a person goes on in another store', async () => {
    const source = runtimeOn(sqliteStore(path.join(folder, 'a.db')))
    const run = source.run(careful, 'deploy')
    await untilAsked(source)
    const target = runtimeOn(sqliteStore(path.join(folder, 'b.db')))

    await target.import(source.export(run.conversationId), { goOn: true })
    await source.close()
    const [asked] = await target.approvals()
    await target.answer(asked?.nodeId ?? '', { allow: true })
    await target.resume()

    expect(await (await target.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'deployed' })
    expect((await target.audit({ verify: true })).findings).toEqual([])
  })

  test('is taken as one text too, as a file has it', async () => {
    const source = runtimeOn(sqliteStore(path.join(folder, 'a.db')))
    const rootId = await largeTree(source, 2)
    const text = (await linesOf(source, rootId)).map((line) => `${line.trimEnd()}\n`).join('')
    const target = runtimeOn(sqliteStore(path.join(folder, 'b.db')))

    await expect(target.import(text.slice(0, -20))).rejects.toThrow(/^Line \d+ /)
    expect(await target.import(text)).toBe(rootId)
    expect(rowsIn(localStore(target), rootId)).toEqual(rowsIn(localStore(source), rootId))
  })

  test('is refused whole when a line is missing, changed, doubled or in the wrong place', async () => {
    const source = runtimeOn(sqliteStore(path.join(folder, 'a.db')))
    const rootId = await largeTree(source, 2)
    const lines = await linesOf(source, rootId)
    const target = runtimeOn(sqliteStore(path.join(folder, 'b.db')))
    const wrong: string[] = []

    for (let at = 0; at < lines.length; at++) {
      const line = lines[at] ?? ''
      const bad = [
        lines.toSpliced(at, 1),
        lines.toSpliced(at, 0, line),
        lines.with(
          at,
          line.replace(/[a-z0-9](?=[^a-z0-9]*$)/, (one) => (one === 'a' ? 'b' : 'a')),
        ),
        lines.slice(0, at),
      ]
      for (const [which, broken] of bad.entries()) {
        const taken = await target.import(broken).then(
          () => true,
          (error: { code?: string }) => (error.code === 'invalid_input' ? false : String(error)),
        )
        if (taken !== false) wrong.push(`line ${at}, ${which}: ${taken} ${line.slice(0, 60)}`)
      }
    }

    expect(wrong).toEqual([])
    expect(localStore(target).roots({ limit: 9 })).toEqual([])
  })

  test('whose hashes fit rows that no rule would make is refused: hashes are no word of honour', async () => {
    const source = runtimeOn(sqliteStore(path.join(folder, 'a.db')))
    const rootId = await largeTree(source, 3)
    const target = runtimeOn(memoryStore())
    const lines = await linesOf(source, rootId)
    const forge = (change: (row: string) => string) => forged(lines, change)
    const hostile: readonly (readonly [(row: string) => string, RegExp])[] = [
      [(row) => row.replace('"turnCount":1', '"turnCount":"x"'), /turnCount/],
      [(row) => row.replace('"createdAt":', '"createdAt":null,"createdAtt":'), /createdAt/],
      [(row) => row.replace('"turnCount":1', '"turnCount":7'), /counts 7 turns/],
      [(row) => row.replace('"agent":{', '"agent":[],"x":{'), /agent|rows/],
    ]

    for (const [change, why] of hostile) await expect(target.import(forge(change))).rejects.toThrow(why)

    expect(localStore(target).roots({ limit: 9 })).toEqual([])
  })

  test('of a child, or of what is not there, is refused in words', async () => {
    const runtime = runtimeOn(memoryStore())
    const rootId = await largeTree(runtime, 2)
    const child = localStore(runtime)
      .conversations({ rootId, limit: 9 })
      .find(({ id }) => id !== rootId)

    await expect(linesOf(runtime, child?.id ?? '')).rejects.toThrow(/Name its root/)
    await expect(linesOf(runtime, 'nowhere')).rejects.toThrow(/no conversation/)
    await expect(runtime.import(['not json'])).rejects.toThrow(/Line 1 of the export/)
    await expect(runtime.import([])).rejects.toThrow(/not whole/)
  })
})

test('a tree that is deleted because there are too many leaves its hash and whose child was whose', async () => {
  const first = runtimeOn(jsonStore({ folder, keep: 1 }))
  const rootId = await largeTree(first, 2)
  const head = (await wholeOf(first, rootId)).records.at(-1)?.hash
  await largeTree(first, 1)

  expect(localStore(first).conversation(rootId)).toBeUndefined()
  const [stone, ...others] = (await first.store.archive?.tombstones()) ?? []
  expect(others).toEqual([])
  expect(stone).toMatchObject({ rootId, hash: head, agent: 'host', reason: 'maximum' })
  expect(stone?.conversations.filter(({ parentId }) => parentId === rootId)).toHaveLength(2)
  await first.close()
  const again = runtimeOn(jsonStore({ folder, keep: 1, compactBytes: 1 }))
  await again.run(host, '0').result
  await again.close()
  const last = runtimeOn(jsonStore({ folder, keep: 1 }))
  expect((await last.store.archive?.tombstones())?.[0]).toEqual(stone)
  expect(await last.store.archive?.tombstones()).toHaveLength(2)
})

const lookUp = tool({
  description: 'Looks up.',
  effect: 'pure',
  input: { type: 'object' },
  execute: (input) => `found ${JSON.stringify(input)} `.repeat(JSON.stringify(input).includes('long') ? 20_000 : 1),
})
const worker = agent({
  name: 'worker',
  description: 'Works.',
  instructions: 'Work.',
  model: scriptedModel(({ messages }) => `done with ${JSON.stringify(messages.at(-1)?.content)} ✓`),
})
/** Told a number, it makes that many calls of a tool and of a subagent; told anything else, it answers. */
const host = agent({
  name: 'host',
  instructions: 'Host.',
  tools: { look_up: lookUp },
  subagents: { ask: worker },
  budget: { children: 500, toolCalls: 5_000 },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    const words = last?.role === 'user' ? String(last.content) : ''
    const count = Number.parseInt(words, 10)
    if (!(count > 0)) return 'all done'
    const calls = Array.from({ length: count }, (_, at) => [
      { name: 'look_up', input: at === 0 && words.endsWith('long') ? { long: true } : { at } },
      { name: 'ask', input: { message: `part ${at}` } },
    ])
    return { calls: calls.flat() }
  }),
})
const careful = agent({
  name: 'careful',
  instructions: 'Deploy.',
  tools: { deploy: tool({ description: 'Deploys.', input: { type: 'object' }, execute: () => 'ok' }) },
  grant: { ask: ['tool:deploy'] },
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'deployed' : { calls: [{ name: 'deploy', input: {} }] },
  ),
})

function runtimeOn(store: LocalStore): Runtime {
  const runtime = createRuntime({ store, agents: [host, careful] })
  open.push(runtime)
  return runtime
}

function storeOf(kind: (typeof kinds)[number], name: string): LocalStore {
  if (kind === 'memory') return memoryStore()
  return kind === 'json' ? jsonStore(path.join(folder, name)) : sqliteStore(path.join(folder, `${name}.db`))
}

/** Each part is a task, a task that delegates, and the child's two nodes. */
async function largeTree(runtime: Runtime, parts: number): Promise<string> {
  const { status, conversationId } = await runtime.run(host, `${parts}${parts === 4 ? '' : ' long'}`).result
  expect(status).toBe('completed')
  return conversationId
}

async function untilAsked(runtime: Runtime): Promise<void> {
  while ((await runtime.approvals()).length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
}

async function linesOf(runtime: Runtime, rootId: string): Promise<string[]> {
  const lines: string[] = []
  for await (const line of runtime.export(rootId)) lines.push(line)
  return lines
}

async function wholeOf({ store }: Runtime, rootId: string): Promise<WholeTree> {
  const tree = await store.archive?.read(rootId)
  if (tree === undefined) throw new Error('there is no such tree')
  return tree
}

function lastMarks({ records }: WholeTree): Map<string, string> {
  const marks = new Map<string, string>()
  for (const { marks: text } of records) {
    for (const [, key = '', hash = ''] of text.matchAll(/([ctnl].{8})(.{16})|e.{16}/g)) marks.set(key, hash)
  }
  return marks
}

/** The text with one byte changed, for each of its bytes. */
function* flips(text: string): Generator<string> {
  const bytes = Buffer.from(text, 'utf8')
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes.readUInt8(at)
    bytes.writeUInt8(byte ^ (1 << (at % 8)), at)
    yield bytes.toString('utf8')
    bytes.writeUInt8(byte, at)
  }
}

function* forgeries(record: ChainRecord): Generator<ChainRecord> {
  for (const field of ['kind', 'events', 'marks', 'hash'] as const) {
    for (const text of flips(record[field])) yield { ...record, [field]: text }
  }
  yield { ...record, at: record.at + 1 }
  yield { ...record, seq: record.seq + 1 }
}

interface Spot {
  readonly table: string
  readonly column: string
  readonly n: number
}

const COLUMNS: readonly (readonly [table: string, columns: readonly string[]])[] = [
  ['rows', ['n', 'queue', 'due', 'mark', 'data']],
  ['keys', ['id', 'slot', 'n']],
  ['bodies', ['hash', 'text']],
  ['commits', ['n', 'root_id', 'seq', 'kind', 'at', 'events', 'marks', 'hash']],
]

/** Some records of each table, all of its columns; with the full figures every record. */
function places(db: Connection): Spot[] {
  return COLUMNS.flatMap(([table, columns]) => {
    const id = table === 'keys' ? "(id || ' ' || slot)" : 'rowid'
    const all = db.all(`SELECT ${id} FROM ${table}`).map(([n]) => n as number)
    const step = isFull ? 1 : Math.max(1, Math.floor(all.length / 4))
    const some = all.filter((_, at) => at % step === 0)
    return some.flatMap((n) => columns.map((column) => ({ table, column, n }))).filter((spot) => !isIdle(db, spot))
  })
}

/** Where edges lie in the span of their turn says nothing: they are found by their turn. */
function isIdle(db: Connection, { table, column, n }: Spot): boolean {
  if (table !== 'rows' || column !== 'n') return false
  return db.first(`SELECT 1 FROM rows WHERE n = ? AND data LIKE '{"edges"%'`, [n]) !== undefined
}

/** Changes one value; gives a way back. */
function flipIn(db: Connection, { table, column, n }: Spot): () => void {
  const id = table === 'keys' ? "(id || ' ' || slot)" : 'rowid'
  const [value = null] = db.first(`SELECT ${column} FROM ${table} WHERE ${id} = ?`, [n]) ?? []
  const changed = flipped(value)
  const keys = { id: String(n).replace(/^[^ ]+/, String(changed)), slot: String(n).replace(/[^ ]+$/, String(changed)) }
  const key = table === 'keys' && column !== 'n' ? keys[column as keyof typeof keys] : n
  db.run(`UPDATE ${table} SET ${column} = ? WHERE ${id} = ?`, [changed, n])
  const isNumber = ['rows', 'commits'].includes(table) && column === 'n'
  return () =>
    db.run(`UPDATE ${table} SET ${column} = ? WHERE ${id} = ?`, [value, isNumber ? (changed as number) : key])
}

function flipped(value: null | number | string | Uint8Array): number | string | Uint8Array {
  if (value === null) return 1
  if (typeof value === 'number') return value + 500_000
  const bytes = Buffer.from(value as string, 'utf8')
  const at = Math.floor(Math.random() * bytes.length)
  // A letter stays a letter, so that the text stays a text.
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  return typeof value === 'string' ? bytes.toString('utf8') : bytes
}

function flipByte(file: string, at: number): void {
  const byte = readFileSync(file).readUInt8(at)
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, Buffer.from([byte ^ 1]), 0, 1, at)
  closeSync(descriptor)
}

function rowsIn(store: LocalStore, rootId: string): unknown {
  const conversations = store.conversations({ rootId, limit: 1e6 })
  const turns = conversations.flatMap(({ id }) => [...store.turnsOf(id, { limit: 1e6 })])
  const nodes = turns.flatMap(({ id }) => [...store.nodesOf(id)])
  return {
    conversations,
    turns,
    nodes,
    links: turns.flatMap(({ id }) => [...store.linksOf(id)]),
    edges: nodes.map(({ id }) => [...store.edgesTo(id)].map(({ from, type }) => `${type} ${from}`).sort()),
    bodies: nodes.map(({ output: { bodyRef } }) => (bodyRef === undefined ? null : store.body(bodyRef))),
  }
}

/** An export with changed rows whose hashes are made to fit: one commit that wrote all of it. */
function forged(lines: readonly string[], change: (row: string) => string): string[] {
  const rows = lines.filter((line) => line.startsWith('["row"')).map(change)
  const parsed = rows.map((line) => JSON.parse(line) as [string, 'c' | 't' | 'n' | 'l', string | null, object])
  let marks = ''
  for (const [index, [, letter, turnId, row]] of parsed.entries()) {
    const text = rows[index]?.slice(`["row","${letter}",${JSON.stringify(turnId)},`.length, -1) ?? ''
    const id = String(Object.values(row)[0])
    const { key, hash } = markOf({ letter, id, turnId, text })
    marks += key + hash
  }
  const events = lines.filter((line) => line.startsWith('["events"')).flatMap((line) => JSON.parse(line)[1])
  for (const line of lines.filter((one) => one.startsWith('["edge"'))) {
    const [, , from, to, type] = JSON.parse(line)
    marks += edgeMark({ from, to, type })
  }
  const record = { kind: 'snapshot', at: 1, seq: events.length, marks, events: '' }
  const text = JSON.stringify(events)
  const hash = chainHash('', { ...record, events: text })
  const { events: _, ...meta } = record
  const body = lines.filter((line) => line.startsWith('["edge"') || line.startsWith('["body"'))
  const all = [
    JSON.stringify({ ...JSON.parse(lines[0] ?? ''), hash }),
    `["commit",${JSON.stringify({ ...meta, hash })}]`,
    `["events",${text}]`,
    ...rows,
    ...body,
  ]
  return [...all, JSON.stringify({ end: hash, lines: all.length + 1 })]
}
