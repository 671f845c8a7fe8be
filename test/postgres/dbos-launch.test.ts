import { setTimeout as sleep } from 'node:timers/promises'
import { DBOS } from '@dbos-inc/dbos-sdk'
import { agent, createRuntime, type Runtime } from 'legate'
import { dbos } from 'legate/engine/dbos'
import { postgresStore } from 'legate/store/postgres'
import { scriptedModel } from 'legate/testing'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'
import { isFull } from '../crash/support/full.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { Cable } from './support/cable.ts'

/** So seldom that only wakes can be the cause of what a test waits for. */
const NEVER_MS = 600_000
const QUIET = { debug() {}, info() {}, warn() {}, error() {} }

/** Texts of messages that DBOS sends while it launches, in their order. */
const MOMENTS = {
  connects: 'legate dbos',
  looks: 'version() AS version',
  tellsVersion: '.application_versions (version_id',
  makesQueue: 'queues WHERE name = $1',
} as const

describe.skipIf(noPostgres !== undefined)('a connection that is lost while DBOS launches', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)
  const addressOf = (cable: Cable) => server.url().replace(`:${server.port}`, `:${cable.port}`)
  const echo = agent({ name: 'echo', instructions: 'Echo.', model: scriptedModel(() => 'done') })

  async function newCable(): Promise<Cable> {
    const cable = await Cable.open(server.port)
    onTestFinished(() => cable.close())
    return cable
  }

  function newPool(cable: Cable): pg.Pool {
    const pool = new pg.Pool({ connectionString: addressOf(cable), max: 12, idleTimeoutMillis: 100 })
    pool.on('error', () => undefined)
    onTestFinished(() => pool.end())
    return pool
  }

  interface Place {
    readonly tables: string
    readonly busyMs?: number
    readonly isPool?: boolean
  }

  function openAt(
    cable: Cable,
    { tables, busyMs = 20_000, isPool = false }: Place,
  ): { runtime: Runtime; store: Store } {
    const store = postgresStore({
      ...(isPool ? { pool: newPool(cable) } : { url: addressOf(cable) }),
      schema: 'launch',
      busyMs,
      dispatch: dbos({ schema: tables }),
    })
    const engine = { sweepMs: NEVER_MS, graceMs: 100 }
    return { store, runtime: createRuntime({ store, agents: [echo], logger: QUIET, engine }) }
  }

  /** A wake of another process reaches this one: it has launched all of DBOS. */
  async function takesWakes(tables: string): Promise<boolean> {
    const store = postgresStore({ url: server.url(), schema: 'launch', dispatch: dbos({ schema: tables }) })
    const submitter = createRuntime({ store, logger: QUIET, engine: { sweepMs: NEVER_MS, workers: 0 } })
    const { status } = await submitter.run(echo, 'go').result
    await submitter.close()
    await store.close()
    return status === 'completed'
  }

  async function closed(cable: Cable, { runtime, store }: ReturnType<typeof openAt>): Promise<void> {
    await runtime.close()
    await store.close()
    expect(DBOS.isInitialized()).toBe(false)
    for (let tries = 0; tries < 100 && cable.connections > 0; tries++) await sleep(20)
    expect(cable.connections).toBe(0)
  }

  /** How many messages a launch sends that nothing disturbs. */
  async function messages(place: Place): Promise<number> {
    const cable = await newCable()
    const opened = openAt(cable, place)
    await opened.runtime.resume()
    const { sent } = cable
    await closed(cable, opened)
    return sent
  }

  type Moment = number | string

  /** At the first message of this text, or at the one of this number. */
  async function launchBroken(place: Place, moment: Moment, fault: (cable: Cable) => void): Promise<void> {
    const cable = await newCable()
    let isDue = true
    cable.sends = (number, message) => {
      if (!isDue || (typeof moment === 'number' ? number !== moment : !message.includes(moment))) return
      isDue = false
      fault(cable)
    }
    const opened = openAt(cable, place)
    await opened.runtime.resume()
    expect([moment, isDue, await takesWakes(place.tables)]).toEqual([moment, false, true])
    await closed(cable, opened)
  }

  /** All messages of a launch in full, and some of them that it certainly sends. */
  async function momentsOf(place: Place): Promise<readonly Moment[]> {
    await messages(place)
    return isFull ? Array.from({ length: await messages(place) }, (_, at) => at + 1) : Object.values(MOMENTS)
  }

  test('is made again, whenever it breaks, and the driver has nothing to warn of', { timeout: 300_000 }, async () => {
    const warnings: string[] = []
    const heard = ({ message }: Error) => warnings.push(message)
    process.on('warning', heard)
    const place = { tables: 'launch_dbos' }
    for (const moment of await momentsOf(place)) await launchBroken(place, moment, (cable) => cable.break())
    process.off('warning', heard)
    expect(warnings.filter((message) => message.includes('client.query'))).toEqual([])
  })

  test('is made again on a pool of the user', { timeout: 300_000 }, async () => {
    const place = { tables: 'pool_dbos' }
    const moments = isFull ? await momentsOf(place) : [MOMENTS.looks, MOMENTS.makesQueue]
    await messages(place)
    for (const moment of moments) {
      await launchBroken({ ...place, isPool: true }, moment, (cable) => cable.break())
    }
  })

  test('is made again where the tables of DBOS are made', { timeout: 300_000 }, async () => {
    const all = await messages({ tables: 'first_dbos' })
    const step = isFull ? 10 : Math.ceil(all / 3)
    for (let at = 20; at <= all; at += step) {
      await launchBroken({ tables: `tables_${at}` }, at, (cable) => cable.break())
    }
  })

  test('is noticed where it is only silent', { timeout: 600_000 }, async () => {
    const place = { tables: 'silent_dbos' }
    await messages(place)
    for (const moment of isFull ? Object.values(MOMENTS) : [MOMENTS.makesQueue]) {
      await launchBroken(place, moment, (cable) => cable.forget())
    }
  })

  test('is said in one sentence where the database stays away from DBOS, and the next launch succeeds', {
    timeout: 60_000,
  }, async () => {
    const place = { tables: 'away_dbos' }
    await messages(place)
    const cable = await newCable()
    const opened = openAt(cable, { ...place, busyMs: 2_000 })
    let isAway = true
    cable.sends = (_, message) => {
      if (isAway && message.includes('legate dbos')) cable.break()
    }

    await expect(opened.runtime.resume()).rejects.toMatchObject({
      name: 'StoreError',
      code: 'store_busy',
      message: expect.stringMatching(
        /^DBOS does not start on the schema away_dbos: the database does not answer \(.+\)\. /,
      ),
    })
    expect(DBOS.isInitialized()).toBe(false)
    isAway = false
    await opened.runtime.resume()

    expect(await takesWakes(place.tables)).toBe(true)
    await closed(cable, opened)
  })

  test('a program that has launched DBOS itself is told so, and keeps it', async () => {
    DBOS.setConfig({
      name: 'own',
      systemDatabaseUrl: server.url(),
      systemDatabaseSchemaName: 'own_dbos',
      logger: QUIET,
    })
    await DBOS.launch()
    const cable = await newCable()
    const opened = openAt(cable, { tables: 'own_tables' })

    await expect(opened.runtime.resume()).rejects.toThrow(/^This program has launched DBOS itself/)

    expect(DBOS.isInitialized()).toBe(true)
    await DBOS.shutdown()
    await opened.runtime.resume()
    expect(await takesWakes('own_tables')).toBe(true)
    await closed(cable, opened)
  })
})
