// Tokens: rows of the store of kind `token`. A row has the hash of the secret, never the secret.
//
// Owns:      the text form of a token, how tokens are made, checked, listed and revoked.
// Called by: the server to say who asks; the routes of `/v1/tokens` and `legate token`.
// Must stay true:
//   - A token is found by its id and compared in constant time; an unknown id costs the same comparison.
//   - A token made with another can do at most what that one can, and goes with it: every token above it must still be there.
//   - What somebody made with a token takes no place from anybody else: those below each token are counted for that token.
//   - A revoked token is refused within a second in every process that has the store.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import {
  atThisMachine,
  checkPrincipal,
  hasScope,
  isOfThisMachine,
  isOperator,
  looksAfter,
  type MadeToken,
  narrowPrincipal,
  type RevokedTokens,
  type TokenInfo,
} from '../../doors/grant.ts'
import type { Registry, RegistryRow } from '../../doors/rows.ts'
import type { Principal, ScopedRuntime } from '../../index.ts'
import { ConflictError, InputError, type Json, NotFoundError } from '../../index.ts'
import type { Authenticator, IdentityVerdict } from './authenticator.ts'
import { LOCAL_PRINCIPAL, LOCAL_TOKEN_NAME, refuseLocalId } from './local-token.ts'

/** A token to make. */
export interface NewToken {
  /** Who holds it, and what it may do. */
  readonly principal: Principal
  /** For people who look at the list. */
  readonly name?: string
  /** When it ends, in milliseconds since 1970. Default: never. */
  readonly expiresAt?: number | null
  /** The token that makes it. */
  readonly parent?: string | null
}

/** Who makes something that goes with him. */
export interface Maker {
  /** Who he is, and what he may do. */
  readonly principal: Principal
  /** The token that he has; null: none. */
  readonly tokenId: string | null
  /** When the login ends by which he came; null: it does not say. */
  readonly endsAt?: number | null
}

interface TokenData {
  readonly [key: string]: Json
  readonly hash: string
  readonly name: string
  readonly principal: Json & object
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly lastUsedAt: number | null
  readonly parent: string | null
  /** Left out where it is not, and in rows of older versions, which only name the token of this machine. */
  readonly isOfThisMachine?: boolean
}

const KIND = 'token'
/** Marks of revoked tokens of this machine. */
const GONE = 'revoked-token'
const FORM = /^lgt_([0-9a-f]{16})_([\w-]{43})$/
const FRESH_MS = 1_000
const USE_EVERY_MS = 60_000
const MOST_CACHED = 10_000
const MOST_LISTED = 1_000
const MOST_ABOVE = 16
/** The most tokens below one of the operator's, and below one login. */
const MOST_BELOW = 1_000
/** The most below a token that was itself made with another: nobody fills the place of who made him. */
const MOST_BELOW_MADE = 100

interface KnownToken {
  readonly data: TokenData | undefined
  readonly at: number
}

/** The tokens of a store. */
export class Tokens {
  private readonly registry: Registry
  private readonly now: () => number
  private readonly known: Map<string, KnownToken> = new Map()
  private readonly used: Map<string, number> = new Map()

  constructor(registry: Registry, now: () => number = Date.now) {
    this.registry = registry
    this.now = now
  }

  /** Recognises `Authorization: Bearer lgt_...`. The token of this name is not taken, but those made with it are. */
  authenticator(except?: string): Authenticator {
    return async ({ bearer }) => {
      if (bearer?.startsWith('lgt_') !== true) return undefined
      return this.verify(bearer, except)
    }
  }

  private async verify(token: string, except: string | undefined): Promise<IdentityVerdict> {
    const [, id = '', secret = ''] = FORM.exec(token) ?? []
    const data = id === '' ? undefined : await this.read(id)
    const isRight = isSameHash(data?.hash ?? NO_HASH, hashOf(secret))
    if (data === undefined || !isRight || (data.parent === null && data.name === except)) return 'no'
    // Only who has the secret hears that the token is over.
    if (!(await this.isValid(id))) return this.isOver(data) ? 'expired' : 'no'
    this.noteUse(id).catch(() => undefined)
    return {
      principal: principalOf(data),
      tokenId: id,
      isStillValid: () => this.isValid(id),
    }
  }

  /** Is the token with this id there, and every one above it? */
  async isValid(id: string): Promise<boolean> {
    return (await this.valid(id)) !== undefined
  }

  private isOver({ expiresAt }: TokenData): boolean {
    return expiresAt !== null && expiresAt <= this.now()
  }

  /** The token's data while it and all above it are there and have not expired. */
  private async valid(id: string): Promise<TokenData | undefined> {
    const first = await this.read(id)
    let data = first
    for (let above = 0; data !== undefined; above++) {
      if (this.isOver(data)) return undefined
      if (data.parent === null) return first
      if (above >= MOST_ABOVE) return undefined
      data = await this.read(data.parent)
    }
    return undefined
  }

  /** A token and those above it, as far as they are there. */
  async line(id: string): Promise<readonly string[]> {
    const line: string[] = []
    for (let at: string | null = id; at !== null && line.length <= MOST_ABOVE; ) {
      const data: TokenData | undefined = await this.read(at)
      if (data === undefined) break
      line.push(at)
      at = data.parent
    }
    return line
  }

  private async read(id: string): Promise<TokenData | undefined> {
    const known = this.known.get(id)
    if (known !== undefined && this.now() - known.at < FRESH_MS) return known.data
    const row = await this.registry.get(KIND, id)
    const data = row === undefined ? undefined : dataOf(row)
    this.known.delete(id)
    this.known.set(id, { data, at: this.now() })
    const [oldest] = this.known.keys()
    if (this.known.size > MOST_CACHED && oldest !== undefined) this.known.delete(oldest)
    return data
  }

  /** Reads every token anew: after rows of many may have gone. */
  refresh(): void {
    this.known.clear()
  }

  /** Once a minute: a busy token must not write all the time. A race with another process changes nothing. */
  private async noteUse(id: string): Promise<void> {
    const now = this.now()
    if (now - (this.used.get(id) ?? 0) < USE_EVERY_MS) return
    if (this.used.size > MOST_CACHED) this.used.clear()
    this.used.set(id, now)
    const row = await this.registry.get(KIND, id)
    if (row === undefined || now - (dataOf(row).lastUsedAt ?? 0) < USE_EVERY_MS) return
    await this.registry.put({ ...row, version: row.version + 1, data: { ...dataOf(row), lastUsedAt: now } })
  }

  /** Makes a token, as the operator does. What it can do is checked, not narrowed: see `makeNarrower`. */
  async make(given: NewToken): Promise<MadeToken> {
    const id = randomBytes(8).toString('hex')
    return this.write(given, id, randomBytes(32).toString('base64url'))
  }

  /** Makes a token with another one: it can do at most what both can. */
  async makeNarrower(maker: Maker, given: NewToken): Promise<MadeToken> {
    const principal = narrowPrincipal(maker.principal, given.principal)
    await this.makeRoom(maker)
    const { tokenId: parent, endsAt = null } = maker
    // No token stands above it that would end it with the login.
    const expiresAt = endsAt === null ? (given.expiresAt ?? null) : Math.min(given.expiresAt ?? endsAt, endsAt)
    return this.make({ ...given, principal, parent, expiresAt })
  }

  /** Refuses one token too many of its maker, or of who made him. Expired ones make room. The operator is not bound. */
  private async makeRoom(maker: Maker): Promise<void> {
    if (isOperator(maker.principal)) return
    const rows = await this.rowsBelow(maker.principal)
    for (const { most, below } of crowdsOf(rows, maker)) {
      if (below.length < most) continue
      const expired = below.filter((row) => (dataOf(row).expiresAt ?? Number.MAX_VALUE) <= this.now())
      // Those below them do not hold any more either.
      const over = new Set(expired.flatMap(({ id }) => [...withThoseBelow(rows, id)]))
      for (const id of over) await this.registry.drop(KIND, id)
      if (over.size > 0) continue
      const message = `${most} tokens were made with this one or one above it, which is the most. Revoke some first.`
      throw new ConflictError('conflict', message)
    }
  }

  /** All rows that may stand below tokens of a principal, or of who made it: only an admin makes some of another id. */
  private rowsBelow(principal: Principal): Promise<readonly RegistryRow[]> {
    for (let at: Principal | undefined = principal; at !== undefined && !isOperator(at); at = at.within) {
      if (hasScope(at, 'admin')) return this.rows()
    }
    return isOperator(principal) ? this.rows() : this.rows(principal.id)
  }

  /**
   * Puts a token that is known by its text into the store, unless it is there: the one of this machine. False where it was
   * revoked: it never comes back.
   */
  async keep(token: string, given: NewToken): Promise<boolean> {
    const [, id = '', secret = ''] = FORM.exec(token) ?? []
    if (id === '') throw new InputError('invalid_input', 'This is no token: a token looks like lgt_<id>_<secret>.')
    if ((await this.registry.get(GONE, id)) !== undefined) return false
    const known = await this.registry.get(KIND, id)
    if (known === undefined) await this.write(given, id, secret)
    return true
  }

  private async write(given: NewToken, id: string, secret: string): Promise<MadeToken> {
    const principal = refuseLocalId(checkPrincipal(given.principal, 'token'), 'token')
    const { expiresAt = null, name = '', parent = null } = given
    const now = this.now()
    const data = {
      hash: hashOf(secret).toString('hex'),
      name,
      principal: principal as unknown as Json & object,
      createdAt: now,
      expiresAt,
      lastUsedAt: null,
      parent,
      ...(isOfThisMachine(principal) ? { isOfThisMachine: true } : {}),
    }
    await this.registry.put({ kind: KIND, id, owner: principal.id, version: 1, at: now, data })
    this.known.delete(id)
    return { token: `lgt_${id}_${secret}`, info: infoOf(id, data) }
  }

  /** The tokens that a caller may know of and revoke: his own and those below it; for an admin also those of owners he sees. */
  async list(by: Principal, tokenId: string | null = null): Promise<readonly TokenInfo[]> {
    const rows = await this.rowsBelow(by)
    const reached = reachedRows(rows, by, tokenId)
    return rows.filter(({ id }) => reached.has(id)).map((row) => infoOf(row.id, dataOf(row)))
  }

  /** Is there any token beside those with this name? */
  async hasOther(name: string): Promise<boolean> {
    const rows = await this.rows()
    return rows.map(dataOf).some((data) => data.name !== name && (data.expiresAt ?? Number.MAX_VALUE) > this.now())
  }

  /** The principals of all tokens that are taken now. */
  async principals(): Promise<readonly Principal[]> {
    const valid: Principal[] = []
    for (const row of await this.rows()) if (await this.isValid(row.id)) valid.push(principalOf(dataOf(row)))
    return valid
  }

  /** Revokes a token and all that were made with it. Gives their ids. */
  async revoke(id: string, by: Principal, tokenId: string | null = null): Promise<readonly string[]> {
    const rows = await this.rowsBelow(by)
    if (!reachedRows(rows, by, tokenId).has(id)) throw new NotFoundError('not_found', `There is no token ${id}.`)
    const gone = withThoseBelow(rows, id)
    for (const one of gone) {
      const row = rows.find((other) => other.id === one)
      if (row !== undefined && dataOf(row).name === LOCAL_TOKEN_NAME) await this.markGone(one)
      await this.registry.drop(KIND, one)
      this.known.delete(one)
    }
    return [...gone]
  }

  /** The text of this token is in a file: the next server would put it there again. */
  private async markGone(id: string): Promise<void> {
    if ((await this.registry.get(GONE, id)) !== undefined) return
    await this.registry.put({ kind: GONE, id, owner: null, version: 1, at: this.now(), data: {} })
  }

  /** Revokes a token and all that were made with it, and cancels the open runs of their owners. */
  async revokeWithRuns(id: string, runtime: ScopedRuntime, tokenId: string | null = null): Promise<RevokedTokens> {
    // All that it needs, before anything is gone.
    runtime.require('cancel')
    runtime.require('read')
    const before = await this.list(runtime.principal, tokenId)
    const revoked = await this.revoke(id, runtime.principal, tokenId)
    const gone = before.filter((one) => revoked.includes(one.id))
    const { cancelRunsOf } = await import('./revoke.ts')
    return { revoked, cancelled: await cancelRunsOf(runtime, new Set(gone.map(({ principal }) => principal.id))) }
  }

  private async rows(owner?: string): Promise<readonly RegistryRow[]> {
    const all: RegistryRow[] = []
    for (let after: string | undefined; ; ) {
      const from = { ...(after === undefined ? {} : { after }), ...(owner === undefined ? {} : { owner }) }
      const page = await this.registry.list(KIND, { ...from, limit: MOST_LISTED })
      all.push(...page)
      if (page.length < MOST_LISTED) return all
      after = page.at(-1)?.id
    }
  }
}

/** The tokens that count together for a maker, and the most that there may be of them. */
interface Crowd {
  readonly most: number
  readonly below: readonly RegistryRow[]
}

/** Those below the maker's token, and below each one above it, up to the operator; and those of the login that they came by. */
function* crowdsOf(rows: readonly RegistryRow[], { principal, tokenId }: Maker): Generator<Crowd> {
  const rowOf = (id: string | null) => rows.find((one) => one.id === id)
  let row = rowOf(tokenId)
  let login: Principal | undefined = tokenId === null ? principal : undefined
  while (row !== undefined && !isOperator(principalOf(dataOf(row)))) {
    const { id } = row
    const ids = withThoseBelow(rows, id)
    const { within } = principalOf(dataOf(row))
    const isMade = within !== undefined && !isOperator(within)
    yield { most: isMade ? MOST_BELOW_MADE : MOST_BELOW, below: rows.filter((one) => one.id !== id && ids.has(one.id)) }
    const { parent } = dataOf(row)
    if (parent === null && isMade) login = within
    row = rowOf(parent)
  }
  if (login === undefined) return
  const ids = new Set(rows.filter((one) => isOfLogin(one, login.id)).flatMap(({ id }) => [...withThoseBelow(rows, id)]))
  yield { most: MOST_BELOW, below: rows.filter(({ id }) => ids.has(id)) }
}

/** Was it made by somebody of this id who had no token himself? */
function isOfLogin(row: RegistryRow, id: string): boolean {
  const data = dataOf(row)
  return data.parent === null && principalOf(data).within?.id === id
}

/**
 * The ids that a caller may know of. A token knows of those that it made, never of others of its id. An admin of some agents only
 * looks after no more: tokens of the owners that he sees reach other agents.
 */
function reachedRows(rows: readonly RegistryRow[], by: Principal, tokenId: string | null): ReadonlySet<string> {
  const seen = rows.filter(({ owner }) => looksAfter(by, owner))
  const isThere = rows.some(({ id }) => id === tokenId)
  const below = tokenId !== null && isThere ? withThoseBelow(rows, tokenId) : []
  return new Set([...seen.map(({ id }) => id), ...below])
}

function withThoseBelow(rows: readonly RegistryRow[], id: string): ReadonlySet<string> {
  const made = new Map<string | null, string[]>()
  for (const row of rows) {
    const { parent } = dataOf(row)
    const list = made.get(parent) ?? []
    list.push(row.id)
    made.set(parent, list)
  }
  const found = new Set([id])
  for (const parent of found) for (const one of made.get(parent) ?? []) found.add(one)
  return found
}

const NO_HASH = '0'.repeat(64)

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function isSameHash(hex: string, given: Buffer): boolean {
  const stored = Buffer.from(hex, 'hex')
  return stored.length === given.length && timingSafeEqual(stored, given)
}

function dataOf(row: RegistryRow): TokenData {
  return row.data as TokenData
}

/** The principal of a token. A row that a server made for somebody else never says that it is of this machine. */
function principalOf(data: TokenData): Principal {
  const principal = data.principal as unknown as Principal
  const isOfOlder = data.name === LOCAL_TOKEN_NAME && data.parent === null && principal.within === undefined
  const isHere = data.isOfThisMachine ?? (isOfOlder && principal.id === LOCAL_PRINCIPAL.id)
  return isHere ? atThisMachine(principal) : principal
}

function infoOf(id: string, data: TokenData): TokenInfo {
  const { name, createdAt, expiresAt, lastUsedAt, parent } = data
  return { id, name, principal: principalOf(data), createdAt, expiresAt, lastUsedAt, parent }
}
