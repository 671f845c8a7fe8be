import type { Client, Transport } from '@modelcontextprotocol/client'
import { messageOf, ToolError } from '../../base/error.ts'
import { setToolsAside } from './read-tools.ts'

export interface McpSession {
  readonly client: Client
  readonly transport: Transport
}

export interface SessionParts {
  /** Makes a new one for each try. */
  readonly transport: () => Promise<Transport>
  /** True when it is known to speak only revisions before 2026-07-28. */
  readonly isOld: boolean
  readonly startTimeoutMs: number
  /** Called with each transport before it is opened. */
  readonly onOpening: (transport: Transport) => void
  readonly onClose: (transport: Transport) => void
  readonly onToolsChanged: () => void
}

/**
 * Connects to a server of any revision: sends `server/discover`, and `initialize` to a server that does not know it.
 * Some older programs end at the first request: they are started once more. Rejects with the reason.
 */
export async function openSession(parts: SessionParts): Promise<McpSession> {
  const first = await parts.transport()
  try {
    return await connect(first, parts, parts.isOld)
  } catch (error) {
    await first.close().catch(() => undefined)
    if (parts.isOld || !hasExited(first)) throw failure(error, first)
  }
  const second = await parts.transport()
  try {
    return await connect(second, parts, true)
  } catch (error) {
    await second.close().catch(() => undefined)
    throw failure(error, second)
  }
}

/** The reason why a server ended, as far as its transport knows. */
export function lastWords(transport: Transport): string {
  return 'lastWords' in transport && typeof transport.lastWords === 'string' ? transport.lastWords : ''
}

async function connect(transport: Transport, parts: SessionParts, isOld: boolean): Promise<McpSession> {
  const { Client } = await import('@modelcontextprotocol/client')
  const client = new Client(
    { name: 'legate', version: '0' },
    {
      capabilities: {},
      // Nobody here answers questions of a server: see plainReason.
      inputRequired: { autoFulfill: false },
      // A server that does not answer the question gets the other half for `initialize`.
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: Math.ceil(parts.startTimeoutMs / 2) } },
    },
  )
  client.setNotificationHandler('notifications/tools/list_changed', () => parts.onToolsChanged())
  client.onclose = () => parts.onClose(transport)
  parts.onOpening(transport)
  const timeout = parts.startTimeoutMs
  await soon(client.connect(transport, { timeout, ...(isOld && { prior: { kind: 'legacy' } }) }), timeout)
  setToolsAside(transport)
  return { client, transport }
}

/** Rejects when the time is over: the library has a clock for each request, and none for both. */
async function soon(connecting: Promise<void>, timeoutMs: number): Promise<void> {
  let clock: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    clock = setTimeout(() => reject(new ToolError('tool', `Request timed out after ${timeoutMs} ms`)), timeoutMs)
  })
  await Promise.race([connecting, late]).finally(() => clearTimeout(clock))
}

/** The library's message for a server that ended during its first request. The server's own reason is more useful. */
const CLOSED = 'Version negotiation failed'

function hasExited(transport: Transport): boolean {
  return 'hasExited' in transport && transport.hasExited === true
}

function failure(error: unknown, transport: Transport): ToolError {
  const [words, reason] = [lastWords(transport), plainReason(error)]
  if (words !== '' && reason.startsWith(CLOSED)) return new ToolError('tool', words)
  const isTold = words === '' || reason.includes(words)
  return new ToolError('tool', isTold ? reason : `${reason} (${words})`)
}

/** Explains in one line what went wrong between us and a server. */
export function plainReason(error: unknown): string {
  const data = field(error, 'data')
  if (field(data, 'resultType') === 'input_required') {
    return 'the server asks a person for more input, which is not supported here'
  }
  const offered = offeredVersions(error, data)
  if (offered !== undefined) return `it speaks MCP ${offered}, and we speak 2026-07-28 and the revisions before it`
  const trouble = networkTrouble(error, data)
  if (trouble !== undefined) return `it cannot be reached: ${trouble}`
  const text = field(data, 'text')
  const said = typeof text === 'string' && text.trim() !== '' && !messageOf(error).includes(text) ? `: ${text}` : ''
  const line = `${messageOf(error)}${said}`.replace(PROBE, '').replaceAll(/\s+/g, ' ').trim()
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST).toWellFormed()}...`
}

const LONGEST = 2_000
/** The library sends the first request of a connection; it fails where the program does not exist. */
const PROBE = /^Version negotiation probe failed: /

/** The revisions that a server supports, where none of them is ours. */
function offeredVersions(error: unknown, data: unknown): string | undefined {
  const supported = field(data, 'supported')
  if (Array.isArray(supported)) return supported.filter((version) => typeof version === 'string').join(', ')
  return /^Server's protocol version is not supported: (.*)$/.exec(messageOf(error))?.[1]
}

/** Finds the causes behind `fetch failed`, which explains nothing by itself. */
function networkTrouble(error: unknown, data: unknown): string | undefined {
  if (!/\bfetch failed$/.test(messageOf(error))) return undefined
  let cause = field(error, 'cause') ?? field(data, 'cause')
  for (let depth = 0; depth < DEEPEST && field(cause, 'cause') !== undefined; depth++) cause = field(cause, 'cause')
  const code = field(cause, 'code')
  const message = field(cause, 'message')
  return typeof message === 'string' && message !== '' ? messageOf(cause) : typeof code === 'string' ? code : undefined
}

const DEEPEST = 5

function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
