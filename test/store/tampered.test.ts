import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Logger } from '../../src/doors/hooks.ts'
import { agent, createRuntime, isLegateError, type Run, type Runtime, tool } from '../../src/index.ts'
import { jsonStore } from '../../src/stores/json/index.ts'
import { readLine, toLine } from '../../src/stores/json/record.ts'
import { type Connection, connectTo } from '../../src/stores/sqlite/driver.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

const NOTHING = { type: 'object' } as const
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** Delegates, then waits for a person; with the word of one it deploys, and ends. */
function makeAgents() {
  const search = agent({
    name: 'search',
    description: 'Searches.',
    instructions: 'Search.',
    model: scriptedModel(() => 'Found.'),
  })
  const deploy = tool({
    description: 'Deploys.',
    input: NOTHING,
    approval: 'required',
    execute: () => 'deployed',
  })
  const lookup = tool({
    description: 'Looks up.',
    input: NOTHING,
    effect: 'pure',
    execute: () => 'long '.repeat(15_000),
  })
  const lead = agent({
    name: 'lead',
    instructions: 'Lead.',
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool') return 'Done.'
      if (last?.content === 'Find it.') {
        return {
          calls: [
            { name: 'search', input: { message: 'x' } },
            { name: 'lookup', input: {} },
          ],
        }
      }
      return { calls: [{ name: 'deploy', input: {} }] }
    }),
    subagents: { search },
    tools: { lookup, deploy },
  })
  const other = agent({ name: 'other', instructions: 'Other.', model: scriptedModel(() => 'Fine.') })
  return { lead, other, search }
}

const agents = makeAgents()
let file: string

beforeEach(() => {
  file = path.join(tempFolder(), 'legate.db')
})

interface Scene {
  readonly runtime: Runtime
  readonly run: Run
  readonly rootId: string
  readonly nodeId: string
}

function openRuntime(): Runtime {
  const runtime = createRuntime({ store: sqliteStore(file), agents: Object.values(agents), logger: SILENT })
  leaveUnaudited(localStore(runtime))
  return runtime
}

/** A conversation whose second run waits for a person. */
async function makeScene(runtime = openRuntime()): Promise<Scene> {
  const { conversationId } = await runtime.run(agents.lead, 'Find it.', { title: 'Plan' }).result
  const run = runtime.run(agents.lead, 'Deploy it.', { conversationId })
  for await (const { type } of run) if (type === 'approval-request') break
  const node = localStore(runtime)
    .awaiting({ limit: 9 })
    .find(({ turnId }) => turnId === run.id)
  return { runtime, run, rootId: conversationId, nodeId: node?.id ?? '' }
}

function attack(change: (db: Connection) => void): void {
  const db = connectTo(file)
  try {
    db.exec('PRAGMA busy_timeout = 5000')
    change(db)
  } finally {
    db.close()
  }
}

/** Lets the run go on; gives how it ended. */
async function goOn({ runtime, run, nodeId }: Scene): Promise<string> {
  try {
    await runtime.answer(nodeId, { allow: true })
    return (await run.result).status
  } catch (error) {
    if (!isLegateError(error)) throw error
    return error.code
  }
}

async function findingsIn(runtime: Runtime): Promise<string[]> {
  const { findings } = await runtime.audit({ verify: true })
  return findings.map(({ type }) => type)
}

/** Sets a field of the one row that has this text in it, and is of that kind. */
function edit(kind: string, has: string, set: string): (db: Connection) => void {
  return (db) => {
    const sql = `UPDATE rows SET data = json_set(data, ${set})
      WHERE n = (SELECT max(n) FROM rows WHERE data ->> '$.${kind}' IS NOT NULL AND instr(data, ?) > 0)`
    if (db.run(sql, [has]) !== 1) throw new Error('The attack changed nothing.')
  }
}

const TASK = `SELECT max(n) FROM rows WHERE queue = 'a'`
const NODES = `SELECT n FROM rows WHERE data ->> '$.node' IS NOT NULL ORDER BY n DESC`

type Attack = readonly [name: string, change: (db: Connection) => void]

/** What the runtime reads when it goes on. */
const STOPS: readonly Attack[] = [
  ['the title of the conversation', edit('conversation', 'Plan', "'$.title', 'Forged'")],
  ['a ceiling that allows all', edit('conversation', 'Plan', `'$.ceiling', json('[{"use":["**"]}]')`)],
  ['layers of the run that allow all', edit('turn', 'Deploy it.', `'$.ceiling', json('[{"use":["**"]}]')`)],
  ['the agent of the conversation', edit('conversation', 'Plan', "'$.agent.hash', 'forged'")],
  ['the owner of the conversation', edit('conversation', 'Plan', "'$.owner', 'mallory'")],
  ['the limits of the run', edit('turn', 'Deploy it.', "'$.limits[1]', 999999")],
  ['what the run has used', edit('turn', 'Deploy it.', "'$.account[0]', 0")],
  ['the state of the run', edit('turn', 'Deploy it.', "'$.state', 'queued'")],
  ['the input of the run', edit('turn', 'Deploy it.', "'$.input', 'Drop it all.'")],
  ['the version of the run', edit('turn', 'Deploy it.', "'$.version', 99")],
  ['the place of the run', edit('turn', 'Deploy it.', "'$.ordinal', 7")],
  ['the arguments of a call that waits', edit('node', 'deploy', `'$.input.call.input', json('{"all":true}')`)],
  ['the state of a call that waits', edit('node', 'deploy', "'$.state', 'pending'")],
  ['an approval', edit('node', 'deploy', `'$.metadata.approval', json('{"allow":true}')`)],
  ['the answer of a run before', edit('node', 'Done.', "'$.output.content', 'Forged.'")],
  ['the whole row, no JSON', (db) => db.run(`UPDATE rows SET data = 'x' WHERE n = (${TASK})`, [])],
  [
    'two nodes that change places',
    (db) => {
      const [a, b] = db.all(`${NODES} LIMIT 2`).map(([n]) => Number(n))
      const text = (n = 0) => String(db.first('SELECT data FROM rows WHERE n = ?', [n])?.[0])
      const [first, second] = [text(a), text(b)]
      db.run('UPDATE rows SET data = ? WHERE n = ?', [second, a ?? 0])
      db.run('UPDATE rows SET data = ? WHERE n = ?', [first, b ?? 0])
    },
  ],
  ['a node that is deleted', (db) => db.run(`DELETE FROM rows WHERE n = (${NODES} LIMIT 1 OFFSET 1)`, [])],
  [
    'a node that is deleted with its key',
    (db) => {
      const [n = 0] = db.first(`${NODES} LIMIT 1 OFFSET 2`) ?? []
      db.run('DELETE FROM rows WHERE n = ?', [n])
      db.run('DELETE FROM keys WHERE n = ?', [n])
    },
  ],
  ['the run that is deleted', (db) => db.run(`DELETE FROM rows WHERE data ->> '$.input' = 'Deploy it.'`, [])],
  [
    'all rows of the run',
    (db) => {
      const span = `SELECT n / 1048576 FROM rows WHERE data ->> '$.input' = 'Deploy it.'`
      db.run(`DELETE FROM rows WHERE n / 1048576 = (${span})`, [])
    },
  ],
  [
    'a node that is put in',
    (db) => {
      const [n, data] = db.first('SELECT n, data FROM rows WHERE n = (SELECT max(n) FROM rows)') ?? []
      const forged = String(data).replace(/"node":"[^"]*"/, '"node":"forged"')
      db.run('INSERT INTO rows (n, data) VALUES (?, ?)', [Number(n) + 1, forged])
    },
  ],
  [
    'a node of another run in the place of one',
    (db) => {
      const first = `SELECT data FROM rows WHERE n = (SELECT min(n) FROM rows WHERE data ->> '$.node' IS NOT NULL)`
      db.run(`UPDATE rows SET data = (${first}) WHERE n = (${TASK})`, [])
    },
  ],
  ['an edge', (db) => db.run(`UPDATE rows SET data = '{"edges":[[1,3,"s"]]}' WHERE n = (${LAST_EDGES})`, [])],
  ['an edge that is deleted', (db) => db.run(`DELETE FROM rows WHERE n = (${LAST_EDGES})`, [])],
  ['a delegation', edit('link', 'search', "'$.contract', 'forged'")],
  ['which commit wrote a row', (db) => db.run(`UPDATE rows SET writer = writer - 1 WHERE n = (${TASK})`, [])],
  ['that a commit wrote a row', (db) => db.run(`UPDATE rows SET writer = NULL WHERE n = (${TASK})`, [])],
  ['the last row of the run', (db) => db.run('DELETE FROM rows WHERE n = (SELECT max(n) FROM rows)', [])],
  [
    'how many rows the run has',
    (db) => db.run('UPDATE rows SET size = size - 1 WHERE n = (SELECT max(n) / 1048576 * 1048576 FROM rows)', []),
  ],
  [
    'a row that is put in as if a commit had written it',
    (db) =>
      db.run('INSERT INTO rows (n, writer, data) SELECT n + 1, writer, data FROM rows ORDER BY n DESC LIMIT 1', []),
  ],
  ['the last commit, deleted', (db) => db.run('DELETE FROM commits WHERE n = (SELECT max(n) FROM commits)', [])],
  [
    'what a commit wrote',
    (db) => db.run(`UPDATE commits SET marks = upper(marks) WHERE n / 16777216 = (${LAST_TREE})`, []),
  ],
]

const LAST_TREE = 'SELECT max(n) / 16777216 FROM commits'
const LAST_EDGES = `SELECT max(n) FROM rows WHERE data ->> '$.edges' IS NOT NULL`

/** A process that runs has read it before. */
const STOPS_A_NEW_PROCESS: readonly Attack[] = [
  [
    'a run before, with all that leads to it',
    (db) => {
      const span = `SELECT n / 1048576 FROM rows WHERE data ->> '$.input' = 'Find it.'`
      const [found = 0] = db.first(span) ?? []
      for (const table of ['rows', 'keys']) db.run(`DELETE FROM ${table} WHERE n / 1048576 = ?`, [found])
    },
  ],
]

/** Nothing is decided by them; whoever looks is told. */
const NAMED: readonly Attack[] = [
  ['an event', (db) => db.run(`UPDATE commits SET events = replace(events, 'Find it.', 'Forged.')`, [])],
  ['a commit in the middle, deleted', (db) => db.run('DELETE FROM commits WHERE n % 16777216 = 3 AND seq > 3', [])],
  ['the time of a commit', (db) => db.run('UPDATE commits SET at = at + 1', [])],
  ['a child of a run before', edit('turn', '"rootId"', "'$.input', 'Forged.'")],
  ['a long text that nothing reads', (db) => db.run('UPDATE bodies SET text = ?', [Buffer.from('Forged.')])],
]

describe('a row that was changed while no process runs', () => {
  test.each([...STOPS, ...STOPS_A_NEW_PROCESS])('is never built upon, and other trees go on: %s', async (_, change) => {
    const scene = await makeScene()
    await scene.runtime.close()
    attack(change)
    const runtime = openRuntime()
    expect((await findingsIn(runtime)).length).toBeGreaterThan(0)

    await runtime.resume()
    const ended = await goOn({ ...scene, runtime, run: await attached(runtime, scene) })

    expect(ended).toBe('tampered')
    expect((await findingsIn(runtime)).length).toBeGreaterThan(0)
    expect((await runtime.run(agents.other, 'Hello.').result).status).toBe('completed')
    await runtime.close()
  })

  test.each(NAMED)('is named by an audit before and after the runtime went on: %s', async (_, change) => {
    const scene = await makeScene()
    await scene.runtime.close()
    attack(change)
    const runtime = openRuntime()
    const before = await findingsIn(runtime)

    await runtime.resume()
    await goOn({ ...scene, runtime, run: await attached(runtime, scene) })

    expect(before.length).toBeGreaterThan(0)
    expect((await runtime.audit({ repair: true, verify: true })).repaired).toEqual([])
    expect(await findingsIn(runtime)).toEqual(expect.arrayContaining([...new Set(before)]))
    await runtime.close()
  })
})

describe('a tree that was changed while a run of it is open', () => {
  test.each(STOPS)('can be deleted, and nothing else with it: %s', async (_, change) => {
    const first = openRuntime()
    const { conversationId } = await first.run(agents.lead, 'Find it.').result
    const { rootId } = await makeScene(first)
    await first.close()
    attack(change)
    const runtime = openRuntime()

    const stone = await runtime.forget(rootId, 'it was changed')

    expect(stone).toMatchObject({ rootId, reason: 'it was changed' })
    expect(await runtime.store.archive?.tombstones()).toEqual([stone])
    expect(localStore(runtime).conversation(rootId)).toBeUndefined()
    expect([runtime.store.tampered?.(), await findingsIn(runtime)]).toEqual([[], []])
    expect((await runtime.run(agents.lead, 'Find it.', { conversationId }).result).status).toBe('completed')
    await runtime.close()
  })

  test('is not cancelled: the error has the command that deletes it, and nothing is written', async () => {
    const { runtime, run, rootId } = await makeScene()
    attack(edit('turn', 'Deploy it.', "'$.limits[1]', 999999"))
    const before = readOne('SELECT max(n) FROM commits')

    await expect(runtime.cancel(run.id)).rejects.toMatchObject({
      code: 'tampered',
      message: expect.stringContaining(`legate forget ${rootId}`),
    })
    await expect(runtime.forget(run.id, 'by its run')).rejects.toMatchObject({
      code: 'invalid_input',
      details: { rootId },
    })

    expect(readOne('SELECT max(n) FROM commits')).toBe(before)
    await expect(run.result).rejects.toMatchObject({ code: 'tampered' })
    await runtime.forget(rootId, 'by its root')
    await expect(runtime.attach(run.id)).rejects.toThrow(/was deleted/)
    await runtime.close()
  })

  test('is not deleted by who prunes; one that is as it was written is not deleted while it is open', async () => {
    const scene = await makeScene()
    const open = await makeScene(scene.runtime)
    attack((db) =>
      db.run(`UPDATE rows SET data = json_set(data, '$.title', 'Forged') WHERE data ->> '$.conversation' = ?`, [
        scene.rootId,
      ]),
    )

    expect(await scene.runtime.prune({ keep: 0 })).toEqual([])
    await expect(scene.runtime.forget(open.rootId, 'open')).rejects.toMatchObject({ code: 'conflict' })

    expect(await findingsIn(scene.runtime)).toContain('altered_row')
    await scene.runtime.close()
  })
})

test('a row that was put back with its writer to what an earlier commit wrote is named by an audit, also after it was written again', async () => {
  const first = openRuntime()
  const { conversationId } = await first.run(agents.other, 'One.').result
  const old = readRows(conversationId)
  await first.run(agents.other, 'Two.', { conversationId }).result
  await first.close()
  attack((db) => {
    for (const [n, data, writer] of old) {
      db.run('UPDATE rows SET data = ?, writer = ? WHERE n = ?', [data ?? null, writer ?? null, n ?? null])
    }
  })
  const runtime = openRuntime()
  const before = await findingsIn(runtime)

  await runtime.run(agents.other, 'Three.', { conversationId }).result.catch(() => undefined)

  expect(before).toContain('altered_row')
  expect(await findingsIn(runtime)).toContain('altered_row')
  await runtime.close()
})

function readRows(conversationId: string) {
  const db = connectTo(file)
  try {
    const sql = `SELECT n, data, writer FROM rows WHERE data ->> '$.conversation' = ?`
    return db.all(sql, [conversationId])
  } finally {
    db.close()
  }
}

test('a text that was changed is not given to anybody', async () => {
  const { runtime } = await makeScene()
  const hash = String(readOne('SELECT hash FROM bodies'))
  expect(localStore(runtime).body(hash)).toContain('long long')
  attack((db) => db.run('UPDATE bodies SET text = ?', [Buffer.from('Forged.')]))

  expect(() => localStore(runtime).body(hash)).toThrow(expect.objectContaining({ code: 'tampered' }))
  await runtime.close()
})

function readOne(sql: string): unknown {
  const db = connectTo(file)
  try {
    return db.first(sql)?.[0]
  } finally {
    db.close()
  }
}

test('an older copy of the whole file cannot be told from what it was', async () => {
  const { runtime } = await makeScene()
  await runtime.close()
  const old = `${file}.old`
  copyFileSync(file, old)
  const again = openRuntime()
  await again.run(agents.other, 'Hello.').result
  await again.close()
  copyFileSync(old, file)

  const late = openRuntime()

  expect(await findingsIn(late)).toEqual([])
  await late.close()
})

test('what was changed in a file of commit c28c880 before it is opened is not built upon', async () => {
  writeFileSync(file, gunzipSync(readFileSync(path.join(import.meta.dirname, 'fixtures/c28c880.db.gz'))))
  attack(edit('turn', 'Deploy it.', "'$.limits[1]', 999999"))

  const forged = createRuntime({ store: sqliteStore(file), logger: SILENT })
  leaveUnaudited(localStore(forged))

  expect(await findingsIn(forged)).toContain('altered_row')
  expect(localStore(forged).awaiting({ limit: 1 })).toEqual([])
  await forged.close()
})

test('an edge that was deleted from a row of commit c28c880 is named by an audit', async () => {
  writeFileSync(file, gunzipSync(readFileSync(path.join(import.meta.dirname, 'fixtures/c28c880.db.gz'))))
  attack((db) => {
    const [n = 0] = db.first(`SELECT n FROM rows WHERE json_array_length(data, '$.edges') > 1`) ?? []
    const changed = db.run(`UPDATE rows SET data = json_remove(data, '$.edges[#-1]') WHERE n = ?`, [n])
    expect(changed).toBe(1)
  })

  const runtime = openRuntime()

  expect(await findingsIn(runtime)).toEqual(expect.arrayContaining([expect.stringMatching(/^(missing|altered)_row$/)]))
  await runtime.close()
})

describe('a JSON store', () => {
  test('never builds upon a row that was changed in its journal', async () => {
    const folder = tempFolder()
    const first = createRuntime({ store: jsonStore(folder), logger: SILENT })
    leaveUnaudited(localStore(first))
    const { conversationId } = await first.run(agents.other, 'One.', { title: 'Plan' }).result
    await first.close()
    const journal = path.join(folder, 'store.journal')
    const lines = readFileSync(journal, 'utf8').trimEnd().split('\n')
    const forged = lines.map((line) => {
      const { entry = null, number = 0 } = readLine(line) ?? {}
      return toLine(JSON.parse(JSON.stringify(entry).replaceAll('"title":"Plan"', '"title":"Forged"')), number)
    })
    writeFileSync(journal, forged.join(''))

    const runtime = createRuntime({ store: jsonStore(folder), logger: SILENT })
    leaveUnaudited(localStore(runtime))
    const { result } = runtime.run(agents.other, 'Two.', { conversationId })

    await expect(result).rejects.toMatchObject({ code: 'tampered', message: expect.stringContaining(conversationId) })
    expect(await findingsIn(runtime)).toContain('altered_row')
    expect((await runtime.run(agents.other, 'Hello.').result).status).toBe('completed')
    await runtime.forget(conversationId, 'it was changed')
    expect([runtime.store.tampered?.(), await findingsIn(runtime)]).toEqual([[], []])
    await runtime.close()
  })
})

describe('a row that is changed while a process runs', () => {
  test.each(STOPS)('is never built upon, and other trees go on: %s', async (_, change) => {
    const scene = await makeScene()
    const { runtime } = scene
    attack(change)

    const ended = await goOn(scene)

    expect(ended).toBe('tampered')
    expect((await findingsIn(runtime)).length).toBeGreaterThan(0)
    expect((await runtime.run(agents.other, 'Hello.').result).status).toBe('completed')
    await runtime.close()
  })
})

describe('events of a commit that cannot be read', () => {
  test.each(['x', '5', 'null', '{}', '[null]', '[5]', '[{"body":5}]'])(
    'are named by an audit, and reading them is refused: %s',
    async (text) => {
      const { runtime: first, run, rootId } = await makeScene()
      await first.close()
      const last = Number(readOne('SELECT max(n) % 16777216 FROM commits'))
      attack((db) => db.run('UPDATE commits SET events = ? WHERE n = (SELECT max(n) FROM commits)', [text]))
      const runtime = openRuntime()
      const named = { type: 'broken_chain', id: `${rootId} ${last}`, rootId }

      expect((await runtime.audit()).findings).toMatchObject([named])
      expect((await runtime.audit({ rootId })).findings).toMatchObject([named])
      expect((await runtime.audit({ types: ['cycle'] })).findings).toEqual([])
      const { findings } = await runtime.audit({ verify: true })
      expect(findings).toContainEqual(expect.objectContaining(named))

      const conversation = await runtime.conversation(rootId)
      await expect(conversation.eventPage({ limit: 500 })).rejects.toMatchObject({ code: 'tampered' })
      const reading = async () => {
        for await (const { type } of (await runtime.attach(run.id)).events()) if (type === 'run-end') break
      }
      await expect(reading()).rejects.toMatchObject({ code: 'tampered', details: { rootId, commit: last } })
      await runtime.close()
    },
  )
})

test('a run that is attached to after its tree was found to be changed is refused', async () => {
  const holding = agent({
    name: 'holding',
    description: 'Waits for a person.',
    instructions: 'Deploy.',
    model: scriptedModel(() => ({ calls: [{ name: 'deploy', input: {} }] })),
    tools: {
      deploy: tool({ description: 'Deploys.', input: NOTHING, approval: 'required', execute: () => 'ok' }),
    },
  })
  const host = agent({
    name: 'host',
    instructions: 'Delegate.',
    model: scriptedModel(() => ({ calls: [{ name: 'holding', input: { message: 'x' } }] })),
    subagents: { holding },
  })
  const open = () => {
    const runtime = createRuntime({ store: sqliteStore(file), agents: [host, holding], logger: SILENT })
    leaveUnaudited(localStore(runtime))
    return runtime
  }
  const first = open()
  const run = first.run(host, 'Go.')
  run.result.catch(() => undefined)
  for await (const { type } of run) if (type === 'approval-request') break
  const [child] = localStore(first).awaiting({ limit: 1 })
  await first.close()
  attack((db) =>
    db.run(`UPDATE rows SET data = json_set(data, '$.limits[0]', 9999) WHERE data ->> '$.turn' = ?`, [
      child?.turnId ?? '',
    ]),
  )
  const runtime = open()
  const [resumed] = await runtime.resume()
  await expect(resumed?.result).rejects.toMatchObject({ code: 'tampered' })

  await expect((await runtime.attach(run.id)).result).rejects.toMatchObject({ code: 'tampered' })
  await runtime.close()
})

/** Two calls that wait for a person; what the model says next needs both. */
function makePair(done: string[], withChild: boolean) {
  const call = (name: string) =>
    tool({
      description: name,
      input: NOTHING,
      approval: 'required',
      execute: () => {
        done.push(name)
        return `${name} done`
      },
    })
  const calls = ['one', 'two', ...(withChild ? ['search'] : [])].map((name) => ({ name, input: { message: 'x' } }))
  return agent({
    name: 'pair',
    instructions: 'Do both.',
    tools: { one: call('one'), two: call('two') },
    ...(withChild ? { subagents: { search: agents.search } } : {}),
    model: scriptedModel(({ messages }) => (messages.some(({ role }) => role === 'tool') ? 'Both.' : { calls })),
  })
}

type Ends = [from: number | string, to: number | string, letter: string]

/** `one`, `two` and `answer` are the places of the nodes; ids are found by their places. */
interface Pair {
  readonly one: number
  readonly two: number
  readonly answer: number
  idAt(place: number): string
}

/** Changes the row that has the edges of both calls. */
function editEdges(change: (edges: Ends[], pair: Pair) => unknown): void {
  attack((db) => {
    const [n = 0, data] = db.first(`SELECT n, data FROM rows WHERE json_array_length(data, '$.edges') > 3`) ?? []
    const span = Math.floor(Number(n) / 1048576) * 1048576
    const idAt = (place: number) =>
      String(db.first(`SELECT data ->> '$.node' FROM rows WHERE n = ?`, [span + place])?.[0])
    const { edges } = JSON.parse(String(data)) as { edges: Ends[] }
    const [one, two] = edges.filter(([from]) => from === edges[0]?.[0]).map(([, to]) => Number(to))
    const answer = Number(edges.find(([from]) => from === one)?.[1])
    const changed = change(edges, { one: one ?? 0, two: two ?? 0, answer, idAt })
    db.run('UPDATE rows SET data = ? WHERE n = ?', [JSON.stringify(changed), n])
  })
}

type EdgeAttack = readonly [name: string, change: (edges: Ends[], pair: Pair) => unknown]

const isEdge = (from: number, to: number) => (edge: Ends) => edge[0] === from && edge[1] === to

const EDGE_ATTACKS: readonly EdgeAttack[] = [
  ['written twice', (edges, { one, answer }) => ({ edges: [...edges, [one, answer, 's']] })],
  [
    'turned into another',
    (edges, { one, two, answer }) => ({
      edges: edges.map((edge) => (isEdge(two, answer)(edge) ? [one, answer, 's'] : edge)),
    }),
  ],
  [
    'deleted, of the first call',
    (edges, { one, answer }) => ({ edges: edges.filter((edge) => !isEdge(one, answer)(edge)) }),
  ],
  [
    'deleted, of the second call',
    (edges, { two, answer }) => ({ edges: edges.filter((edge) => !isEdge(two, answer)(edge)) }),
  ],
  [
    'written as one of nodes elsewhere',
    (edges, { two, answer, idAt }) => ({
      edges: edges.map((edge) => (isEdge(two, answer)(edge) ? [idAt(two), idAt(answer), 's'] : edge)),
    }),
  ],
  [
    'written as one to a node elsewhere',
    (edges, { two, answer, idAt }) => ({
      edges: edges.map((edge) => (isEdge(two, answer)(edge) ? [two, idAt(answer), 's'] : edge)),
    }),
  ],
  ['of another type', (edges) => ({ edges: edges.map(([from, to]) => [from, to, 'b']) })],
  ['in a row that is a node as well', (edges) => ({ edges, node: 'forged', kind: 'task', state: 'pending' })],
]

describe.each([
  ['of a commit of one run', false],
  ['of a commit that began a child too', true],
])('an edge %s', (_, withChild) => {
  test.each(EDGE_ATTACKS)('is not built upon, whichever call is answered: %s', async (_, change) => {
    const done: string[] = []
    const pair = makePair(done, withChild)
    const open = () => {
      const runtime = createRuntime({ store: sqliteStore(file), agents: [pair, agents.search], logger: SILENT })
      leaveUnaudited(localStore(runtime))
      return runtime
    }
    const first = open()
    const run = first.run(pair, 'Go.')
    run.result.catch(() => undefined)
    let asked = 0
    for await (const { type } of run) if (type === 'approval-request' && ++asked === 2) break
    const nodes = localStore(first).awaiting({ limit: 9 })
    await first.close()
    editEdges(change)
    const runtime = open()
    expect((await findingsIn(runtime)).length).toBeGreaterThan(0)

    await runtime.resume().catch(() => undefined)
    for (const { id } of nodes) {
      await expect(runtime.answer(id, { allow: true })).rejects.toMatchObject({ code: 'tampered' })
    }

    expect(done).toEqual([])
    await runtime.close()
  })
})

async function attached(runtime: Runtime, { run }: Scene): Promise<Run> {
  try {
    return await runtime.attach(run.id)
  } catch (error) {
    const result: Run['result'] = Promise.reject(error)
    result.catch(() => undefined)
    return { ...run, result } as Run
  }
}
