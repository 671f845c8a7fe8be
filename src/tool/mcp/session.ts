import type { Client, Transport } from '@modelcontextprotocol/client'
import { ToolError } from '../../base/error.ts'
import { setToolsAside } from './given-tools.ts'
import { plainReason } from './plain-reason.ts'

export interface Session {
  readonly client: Client
  readonly transport: Transport
}

export interface SessionParts {
  /** A new one for each try. */
  readonly transport: () => Promise<Transport>
  /** Is it already known to speak a revision before 2026-07-28 only? */
  readonly isOld: boolean
  readonly startTimeoutMs: number
  /** Called with each transport before it is opened. */
  readonly onOpening: (transport: Transport) => void
  readonly onClose: (transport: Transport) => void
  readonly onToolsChanged: () => void
}

/**
 * Connects to a server of any revision: asks it with `server/discover` what it speaks, and says `initialize` to one that does
 * not know. Some older programs end when they are asked: such a one is started once more. Rejects with the reason.
 */
export async function openSession(parts: SessionParts): Promise<Session> {
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

/** Why a server ended, as far as its transport knows. */
export function lastWords(transport: Transport): string {
  return 'lastWords' in transport && typeof transport.lastWords === 'string' ? transport.lastWords : ''
}

async function connect(transport: Transport, parts: SessionParts, isOld: boolean): Promise<Session> {
  const { Client } = await import('@modelcontextprotocol/client')
  const half = Math.ceil(parts.startTimeoutMs / 2)
  const client = new Client(
    { name: 'legate', version: '0' },
    {
      capabilities: {},
      // Nobody is here to answer what a server asks: see plainReason.
      inputRequired: { autoFulfill: false },
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: half } },
    },
  )
  client.setNotificationHandler('notifications/tools/list_changed', () => parts.onToolsChanged())
  client.onclose = () => parts.onClose(transport)
  parts.onOpening(transport)
  await client.connect(
    transport,
    isOld ? { timeout: parts.startTimeoutMs, prior: { kind: 'legacy' } } : { timeout: half },
  )
  setToolsAside(transport)
  return { client, transport }
}

/** What the library says of a server that ended while it was asked what it speaks: why it ended says more. */
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
