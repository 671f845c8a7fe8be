import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Logger } from '../../src/doors/hooks.ts'
import { agent, createRuntime, isLegateError, type Runtime, tool } from '../../src/index.ts'
import { type Connection, connectTo } from '../../src/stores/sqlite/driver.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

const NOTHING = { type: 'object' } as const
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }
const STEPS = 160

/** Looks up step by step, then waits for a person. */
function makeAgent() {
  let step = 0
  const lookup = tool({ description: 'Looks up.', input: NOTHING, effect: 'pure', execute: () => 'found' })
  const deploy = tool({ description: 'Deploys.', input: NOTHING, approval: 'required', execute: () => 'ok' })
  return agent({
    name: 'lead',
    instructions: 'Lead.',
    model: scriptedModel(() => {
      if (step === STEPS + 1) return 'Done.'
      return { calls: [{ name: step < STEPS ? 'lookup' : 'deploy', input: { step: step++ } }] }
    }),
    tools: { lookup, deploy },
    budget: { modelCalls: 1_000, toolCalls: 1_000 },
  })
}

const lead = makeAgent()
let file: string
let bytes: Buffer

function openRuntime(): Runtime {
  const runtime = createRuntime({ store: sqliteStore(file), agents: [lead], logger: SILENT })
  leaveUnaudited(localStore(runtime))
  return runtime
}

beforeAll(async () => {
  file = path.join(tempFolder(afterAll), 'legate.db')
  const runtime = openRuntime()
  for await (const { type } of runtime.run(lead, 'Go.')) if (type === 'approval-request') break
  await runtime.close()
  inFile((db) => db.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
  bytes = readFileSync(file)
})

beforeEach(() => {
  file = path.join(tempFolder(), 'legate.db')
  writeFileSync(file, bytes)
})

function inFile<T>(use: (db: Connection) => T): T {
  const db = connectTo(file)
  try {
    return use(db)
  } finally {
    db.close()
  }
}

/** Lets the run go on in a new process; gives how it ended. */
async function goOn(runtime: Runtime): Promise<string> {
  try {
    const [run] = await runtime.resume()
    const [node] = localStore(runtime).awaiting({ limit: 1 })
    if (run === undefined || node === undefined) return runtime.store.tampered?.()[0]?.code ?? 'nothing'
    await runtime.answer(node.id, { allow: true })
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

function sealed(db: Connection): number {
  return Number(db.first('SELECT count(*) FROM stretches')?.[0])
}

function textOf(db: Connection): string {
  return JSON.stringify(db.all('SELECT * FROM rows'))
}

/** A row in the middle of the first sealed stretch. */
const OLD = `(SELECT min(n) + 60 FROM stretches)`
const OLD_NODE = `(SELECT min(n) FROM rows WHERE n > ${OLD} AND data ->> '$.node' IS NOT NULL)`
const OLD_RESULT = `(SELECT min(n) FROM rows WHERE n > ${OLD} AND instr(data, 'found') > 0)`
const OLD_EDGES = `(SELECT min(n) FROM rows WHERE n > ${OLD} AND data ->> '$.edges' IS NOT NULL)`

test('a row says itself which commit wrote it, and the first of a turn how many there are', () => {
  const one = (sql: string) => Number(inFile((db) => db.first(sql))?.[0])

  expect(one('SELECT count(*) FROM rows')).toBeGreaterThan(256)
  expect(one('SELECT count(*) FROM rows LEFT JOIN commits ON commits.n = writer WHERE commits.n IS NULL')).toBe(0)
  expect(one('SELECT count(*) FROM seals')).toBe(one('SELECT count(*) FROM rows WHERE n % 1048576 = 0'))
  expect(one('SELECT sum(size) FROM rows')).toBe(one('SELECT count(*) FROM rows'))
})

test('rows of a long run that were left alone are sealed together, and the run goes on', async () => {
  expect(inFile(sealed)).toBe(2)
  const runtime = openRuntime()

  expect(await findingsIn(runtime)).toEqual([])
  expect(await goOn(runtime)).toBe('completed')
  expect(await findingsIn(runtime)).toEqual([])
  await runtime.close()
})

describe('a row that was sealed with others and changed is never built upon', () => {
  const attacks: readonly (readonly [name: string, sql: string])[] = [
    ['what a node says', `UPDATE rows SET data = replace(data, 'found', 'fraud') WHERE n = ${OLD_RESULT}`],
    ['a node', `UPDATE rows SET data = json_set(data, '$.version', 7) WHERE n = ${OLD_NODE}`],
    ['an edge', `UPDATE rows SET data = '{"edges":[[1,2,"s"]]}' WHERE n = ${OLD_EDGES}`],
    ['a row that is deleted', `DELETE FROM rows WHERE n = ${OLD_NODE}`],
    ['a row that is put in', `INSERT INTO rows (n, data) SELECT max(n) + 1, '{"edges":[]}' FROM rows`],
    ['its writer', `UPDATE rows SET writer = writer - 1 WHERE n = ${OLD_NODE}`],
    [
      'a second line with what another row says',
      `UPDATE rows SET data = data || char(10) || (SELECT n || ' ' || writer || ' ' || data
        FROM rows WHERE n = ${OLD_NODE}) WHERE n = ${OLD_NODE}`,
    ],
    ['a node, and the seal is gone', `UPDATE rows SET data = '{}' WHERE n = ${OLD_NODE}; DELETE FROM stretches`],
  ]

  test.each(attacks)('%s', async (_, sql) => {
    const before = inFile(textOf)
    inFile((db) => db.exec(sql))
    expect(inFile(textOf) !== before).toBe(true)
    const runtime = openRuntime()

    expect(await goOn(runtime)).toBe('tampered')
    expect((await findingsIn(runtime)).length).toBeGreaterThan(0)
    await runtime.close()
  })
})

test.each([
  ['changed', "UPDATE stretches SET hash = 'forged'"],
  ['moved', 'UPDATE stretches SET n = n + 1'],
])('a seal that was %s says nothing of its rows, which are looked at one by one; an audit names it', async (_, sql) => {
  inFile((db) => db.exec(sql))
  const runtime = openRuntime()

  expect(await findingsIn(runtime)).toContain('altered_index')
  expect(await goOn(runtime)).toBe('completed')
  await runtime.close()
})
