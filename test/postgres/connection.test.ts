import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { createRuntime } from '../../src/core/runtime/runtime.ts'
import { agent } from '../../src/core/runtime/standalone.ts'
import type { Store } from '../../src/core/store/store.ts'
import { Database } from '../../src/stores/postgres/connection/database.ts'
import { type PostgresStoreOptions, postgresStore } from '../../src/stores/postgres/index.ts'
import { commitOf, nodeRow, placeIn, treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { scriptedModel } from '../../src/testing/stand-ins/scripted-model.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { tempFolder } from '../support/temp-folder.ts'

const isRoot = process.getuid?.() === 0
const openssl = 'openssl'
const hasOpenssl = answers(openssl, ['version'])
const pgbouncer = process.env['LEGATE_PGBOUNCER'] ?? '/usr/sbin/pgbouncer'
const hasPgbouncer = answers(pgbouncer, ['--version'])
const nobody = isRoot ? idsOfNobody() : undefined

/** What is not there is said once, in the name of what is skipped. */
const unless = (isThere: boolean, what: string) => (isThere ? '' : ` (skipped: ${what} is not here)`)

async function using(options: PostgresStoreOptions, use: (store: Store) => unknown): Promise<void> {
  const store = postgresStore({ busyMs: 5_000, ...options })
  try {
    await use(store)
  } finally {
    await store.close()
  }
}

describe.skipIf(noPostgres !== undefined || !hasOpenssl)(`TLS${unless(hasOpenssl, 'openssl')}`, async () => {
  const folder = openFolder()
  const certificate = path.join(folder, 'cert.pem')
  const key = path.join(folder, 'key.pem')
  if (hasOpenssl) {
    const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
    const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', certificate]
    execFileSync(openssl, [...made, ...names], { stdio: 'ignore' })
    chmodSync(key, 0o600)
    if (nobody !== undefined) chownSync(key, nobody.uid, nobody.gid)
  }
  const settings = ['ssl=on', `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`]
  const server = noPostgres === undefined && hasOpenssl ? await usePostgres({ settings }) : undefined

  test('a certificate that is trusted, one that is not, and a server without TLS', async () => {
    const url = server?.url() ?? ''
    await using({ url: `${url}?sslmode=verify-full&sslrootcert=${certificate}` }, async (store) => {
      await store.commit(treeCommit('root-a'))
      expect((await store.roots({ limit: 9 })).length).toBe(1)
      expect(await number(`${url}?sslmode=no-verify`, 'SELECT count(*) FROM pg_stat_ssl WHERE ssl')).toBeGreaterThan(0)
    })
    await using({ url: `${url}?sslmode=verify-full` }, async (store) => {
      await expect(store.roots({ limit: 1 })).rejects.toMatchObject({
        code: 'store',
        message: /certificate .* is not trusted .*sslrootcert=FILE/,
      })
    })
    const plain = await usePostgres()
    await using({ url: `${plain.url()}?sslmode=verify-full&sslrootcert=${certificate}` }, async (store) => {
      await expect(store.roots({ limit: 1 })).rejects.toMatchObject({ code: 'store', message: /does not speak TLS/ })
    })
  })
})

describe.skipIf(noPostgres !== undefined || !hasPgbouncer)(
  `PgBouncer${unless(hasPgbouncer, 'pgbouncer')}`,
  async () => {
    const server =
      noPostgres === undefined && hasPgbouncer ? await usePostgres() : (undefined as unknown as PostgresServer)

    for (const mode of ['session', 'transaction'] as const) {
      test(`in ${mode} mode everything is stored, and two processes go on with each other's work`, async () => {
        const url = `${await startPgbouncer(server, mode)}?schema=behind_${mode}`
        await using({ url }, (near) =>
          using({ url }, async (far) => {
            const clerk = agent({ name: 'clerk', instructions: '', model: scriptedModel(() => 'done') })
            // The one only takes runs, the other works on them.
            const starts = createRuntime({ store: near, agents: [clerk], engine: { workers: 0 } })
            const works = createRuntime({ store: far, agents: [clerk] })
            await works.resume()
            const runs = Array.from({ length: 10 }, (_, at) => starts.run(clerk, `job ${at}`))
            const outcomes = await Promise.all(runs.map(({ result }) => result))
            expect(outcomes.map(({ status }) => status)).toEqual(runs.map(() => 'completed'))
            expect((await near.archive?.verify())?.findings).toEqual([])
            await starts.close()
            await works.close()
          }),
        )
      })
    }
  },
)

describe.skipIf(noPostgres !== undefined)('connections', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)
  const jit = async (url: string) => {
    const database = new Database({
      url,
      pool: undefined,
      schema: 'legate',
      readOnly: false,
      busyMs: 5_000,
      connections: 4,
    })
    const [row] = await database.query('SHOW jit')
    const [other] = await database.query('SHOW work_mem')
    await database.close()
    return [row?.[0], other?.[0]]
  }

  test('make the server compile nothing, beside options that the address names', async () => {
    expect(await jit(server.url())).toEqual(['off', '4MB'])
    expect(await jit(`${server.url()}?options=-c%20work_mem%3D8MB`)).toEqual(['off', '8MB'])
    expect(await jit(`${server.url()}?options=-c%20jit%3Don`)).toEqual(['on', '4MB'])
  })

  test('are made without options where a pooler refuses them', async () => {
    const pooler = createServer((near) => {
      near.once('data', (first) => {
        if (first.includes('jit=off')) {
          near.end(refusal('unsupported startup parameter: options'))
          return
        }
        const far = connect(server.port, '127.0.0.1')
        far.write(first)
        near.pipe(far).pipe(near)
        for (const end of [near, far]) end.on('error', () => undefined)
      })
    }).listen(0, '127.0.0.1')
    await once(pooler, 'listening')
    onTestFinished(() => {
      pooler.close()
    })
    const { port } = pooler.address() as { port: number }
    expect(await jit(server.url().replace(`:${server.port}/`, `:${port}/`))).toEqual(['on', '4MB'])
  })
})

/** How a server ends a connection that it does not make. */
function refusal(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C08P01\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}

const mount = isRoot && process.platform === 'linux' && mayMount()

describe.skipIf(noPostgres !== undefined || !mount)(
  `a full disk${unless(mount, 'a disk that a test can fill')}`,
  async () => {
    const server = noPostgres === undefined && mount ? await usePostgres() : (undefined as unknown as PostgresServer)

    test('refuses the commit whole, says so, and takes it when there is space', async () => {
      const folder = openFolder()
      const disk = path.join(folder, 'disk')
      mkdirSync(disk)
      execFileSync('mount', [
        '-t',
        'tmpfs',
        '-o',
        `size=6m,uid=${nobody?.uid},gid=${nobody?.gid},mode=700`,
        'tmpfs',
        disk,
      ])
      onTestFinished(() => {
        execFileSync('umount', ['-l', disk])
      })
      await number(server.url(), `CREATE TABLESPACE small LOCATION '${disk}'`)
      await number(server.url(), 'ALTER ROLE postgres SET default_tablespace = small')
      await using({ url: server.url() }, async (store) => {
        await store.commit(treeCommit('root-a'))
        const place = placeIn('root-a')
        const send = (ordinal: number) => {
          const preview = Array.from({ length: 4_000 }, (_, at) => `${at} ${Math.random()}`).join(' ')
          return store.commit(commitOf('root-a', { nodes: [nodeRow(place, `n-${ordinal}`, { ordinal, preview })] }))
        }
        let stored = 10
        let failure: unknown
        for (; failure === undefined && stored < 5_000; stored++) {
          try {
            await send(stored)
          } catch (error) {
            failure = error
          }
        }
        expect(failure).toMatchObject({ code: 'store_full', message: /no space left/ })
        expect((await store.tree('root-a')).node(`n-${stored - 1}`)).toBeUndefined()
        expect((await store.tree('root-a')).node(`n-${stored - 2}`)).toBeDefined()
        execFileSync('mount', ['-o', 'remount,size=64m', disk])
        await send(stored - 1)
        expect((await store.archive?.verify())?.findings).toEqual([])
      })
      await number(server.url(), 'ALTER ROLE postgres RESET default_tablespace')
    })
  },
)

async function number(connectionString: string, sql: string): Promise<number> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  const { rows } = await client.query({ text: sql, rowMode: 'array' })
  await client.end()
  return Number((rows?.[0] as unknown[] | undefined)?.[0])
}

/** Starts a pooler before the server, and gives the address of its database. */
async function startPgbouncer(server: PostgresServer, mode: 'session' | 'transaction'): Promise<string> {
  const folder = openFolder()
  const port = await freePort()
  const { username, password } = new URL(server.url())
  const config = path.join(folder, 'pgbouncer.ini')
  const users = path.join(folder, 'users.txt')
  writeFileSync(users, `"${username}" "${password}"\n`)
  writeFileSync(
    config,
    [
      '[databases]',
      `postgres = host=127.0.0.1 port=${server.port} user=${username} password=${password}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = plain',
      `auth_file = ${users}`,
      `pool_mode = ${mode}`,
      'default_pool_size = 20',
      'ignore_startup_parameters = extra_float_digits',
    ].join('\n'),
  )
  const child = spawn(pgbouncer, [config], { stdio: 'ignore', ...nobody })
  afterAll(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const url = server.url().replace(`:${server.port}/`, `:${port}/`)
  for (let tries = 0; ; tries++) {
    const isThere = await number(url, 'SELECT 1').catch(() => undefined)
    if (isThere === 1) return url
    if (tries > 100) throw new Error('pgbouncer does not answer')
    await sleep(50)
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

/** A folder that the user of the server can read. */
function openFolder(): string {
  const folder = tempFolder(afterAll)
  chmodSync(folder, 0o755)
  return folder
}

function answers(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function mayMount(): boolean {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-mount-'))
  const isMounted = answers('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]) && answers('umount', [folder])
  rmdirSync(folder)
  return isMounted
}

function idsOfNobody(): { readonly uid: number; readonly gid: number } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith('nobody:'))
  const [, , uid, gid] = (line ?? 'nobody:x:65534:65534').split(':')
  return { uid: Number(uid), gid: Number(gid) }
}
