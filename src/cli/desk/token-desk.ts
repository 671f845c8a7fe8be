import type { MadeToken, RevokedTokens, TokenInfo } from '../../doors/grant.ts'
import type { Principal, Runtime } from '../../index.ts'
import type { LegateClient } from '../../server/client/index.ts'
import { LOCAL_PRINCIPAL, Tokens } from '../../server/index.ts'
import { CliError, EXIT } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import { oneLine } from '../terminal/clean.ts'

/** A token that a person asks for. */
export interface AskedToken {
  readonly name: string
  readonly principal: Principal
  /** When it ends, in milliseconds since 1970; null: never. */
  readonly expiresAt: number | null
  /** The token that it stands within; null: none but the one that makes it. */
  readonly within: string | null
}

/** The tokens of a store or of a server, for commands. */
export interface TokenDesk {
  add(request: AskedToken): Promise<MadeToken>
  list(): Promise<readonly TokenInfo[]>
  /** Revokes a token and all below it; with `cancel` it also cancels the open runs of their owners. */
  revoke(id: string, cancel: boolean): Promise<RevokedTokens>
}

/** The tokens of a store of this machine, as its user sees them. */
export function localTokens(runtime: Runtime): TokenDesk {
  const tokens = new Tokens(runtime.store.registry)
  const list = () => tokens.list(LOCAL_PRINCIPAL)
  return {
    list,
    add: async ({ within, ...request }) => {
      if (within === null) return tokens.make(request)
      const { id, principal } = oneToken(await list(), within)
      return tokens.makeNarrower({ principal, tokenId: id }, request)
    },
    revoke: async (id, cancel) => {
      if (cancel) return tokens.revokeWithRuns(id, runtime.as(LOCAL_PRINCIPAL))
      return { revoked: await tokens.revoke(id, LOCAL_PRINCIPAL), cancelled: [] }
    },
  }
}

/** The tokens of a server, as whoever the token of this command stands for sees them. */
export function remoteTokens(client: LegateClient): TokenDesk {
  return {
    list: async () => (await client.request<{ readonly tokens: readonly TokenInfo[] }>('/v1/tokens')).tokens,
    add: ({ name, principal, expiresAt, within }) => {
      if (within !== null) {
        const message = 'A server makes tokens within the one that you use: leave out --within, and use that token.'
        throw new CliError(message, EXIT.usage)
      }
      const body = { name, principal, ...(expiresAt === null ? {} : { expiresAt }) }
      return client.request('/v1/tokens', { method: 'POST', body })
    },
    revoke: (id, cancel) =>
      client.request(`/v1/tokens/${encodeURIComponent(id)}`, { method: 'DELETE', query: { cancel } }),
  }
}

const LEAST_TYPED = 4

/** Finds a token by its id, its beginning, or the whole text of the token. */
export function oneToken(tokens: readonly TokenInfo[], typed: string): TokenInfo {
  const wanted = (/^lgt_([0-9a-f]+)(?:_|$)/.exec(typed)?.[1] ?? typed).toLowerCase()
  const found = wanted.length < LEAST_TYPED ? [] : tokens.filter(({ id }) => id.startsWith(wanted))
  const [first, ...others] = found
  if (first !== undefined && others.length === 0) return first
  const how = `${legate('token list')} shows them.`
  const what = first === undefined ? 'There is no token' : 'More than one token has an id that begins with'
  throw new CliError(`${what} ${oneLine(wanted)}. ${how}`, EXIT.usage, { namesHelp: false })
}
