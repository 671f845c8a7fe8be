// Webhooks and their deliveries: rows of the registry.
//
// Owns:      the rows of kinds `webhook`, `delivery` (to be sent) and `delivered` (sent or given up), and who may see them.
// Called by: the routes of `/v1/webhooks`; the courier makes, sends and ends deliveries.
// Must stay true:
//   - A webhook tells at most what the principal that made it may read, and ends with the token or login that made it.
//   - Its secret is shown once.
//   - The id of a delivery comes from its event, so the same event never makes two.

import { randomBytes } from 'node:crypto'
import { sha256 } from '../../base/hash.ts'
import type { MadeWebhook, WebhookDelivery, WebhookInfo, WebhookRequest, WebhookType } from '../../client/index.ts'
import { checkPrincipal, hasScope, maySee } from '../../doors/grant.ts'
import type { Registry, RegistryRow } from '../../doors/rows.ts'
import { ConflictError, type Json, NotFoundError, type Principal } from '../../index.ts'
import type { Maker } from '../identity/tokens.ts'
import { readHookUrl } from './address.ts'
import { isStale } from './lease.ts'
import { makeSecret } from './signature.ts'

/** Events that a webhook can ask for. */
export const HOOK_TYPES: readonly WebhookType[] = Object.freeze([
  'run.ended',
  'run.waiting',
  'approval.requested',
  'question.asked',
  'run.stalled',
  'budget.reached',
])

/** A stored webhook. */
export interface HookData extends Omit<WebhookInfo, 'id' | 'owner'> {
  readonly secret: string
  readonly principal: Principal
  readonly tokenId: string | null
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

/** A stored delivery. */
export interface DeliveryData {
  readonly hookId: string
  readonly type: WebhookType
  readonly rootId: string
  readonly seq: number
  readonly body: string
  readonly attempts: number
  /** Not before this moment. */
  readonly nextAt: number
  /** The last try; null before the first. */
  readonly last: { readonly at: number; readonly status: number | null; readonly error: string | null } | null
  readonly state: 'waiting' | 'delivered' | 'failed'
}

export interface StoredDelivery {
  readonly row: RegistryRow
  readonly data: DeliveryData
}

/** A webhook of one run that is to be made. */
export interface PushRequest {
  readonly url: string
  readonly secret: string
  /** Events from this moment on are told. */
  readonly createdAt: number
  readonly push: HookPush
}

const HOOK = 'webhook'
const WAITING = 'delivery'
const OVER = 'delivered'
const PAGE = 500
const MOST_PER_OWNER = 100
const MOST_PUSHES = 1_000
const MOST_KEPT = 500

/** How deliveries begin, and what of a token is known. */
export interface WebhookParts {
  readonly registry: Registry
  readonly allowPrivate: boolean
  /** Sees to it that everything from now on is told. */
  readonly begin: () => Promise<void>
  /** Says that there is something to do. */
  readonly wake: () => void
}

function mayKnow(by: Principal, { owner }: RegistryRow): boolean {
  return owner === by.id || (hasScope(by, 'admin') && maySee(by, owner))
}

/** The webhooks of a store. */
export class Webhooks {
  private readonly parts: WebhookParts

  constructor(parts: WebhookParts) {
    this.parts = parts
  }

  /** Makes a webhook of the principal. Its secret is shown now and never again. */
  async make(maker: Maker, given: WebhookRequest): Promise<MadeWebhook> {
    const { registry, allowPrivate, begin } = this.parts
    const principal = checkPrincipal(maker.principal, 'webhook')
    const { href } = readHookUrl(given.url, allowPrivate)
    await this.requireRoom(principal.id, false)
    await begin()
    const data: HookData = {
      url: href,
      types: [...new Set(given.types)],
      include: given.include ?? null,
      name: given.name ?? '',
      createdAt: Date.now(),
      disabled: null,
      secret: makeSecret(),
      principal,
      tokenId: maker.tokenId,
      endsAt: maker.endsAt ?? null,
    }
    const row = newRow({ kind: HOOK, id: randomBytes(8).toString('hex'), owner: principal.id }, data)
    await registry.put(row)
    this.parts.wake()
    return { webhook: infoOf({ row, data }), secret: data.secret }
  }

  private async requireRoom(owner: string, isPush: boolean): Promise<void> {
    const own = (await this.rows(HOOK, '', { owner })).filter((row) => (hookOf(row).push !== undefined) === isPush)
    if (own.length < (isPush ? MOST_PUSHES : MOST_PER_OWNER)) return
    throw new ConflictError('conflict', `${owner} has ${own.length} webhooks, which is the most.`)
  }

  /** Throws where a webhook of one more run could not be made. */
  async checkPush({ principal }: Maker, url: string): Promise<void> {
    readHookUrl(url, this.parts.allowPrivate)
    await this.requireRoom(principal.id, true)
  }

  /** Makes a webhook of one run, or replaces the one of this name. */
  async makePush(maker: Maker, given: PushRequest): Promise<StoredHook> {
    const { registry, allowPrivate, begin } = this.parts
    const principal = checkPrincipal(maker.principal, 'webhook')
    const { href } = readHookUrl(given.url, allowPrivate)
    const { push, secret, createdAt } = given
    const id = sha256(JSON.stringify([principal.id, push.runId, push.configId])).slice(0, 16)
    const known = await registry.get(HOOK, id)
    if (known === undefined) await this.requireRoom(principal.id, true)
    await begin()
    const types: WebhookType[] = hasScope(principal, 'approve') ? ['run.ended', 'run.waiting'] : ['run.ended']
    const data: HookData = {
      url: href,
      types,
      include: null,
      name: `A2A ${push.configId}`,
      createdAt,
      disabled: null,
      secret,
      principal,
      tokenId: maker.tokenId,
      endsAt: maker.endsAt ?? null,
      push,
    }
    const row = { ...newRow({ kind: HOOK, id, owner: principal.id }, data), version: (known?.version ?? 0) + 1 }
    await registry.put(row)
    this.parts.wake()
    return { row, data }
  }

  /** The webhooks of one run that a principal has made. */
  async pushes(by: Principal, runId: string): Promise<readonly StoredHook[]> {
    const rows = await this.rows(HOOK, '', { owner: by.id })
    return rows.map((row) => ({ row, data: hookOf(row) })).filter(({ data }) => data.push?.runId === runId)
  }

  /** The run is over and its peer was told: nothing more can come. */
  async endPush({ row, data }: StoredHook): Promise<void> {
    if (data.push !== undefined) await this.drop(row.id)
  }

  /** The webhooks that a principal may know of: its own, and for an admin those of owners that it sees. */
  async list(by: Principal): Promise<readonly WebhookInfo[]> {
    const owner = hasScope(by, 'admin') ? {} : { owner: by.id }
    const rows = await this.rows(HOOK, '', owner)
    return rows.filter((row) => mayKnow(by, row)).map((row) => infoOf({ row, data: hookOf(row) }))
  }

  async info(id: string, by: Principal): Promise<WebhookInfo> {
    return infoOf(await this.find(id, by))
  }

  private async find(id: string, by: Principal): Promise<StoredHook> {
    const found = await this.read(id)
    if (found !== undefined && mayKnow(by, found.row)) return found
    throw new NotFoundError('not_found', `There is no webhook ${id}.`)
  }

  /** Deletes a webhook with all of its deliveries. */
  async remove(id: string, by: Principal): Promise<void> {
    await this.find(id, by)
    await this.drop(id)
  }

  private async drop(id: string): Promise<void> {
    await this.parts.registry.drop(HOOK, id)
    for (const kind of [WAITING, OVER]) {
      for (const row of await this.rows(kind, id)) await this.parts.registry.drop(kind, row.id)
    }
  }

  /** Its deliveries, the newest first: those that wait, and the latest that are over. */
  async deliveries(id: string, by: Principal, limit: number): Promise<readonly WebhookDelivery[]> {
    await this.find(id, by)
    const rows = [...(await this.rows(WAITING, id)), ...(await this.rows(OVER, id))]
    const newest = rows.sort((a, b) => Number(a.id < b.id) - Number(a.id > b.id)).slice(0, limit)
    return newest.map(deliveryInfo)
  }

  /** Sends a delivery once more, under the same id. A webhook that was disabled is enabled again. */
  async again(id: string, deliveryId: string, by: Principal): Promise<WebhookDelivery> {
    const { registry } = this.parts
    const hook = await this.find(id, by)
    const rowId = `${id}.${deliveryId}`
    const waiting = await registry.get(WAITING, rowId)
    const known = waiting ?? (await registry.get(OVER, rowId))
    if (known === undefined) throw new NotFoundError('not_found', `There is no delivery ${deliveryId}.`)
    if (hook.data.disabled !== null) await this.replace(hook, { ...hook.data, disabled: null })
    const data: DeliveryData = { ...dataOf(known), attempts: 0, nextAt: Date.now(), state: 'waiting' }
    const version = (waiting?.version ?? 0) + 1
    const row = { ...known, kind: WAITING, version, at: Date.now(), data: data as unknown as Json }
    await registry.put(row)
    if (waiting === undefined) await registry.drop(OVER, rowId)
    this.parts.wake()
    return deliveryInfo(row)
  }

  /** All webhooks, for the courier. */
  async all(): Promise<readonly StoredHook[]> {
    return (await this.rows(HOOK, '')).map((row) => ({ row, data: hookOf(row) }))
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

  /** Puts a delivery that is to be sent. One that is there already stays as it is. */
  async put(id: string, owner: string | null, data: DeliveryData): Promise<void> {
    try {
      await this.parts.registry.put(newRow({ kind: WAITING, id, owner }, data))
    } catch (error) {
      if (!isStale(error)) throw error
    }
  }

  /** Was it sent, or given up? */
  async isOver(id: string): Promise<boolean> {
    return (await this.parts.registry.get(OVER, id)) !== undefined
  }

  /** Everything that is to be sent. */
  async waiting(): Promise<readonly StoredDelivery[]> {
    return (await this.rows(WAITING, '')).map((row) => ({ row, data: dataOf(row) }))
  }

  async delivery(id: string): Promise<StoredDelivery | undefined> {
    const row = await this.parts.registry.get(WAITING, id)
    return row === undefined ? undefined : { row, data: dataOf(row) }
  }

  /** Drops a delivery whose webhook is gone. */
  async discard(id: string): Promise<void> {
    await this.parts.registry.drop(WAITING, id)
  }

  /** Notes a try that failed. Gives the row as it is now. */
  async postpone({ row }: StoredDelivery, data: DeliveryData): Promise<StoredDelivery> {
    const next = { ...row, version: row.version + 1, at: Date.now(), data: data as unknown as Json }
    await this.parts.registry.put(next)
    return { row: next, data }
  }

  /** Takes a delivery out of those that are to be sent, and keeps it for those who look. */
  async end({ row }: StoredDelivery, data: DeliveryData): Promise<void> {
    const { registry } = this.parts
    const known = await registry.get(OVER, row.id)
    const version = (known?.version ?? 0) + 1
    await registry.put({ ...row, kind: OVER, version, at: Date.now(), data: data as unknown as Json })
    await registry.drop(WAITING, row.id)
  }

  /** Drops all but the newest of those that are over. */
  async prune(hookId: string): Promise<void> {
    const rows = await this.rows(OVER, hookId)
    for (const { id } of rows.slice(0, -MOST_KEPT)) await this.parts.registry.drop(OVER, id)
  }

  /** The rows of a kind; of one webhook where it is named. */
  private async rows(kind: string, hookId: string, owner: { owner?: string } = {}): Promise<RegistryRow[]> {
    const prefix = hookId === '' ? '' : `${hookId}.`
    const all: RegistryRow[] = []
    for (let after = prefix; ; ) {
      const page = await this.parts.registry.list(kind, { ...owner, ...(after === '' ? {} : { after }), limit: PAGE })
      const mine = page.filter(({ id }) => id.startsWith(prefix))
      all.push(...mine)
      if (page.length < PAGE || mine.length < page.length) return all
      after = page.at(-1)?.id ?? ''
    }
  }
}

function newRow(place: Pick<RegistryRow, 'kind' | 'id' | 'owner'>, data: HookData | DeliveryData): RegistryRow {
  return { ...place, version: 1, at: Date.now(), data: data as unknown as Json }
}

function hookOf(row: RegistryRow): HookData {
  return row.data as unknown as HookData
}

function dataOf(row: RegistryRow): DeliveryData {
  return row.data as unknown as DeliveryData
}

function infoOf({ row, data }: StoredHook): WebhookInfo {
  const { url, types, include, name, createdAt, disabled, principal } = data
  return { id: row.id, url, types, include, name, owner: principal.id, createdAt, disabled }
}

/** The part of a row's id after its webhook is the id of the message. */
export function messageId(rowId: string): string {
  return rowId.slice(rowId.indexOf('.') + 1)
}

function deliveryInfo(row: RegistryRow): WebhookDelivery {
  const { hookId: _, nextAt, ...data } = dataOf(row)
  return { id: messageId(row.id), ...data, nextAt: data.state === 'waiting' ? nextAt : null }
}
