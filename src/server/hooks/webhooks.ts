// Webhooks: rows of the registry.
//
// Owns:      the rows of kind `webhook`, and who may see them.
// Called by: the routes of `/v1/webhooks` and of A2A; the courier reads and disables them.
// Must stay true:
//   - A webhook belongs to the token that made it. That token, those above it and admins who look after its owner know of it;
//     for others, also of the same id, it does not exist.
//   - A webhook tells at most what the principal that made it may read, and ends with the token or login that made it.
//   - Its secret is shown once.

import { randomBytes } from 'node:crypto'
import { sha256 } from '../../core/base/hash.ts'
import { checkPrincipal, hasScope, isAsWide, looksAfter } from '../../doors/grant.ts'
import type { Registry, RegistryRow } from '../../doors/rows.ts'
import { ConflictError, type Json, NotFoundError, type Principal } from '../../index.ts'
import type { MadeWebhook, WebhookDelivery, WebhookInfo, WebhookRequest, WebhookType } from '../client/index.ts'
import type { Maker, Tokens } from '../identity/tokens.ts'
import { readHookUrl } from './address.ts'
import type { Deliveries, DeliveriesQuery } from './deliveries.ts'
import { makeSecret } from './signature.ts'

/** A stored webhook. */
export interface HookData extends Omit<WebhookInfo, 'id' | 'owner'> {
  readonly secret: string
  readonly principal: Principal
  readonly tokenId: string | null
  /** That token and those above it; left out in rows of an older version. */
  readonly line?: readonly string[]
  /** When the login ends that made it; null, or left out, where it does not say. */
  readonly endsAt?: number | null
  /** Left out where it hears of all runs. */
  readonly push?: HookPush
}

/** A webhook of one run, in the form of A2A. It ends with the run. */
export interface HookPush {
  readonly runId: string
  /** The peer's name for it. */
  readonly configId: string
  /** Headers that the peer wants back. */
  readonly headers: Readonly<Record<string, string>>
}

export interface StoredHook {
  readonly row: RegistryRow
  readonly data: HookData
}

const HOOK = 'webhook'
const PAGE = 500
const MOST_PER_OWNER = 100
const MOST_PUSHES = 1_000

/** How deliveries begin, and what of a token is known. */
export interface WebhookParts {
  readonly registry: Registry
  readonly tokens: Pick<Tokens, 'line' | 'isValid'>
  readonly deliveries: Deliveries
  readonly allowPrivate: boolean
  /** Sees to it that everything from now on is told. */
  readonly begin: () => Promise<void>
  /** Says that there is something to do. */
  readonly wake: () => void
}

/** The webhooks of a store. */
export class Webhooks {
  private readonly parts: WebhookParts

  constructor(parts: WebhookParts) {
    this.parts = parts
  }

  /** Makes a webhook of the principal. Its secret is shown now and never again. */
  async make(maker: Maker, given: WebhookRequest): Promise<MadeWebhook> {
    const { href } = readHookUrl(given.url, this.parts.allowPrivate)
    await this.requireRoom(maker.principal.id, false)
    await this.parts.begin()
    const secret = makeSecret()
    const types = [...new Set(given.types)]
    const facts = { url: href, types, include: given.include ?? null, name: given.name ?? '', createdAt: Date.now() }
    const hook = await this.put(maker, randomBytes(8).toString('hex'), { ...facts, secret })
    return { webhook: infoOf(hook), secret }
  }

  /** Writes it, whatever was there. It belongs to the token of its maker. */
  private async put(
    maker: Maker,
    id: string,
    facts: Omit<HookData, 'disabled' | 'principal' | 'tokenId' | 'line' | 'endsAt'>,
  ): Promise<StoredHook> {
    const { registry, tokens, wake } = this.parts
    const { tokenId, endsAt = null } = maker
    const principal = checkPrincipal(maker.principal, 'webhook')
    const line = tokenId === null ? [] : await tokens.line(tokenId)
    const data: HookData = { ...facts, disabled: null, principal, tokenId, line, endsAt }
    const known = await registry.get(HOOK, id)
    const row = { ...newRow({ id, owner: principal.id }, data), version: (known?.version ?? 0) + 1 }
    await registry.put(row)
    wake()
    return { row, data }
  }

  /** Those whose token is gone make room for new ones. */
  private async requireRoom(owner: string, isPush: boolean): Promise<void> {
    const most = isPush ? MOST_PUSHES : MOST_PER_OWNER
    const own = (await this.rows({ owner })).filter(({ data }) => (data.push !== undefined) === isPush)
    if (own.length < most) return
    let gone = 0
    for (const hook of own) {
      if (!(await this.isGone(hook))) continue
      await this.drop(hook.row.id)
      gone++
    }
    if (gone > 0) return
    throw new ConflictError('conflict', `${owner} has ${own.length} webhooks, which is the most.`)
  }

  /** Has the token or the login ended that made it? */
  async isGone({ data: { tokenId, endsAt = null } }: StoredHook): Promise<boolean> {
    if (tokenId !== null) return !(await this.parts.tokens.isValid(tokenId))
    return endsAt !== null && endsAt <= Date.now()
  }

  /** Throws where a webhook of one more run could not be made. */
  async checkPush({ principal }: Maker, url: string): Promise<void> {
    readHookUrl(url, this.parts.allowPrivate)
    await this.requireRoom(principal.id, true)
  }

  /** Makes a webhook of one run, or replaces the one of this name that the same token made. */
  async makePush(
    maker: Maker,
    {
      url,
      secret,
      createdAt,
      push,
    }: {
      readonly url: string
      readonly secret: string
      /** Events from this moment on are told. */
      readonly createdAt: number
      readonly push: HookPush
    },
  ): Promise<StoredHook> {
    const { href } = readHookUrl(url, this.parts.allowPrivate)
    const id = await this.pushId(maker, push)
    if ((await this.read(id)) === undefined) await this.requireRoom(maker.principal.id, true)
    await this.parts.begin()
    const types: WebhookType[] = hasScope(maker.principal, 'approve') ? ['run.ended', 'run.waiting'] : ['run.ended']
    return this.put(maker, id, {
      url: href,
      types,
      include: null,
      name: `A2A ${push.configId}`,
      createdAt,
      secret,
      push,
    })
  }

  /** Each token has names of its own, and each sort of login. */
  private async pushId({ principal, tokenId }: Maker, { runId, configId }: HookPush): Promise<string> {
    const place = [principal.id, runId, configId]
    const older = await this.read(sha256(JSON.stringify(place)).slice(0, 16))
    const isOwn = older !== undefined && older.data.tokenId === tokenId && tokenId !== null
    if (isOwn) return older.row.id
    return sha256(JSON.stringify([...place, tokenId ?? principal])).slice(0, 16)
  }

  /** The webhooks of one run that a caller may know of: those of its own token first. */
  async pushes(by: Maker, runId: string): Promise<readonly StoredHook[]> {
    const all = (await this.known(by)).filter(({ data }) => data.push?.runId === runId)
    const isOwn = ({ data }: StoredHook) => data.tokenId === by.tokenId
    return [...all.filter(isOwn), ...all.filter((hook) => !isOwn(hook))]
  }

  /** The run is over and its peer was told: nothing more can come. */
  async endPush({ row, data }: StoredHook): Promise<void> {
    if (data.push !== undefined) await this.drop(row.id)
  }

  /** The webhooks that a caller may know of. */
  async list(by: Maker): Promise<readonly WebhookInfo[]> {
    return (await this.known(by)).map(infoOf)
  }

  private async known(by: Maker): Promise<readonly StoredHook[]> {
    // Only an admin makes tokens of another id than his own.
    const owner = hasScope(by.principal, 'admin') ? {} : { owner: by.principal.id }
    const found: StoredHook[] = []
    for (const hook of await this.rows(owner)) if (await this.mayKnow(by, hook)) found.push(hook)
    return found
  }

  /**
   * It belongs to a token and those above it, and to admins who look after its owner. Where none of these tokens is there any more, and where
   * it was made without a token, it belongs to whoever has its id and reads as much as its maker did.
   */
  private async mayKnow({ principal, tokenId }: Maker, { row, data }: StoredHook): Promise<boolean> {
    if (looksAfter(principal, row.owner)) return true
    const { tokens } = this.parts
    const line = data.line ?? (data.tokenId === null ? [] : await tokens.line(data.tokenId))
    if (tokenId !== null && line.includes(tokenId)) return true
    if (row.owner !== principal.id || !isAsWide(principal, data.principal)) return false
    for (const id of line) if (await tokens.isValid(id)) return false
    return true
  }

  async info(id: string, by: Maker): Promise<WebhookInfo> {
    return infoOf(await this.find(id, by))
  }

  private async find(id: string, by: Maker): Promise<StoredHook> {
    const found = await this.read(id)
    if (found !== undefined && (await this.mayKnow(by, found))) return found
    throw new NotFoundError('not_found', `There is no webhook ${id}.`)
  }

  /** Deletes a webhook with all of its deliveries. */
  async remove(id: string, by: Maker): Promise<void> {
    await this.find(id, by)
    await this.drop(id)
  }

  private async drop(id: string): Promise<void> {
    await this.parts.registry.drop(HOOK, id)
    await this.parts.deliveries.dropAll(id)
  }

  /** Its deliveries about trees that the caller sees, the newest first: those that wait, and the latest that are over. */
  async listDeliveries(id: string, by: Maker, query: DeliveriesQuery): Promise<readonly WebhookDelivery[]> {
    await this.find(id, by)
    return this.parts.deliveries.list(id, by.principal, query)
  }

  /** Sends a delivery once more, under the same id. A webhook that was disabled is enabled again. */
  async again(id: string, deliveryId: string, by: Maker): Promise<WebhookDelivery> {
    const hook = await this.find(id, by)
    const info = await this.parts.deliveries.again(id, deliveryId, by.principal)
    if (hook.data.disabled !== null) await this.replace(hook, { ...hook.data, disabled: null })
    this.parts.wake()
    return info
  }

  /** All webhooks, for the courier. */
  all(): Promise<readonly StoredHook[]> {
    return this.rows()
  }

  /** Is there any? */
  async hasAny(): Promise<boolean> {
    return (await this.parts.registry.list(HOOK, { limit: 1 })).length > 0
  }

  /** How many there are, and how many of them get nothing more. */
  async count(): Promise<{ readonly enabled: number; readonly disabled: number }> {
    const all = await this.all()
    const disabled = all.filter(({ data }) => data.disabled !== null).length
    return { enabled: all.length - disabled, disabled }
  }

  async read(id: string): Promise<StoredHook | undefined> {
    const row = await this.parts.registry.get(HOOK, id)
    return row === undefined ? undefined : { row, data: hookOf(row) }
  }

  /** Nothing more goes there. */
  async disable(id: string, reason: string): Promise<void> {
    const found = await this.read(id)
    if (found === undefined || found.data.disabled !== null) return
    await this.replace(found, { ...found.data, disabled: { at: Date.now(), reason } })
  }

  private async replace({ row }: StoredHook, data: HookData): Promise<void> {
    await this.parts.registry.put({ ...row, version: row.version + 1, at: Date.now(), data: data as unknown as Json })
  }

  /** All rows, or those of one owner. */
  private async rows(owner: { owner?: string } = {}): Promise<StoredHook[]> {
    const all: StoredHook[] = []
    for (let after = ''; ; ) {
      const page = await this.parts.registry.list(HOOK, { ...owner, after, limit: PAGE })
      all.push(...page.map((row) => ({ row, data: hookOf(row) })))
      if (page.length < PAGE) return all
      after = page.at(-1)?.id ?? ''
    }
  }
}

function newRow(place: Pick<RegistryRow, 'id' | 'owner'>, data: HookData): RegistryRow {
  return { kind: HOOK, ...place, version: 1, at: Date.now(), data: data as unknown as Json }
}

function hookOf(row: RegistryRow): HookData {
  return row.data as unknown as HookData
}

function infoOf({ row, data }: StoredHook): WebhookInfo {
  const { url, types, include, name, createdAt, disabled, principal } = data
  return { id: row.id, url, types, include, name, owner: principal.id, createdAt, disabled }
}
