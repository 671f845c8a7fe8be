import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, resolve } from 'node:path'
import { isLoopback } from '../../core/base/loopback.ts'
import { ownFile } from '../../core/base/system/own-files.ts'
import type { Store } from '../../index.ts'
import { LOCAL_PRINCIPAL, type ServeOptions, Tokens } from '../../server/index.ts'
import { type Call, CliError, EXIT, isSet, listOption, textOption } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import { oneLine } from '../terminal/clean.ts'

const MOST_PORT = 65_535
const MOST_WORKERS = 10_000

/** Reads where and for whom the server listens. */
export function readServeOptions(call: Call): ServeOptions {
  const socket = textOption(call, 'socket')
  const host = textOption(call, 'host')
  const port = numberOf(call, 'port', MOST_PORT)
  if (socket !== undefined && (host !== undefined || port !== undefined)) {
    throw new CliError('--socket listens on a file: leave out --host and --port.', EXIT.usage)
  }
  if (socket === '' || host === '') throw new CliError('--socket and --host need a value.', EXIT.usage)
  const tls = readTls(call)
  const oidc = readOidc(call)
  return {
    ...(socket === undefined ? {} : { socket: resolve(socket) }),
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(tls === undefined ? {} : { tls }),
    ...(oidc === undefined ? {} : { oidc }),
    allowHosts: listOption(call, 'allow-host'),
    allowOrigins: listOption(call, 'allow-origin'),
    behindProxy: isSet(call, 'behind-proxy'),
    ui: !isSet(call, 'no-ui'),
  }
}

/** Reads `--workers`; undefined: as many as usual. */
export function workersOf(call: Call): number | undefined {
  return numberOf(call, 'workers', MOST_WORKERS)
}

function numberOf(call: Call, name: string, most: number): number | undefined {
  const text = textOption(call, name)
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text) && Number(text) <= most) return Number(text)
  throw new CliError(`--${name} is a whole number up to ${most}, not "${oneLine(text)}".`, EXIT.usage)
}

function readTls(call: Call): ServeOptions['tls'] {
  const [cert, key] = [textOption(call, 'tls-cert'), textOption(call, 'tls-key')]
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined) {
    throw new CliError('--tls-cert and --tls-key belong together: give both, as PEM files.', EXIT.usage)
  }
  ownFile(key, 'the key of the server')
  return { cert: readPem(cert), key: readPem(key) }
}

function readPem(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'it is not there' : String(error)
    throw new CliError(`Cannot read ${oneLine(file)}: ${oneLine(why)}.`, EXIT.usage, { namesHelp: false })
  }
}

function readOidc(call: Call): ServeOptions['oidc'] {
  const [issuer, audience] = [textOption(call, 'oidc-issuer'), textOption(call, 'oidc-audience')]
  if (issuer === undefined && audience === undefined) return undefined
  if (issuer !== undefined && audience !== undefined) return { issuer, audience }
  throw new CliError('--oidc-issuer and --oidc-audience belong together: give both.', EXIT.usage)
}

/** Refuses a place where nobody can listen, or where tokens could be read, before a store is made. */
export async function checkPlace(options: ServeOptions): Promise<void> {
  const { host = '127.0.0.1', port = 4747, socket, tls, behindProxy } = options
  if (!isNear(options) && tls === undefined && behindProxy !== true) {
    const how = 'Give --tls-cert FILE and --tls-key FILE, or --behind-proxy if a proxy before it ends TLS'
    throw new CliError(`${beyond(host)}, where others could read the tokens on their way. ${how}.`, EXIT.usage)
  }
  try {
    if (socket === undefined) await probe(host, port)
    else statSync(dirname(socket))
  } catch (error) {
    throw listenError(error, options)
  }
}

function probe(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()))
  })
}

function isNear({ host = '127.0.0.1', socket }: ServeOptions): boolean {
  return socket !== undefined || isLoopback(host)
}

function beyond(host = ''): string {
  return `--host ${oneLine(host)} reaches beyond this machine`
}

/** Refuses an address beyond this machine that nobody could prove themselves to, and says which options make it safe. */
export async function checkReach(options: ServeOptions, store: Store): Promise<void> {
  if (isNear(options)) return
  const { host, oidc } = options
  const tokens = await new Tokens(store.registry).list(LOCAL_PRINCIPAL)
  if (oidc !== undefined || tokens.some(({ principal }) => principal.id !== LOCAL_PRINCIPAL.id)) return
  const how = `Make a token first: ${legate('token add NAME')}. Or give --oidc-issuer URL and --oidc-audience NAME`
  throw new CliError(`${beyond(host)}, and no caller could sign in. ${how}.`, EXIT.usage)
}

/** Says in one line why the server cannot listen there. */
export function listenError(error: unknown, { host = '127.0.0.1', port = 4747, socket }: ServeOptions): unknown {
  // Messages of the server name its options; a command must name its own instead.
  const { code } = Object(Reflect.get(Object(error), 'cause') ?? error) as NodeJS.ErrnoException
  const place = socket ?? `${host}:${port}`
  const why = code === undefined ? undefined : WHY[code]
  if (why === undefined) return error
  return new CliError(`Cannot listen on ${oneLine(place)}: ${why}`)
}

const WHY: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program does. Choose another port with --port N, or --port 0 for any that is free.',
  EADDRNOTAVAIL: 'this machine does not have the address. Name one of its own with --host.',
  ENOTFOUND: 'there is no host of that name. Name an address of this machine with --host.',
  EAI_AGAIN: 'the name cannot be found now. Name an address of this machine with --host.',
  EACCES: 'you may not. Ports below 1024 need more rights; a socket needs a folder that you may write to.',
  ENOENT: 'its folder does not exist.',
  EINVAL: 'this is no address or path to listen on.',
}
