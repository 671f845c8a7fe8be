// Chooses the desk of a command: a server that was named, or the store of this machine.
//
// Owns:      the address and the token of the server, and the errors of a server as lines for people.
// Called by: every command that looks at runs or changes them.
// Must stay true:
//   - A command does not know which of the two it works on, and names one of them at most.

import { ClientError, connect, type LegateClient } from '../../server/client/index.ts'
import { type Call, CliError, EXIT, textOption } from '../command/command.ts'
import { withPlaces } from '../command/next-command.ts'
import type { Desk } from '../desk/desk.ts'
import { remoteDesk } from '../desk/remote-desk.ts'
import { socketFetch } from '../desk/socket-fetch.ts'
import { localTokens, remoteTokens, type TokenDesk } from '../desk/token-desk.ts'
import { oneLine } from '../terminal/clean.ts'
import { withRuntime } from './open-store.ts'

type Use = 'read' | 'write' | 'make'

/** Calls `act` with the desk of the command, then closes it. */
export function withDesk<T>(call: Call, use: Use, act: (desk: Desk) => Promise<T>): Promise<T> {
  const client = clientFor(call)
  return client === undefined ? withRuntime(call, use, act) : asCliErrors(() => act(remoteDesk(client)))
}

/** Calls `act` with the tokens of the server that was named, or of the store of this machine. */
export function withTokens<T>(call: Call, use: Use, act: (tokens: TokenDesk) => Promise<T>): Promise<T> {
  const client = clientFor(call)
  if (client !== undefined) return asCliErrors(() => act(remoteTokens(client)))
  return withRuntime(call, use, (runtime) => act(localTokens(runtime)))
}

/** The address of the server that a command was told to use; undefined: it uses the store. */
export function serverNamed(call: Call): string | undefined {
  const named = textOption(call, 'server')
  const store = textOption(call, 'store')
  if (named === '') throw new CliError('--server is empty: give the address that the server printed.', EXIT.usage)
  if (named !== undefined && store !== undefined) {
    throw new CliError('--server and --store name two places: give one of them.', EXIT.usage)
  }
  const usual = call.env['LEGATE_SERVER'] ?? ''
  return named ?? (store === undefined && usual !== '' ? usual : undefined)
}

/** The client of the server that a command was told to use; undefined: it uses the store. */
export function clientFor(call: Call): LegateClient | undefined {
  const server = serverNamed(call)
  if (server === undefined) return undefined
  if (server.startsWith('unix:')) {
    return connect({ url: 'http://localhost', fetch: socketFetch(server.slice('unix:'.length)), ...tokenOf(call) })
  }
  if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol)) {
    const message = `"${oneLine(server)}" is not an address of a server: write http://HOST:PORT/#token=..., or unix:PATH.`
    throw new CliError(message, EXIT.usage)
  }
  const url = new URL(server)
  const { token } = { ...tokenIn(url), ...tokenOf(call) } as { readonly token?: string }
  url.hash = ''
  return connect({ url, ...(token === undefined ? {} : { token }) })
}

function tokenOf(call: Call): { readonly token?: string } {
  const token = textOption(call, 'token') ?? call.env['LEGATE_TOKEN'] ?? ''
  return token === '' ? {} : { token }
}

function tokenIn({ hash }: URL): { readonly token?: string } {
  const token = new URLSearchParams(hash.slice(1)).get('token')
  return token === null ? {} : { token }
}

/** Errors of a server become lines for people, as those of the library are. */
export async function asCliErrors<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    const { message, status, advice } = error
    if (status === 401) throw new CliError(message.includes('expired') ? message : NO_TOKEN)
    throw new CliError(withPlaces(advice === null || message.includes(advice) ? message : `${message} ${advice}`))
  }
}

const NO_TOKEN =
  'The server does not know you: give a token with --token or LEGATE_TOKEN, or the whole address that the server printed.'
