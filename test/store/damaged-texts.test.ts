import path from 'node:path'
import { agent, createRuntime } from 'legate'
import type { Part } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { callsThenSays, simpleTool } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { eventsOf, only, openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

test.each([
  ['no JSON', '{"nodeId":'],
  ['null', 'null'],
  ['another thing', '{"nodeId":7,"events":"x"}'],
  ['events that are none', '{"nodeId":"n","rootId":"r","epoch":1,"events":[null,7]}'],
])('a block that is %s is passed over: readers and the run go on', async (_name, damage) => {
  const file = path.join(tempFolder(), 'store.db')
  const spoken = makeGate()
  const end = makeGate()
  const model = {
    id: 'own/model',
    async *stream(): AsyncGenerator<Part> {
      yield { type: 'text-delta', text: 'Begun' }
      spoken.open()
      await end.opened
      yield { type: 'text-delta', text: ' and done.' }
      yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
    },
  }
  const run = openRuntime({ store: sqliteStore(file) }).run(agent({ name: 'host', instructions: '', model }), 'go')
  await spoken.opened
  const db = connectTo(file)
  const count = () => Number(db.all('SELECT count(*) FROM blocks')[0]?.[0])
  await expect.poll(count).toBeGreaterThan(0)
  db.run('UPDATE blocks SET data = ?', [damage])
  const reader = openRuntime({ store: sqliteStore(file) })

  const events = eventsOf(await reader.attach(run.id))
  expect(localStore(reader).blocks(run.id, 0)).toEqual([])
  await new Promise((resolve) => setTimeout(resolve, 50))
  end.open()

  expect(await run.result).toMatchObject({ status: 'completed', text: 'Begun and done.' })
  expect(only(await events, 'message').at(-1)?.content).toBe('Begun and done.')
  expect(count()).toBe(0)
  db.close()
})

const BAD = (column: string) => `CAST(replace(CAST(${column} AS BLOB), CAST('MARK' AS BLOB), x'4DFF524B') AS TEXT)`

test.each([
  ['a row', `UPDATE rows SET data = ${BAD('data')} WHERE data LIKE '%MARK%'`],
  ['events', `UPDATE commits SET events = ${BAD('events')} WHERE events LIKE '%MARK%'`],
  ['marks of a commit', "UPDATE commits SET marks = CAST(x'FF' || marks AS TEXT)"],
])('a byte that is no UTF-8 in %s ends no process: it is found, and other trees go on', async (_name, damage) => {
  const file = path.join(tempFolder(), 'store.db')
  const model = scriptedModel(() => 'Hello MARK')
  const who = agent({ name: 'host', instructions: '', model })
  const first = openRuntime({ store: sqliteStore(file) })
  const { conversationId, runId } = await first.run(who, 'Say MARK.').result
  await first.close()
  const db = connectTo(file)
  db.exec(damage)
  db.close()

  const store = sqliteStore(file)
  const reader = createRuntime({ store })
  const { findings } = await reader.audit({ verify: true })
  const read = () => [
    store.turn(runId),
    store.nodesOf(runId),
    store.events(conversationId, 0, 100),
    store.roots({ limit: 9 }),
  ]

  expect(findings.length).toBeGreaterThan(0)
  try {
    read()
  } catch (error) {
    expect(error).toMatchObject({ code: 'tampered' })
  }
  expect(await reader.run(who, 'Go on.').result).toMatchObject({ status: 'completed' })
  await reader.close()
})

/** Bytes that are no UTF-8, in the place of the last that were there; SQLite compares and sorts them like any text. */
const CUT = (column: string) => `CAST(substr(CAST(${column} AS BLOB), 1, length(${column}) - 1) || x'FF' AS TEXT)`

test.each([
  ['the key of a conversation', `UPDATE keys SET id = ${CUT('id')} WHERE slot = 'c'`],
  ['the key of a turn', `UPDATE keys SET id = ${CUT('id')} WHERE slot = 't'`],
  ['all keys', `UPDATE keys SET id = ${CUT('id')}, slot = ${CUT('slot')}`],
  ['a queue', `UPDATE rows SET queue = ${CUT("'e' || n")}`],
  ['the id of a root', `UPDATE commits SET root_id = ${CUT('root_id')} WHERE root_id IS NOT NULL`],
  ['the hash of a commit', `UPDATE commits SET hash = ${CUT('hash')}`],
  ['a tombstone', `UPDATE stones SET data = ${CUT('data')}`],
  ['the hash of a tombstone', `UPDATE stones SET hash = ${CUT('hash')}`],
  [
    'the id in a row',
    `UPDATE rows SET data = CAST(replace(CAST(data AS BLOB), CAST('":"0' AS BLOB), x'223A22FF') AS TEXT)`,
  ],
  ['the hash of a text', `UPDATE bodies SET hash = ${CUT('hash')}`],
  ['a text', `UPDATE bodies SET text = CAST(x'FF' AS TEXT)`],
  ['which tree needs a text', `UPDATE uses SET hash = ${CUT('hash')}`],
])('a byte that is no UTF-8 in %s ends no process: an audit finds it, and others go on', async (_name, damage) => {
  const file = path.join(tempFolder(), 'store.db')
  const long = simpleTool(() => 'x'.repeat(70_000))
  const model = scriptedModel(callsThenSays('long'))
  const who = agent({ name: 'host', instructions: '', model, tools: { long } })
  const first = openRuntime({ store: sqliteStore(file) })
  await first.forget((await first.run(who, 'Forget this.').result).conversationId)
  const { conversationId, runId } = await first.run(who, 'Say it.').result
  await first.close()
  const db = connectTo(file)
  db.exec(damage)
  db.close()

  const store = sqliteStore(file)
  const reader = createRuntime({ store })
  const { findings } = await reader.audit({ verify: true })
  const reads: (() => unknown)[] = [
    () => store.turn(runId),
    () => store.nodesOf(runId),
    () => store.turnsOf(conversationId, { limit: 9 }),
    () => store.queuedTurn(conversationId),
    () => store.events(conversationId, 0, 100),
    () => store.roots({ limit: 9 }),
    () => store.conversations({ limit: 9 }),
    () => store.findIds(conversationId.slice(-4), 9),
    () => store.claimants(),
    () => store.openTurns(9),
    () => store.archive?.tombstones(),
    () => store.archive?.tombstone(conversationId),
  ]

  expect(findings.length).toBeGreaterThan(0)
  for (const read of reads) {
    try {
      read()
    } catch (error) {
      expect(error).toMatchObject({ name: 'StoreError' })
    }
  }
  expect(await reader.run(who, 'Go on.').result).toMatchObject({ status: 'completed' })
  await reader.close()
})
