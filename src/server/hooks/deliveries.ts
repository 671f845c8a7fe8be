// Deliveries of webhooks: rows of the registry. A row has ids, and no word of the message: that is made when it is sent.
//
// Owns:      the rows of kinds `delivery` (to be sent) and `delivered` (sent, failed or dropped).
// Called by: the courier makes, sends and ends them; the routes of `/v1/webhooks` list them.
// Must stay true:
//   - The id of a delivery comes from its event, so the same event never makes two.
//   - Nobody reads many rows at once: those of an older version hold the message, up to 200 kB each.

import { maySee, mayStart } from '../../doors/grant.ts'
import type { Registry, RegistryRow } from '../../doors/rows.ts'
import { type Json, NotFoundError, type Principal } from '../../index.ts'
import type { WebhookDelivery, WebhookType } from '../client/index.ts'
import { isStale } from './lease.ts'

/** A stored delivery. */
export interface DeliveryData {
  readonly hookId: string
  readonly type: WebhookType
  readonly rootId: string
  readonly seq: number
  /** The agent at the root of the tree; left out in rows of an older version. */
  readonly agent?: string
  /** The message, in rows of an older version. */
  readonly body?: string
  readonly attempts: number
  /** Not before this moment. */
  readonly nextAt: number
  /** The last try; null before the first. */
  readonly last: { readonly at: number; readonly status: number | null; readonly error: string | null } | null
  readonly state: WebhookDelivery['state']
}

export interface StoredDelivery {
  readonly row: RegistryRow
  readonly data: DeliveryData
}

/** Which deliveries of a webhook to list, the newest first. */
export interface DeliveriesQuery {
  readonly limit: number
  /** Only those made before this one. */
  readonly before?: string | undefined
}

const WAITING = 'delivery'
const OVER = 'delivered'
/** Rows that are read at once. */
const FEW = 25
/** Ended deliveries: the newest are kept. */
const MOST_KEPT = 500
/** The bytes of a row without a message. */
const ROW_BYTES = 400

/** The deliveries of a store. */
export class Deliveries {
  private readonly registry: Registry

  constructor(registry: Registry) {
    this.registry = registry
  }

  /** Puts a delivery that is to be sent. One that is there already stays as it is. */
  async put(id: string, owner: string | null, data: DeliveryData): Promise<void> {
    try {
      await this.registry.put({ kind: WAITING, id, owner, version: 1, at: Date.now(), data: data as unknown as Json })
    } catch (error) {
      if (!isStale(error)) throw error
    }
  }

  async get(id: string): Promise<StoredDelivery | undefined> {
    const row = await this.registry.get(WAITING, id)
    return row === undefined ? undefined : { row, data: dataOf(row) }
  }

  /** Was it sent, or given up? */
  async isOver(id: string): Promise<boolean> {
    return (await this.registry.get(OVER, id)) !== undefined
  }

  /** Those that are to be sent, by id: a page of them. */
  async waiting(after: string, limit: number): Promise<readonly StoredDelivery[]> {
    const rows = await this.registry.list(WAITING, { after, limit })
    return rows.map((row) => ({ row, data: dataOf(row) }))
  }

  /** Drops one whose webhook is gone. */
  async discard(id: string): Promise<void> {
    await this.registry.drop(WAITING, id)
  }

  /** Notes a try that failed. */
  async postpone({ row }: StoredDelivery, data: DeliveryData): Promise<void> {
    await this.registry.put({ ...row, version: row.version + 1, at: Date.now(), data: data as unknown as Json })
  }

  /** Takes a delivery out of those that are to be sent, and keeps it for those who look. */
  async end({ row }: StoredDelivery, { body: _, ...ended }: DeliveryData): Promise<void> {
    const data = { ...ended, agent: agentOf(row) }
    const known = await this.registry.get(OVER, row.id)
    const version = (known?.version ?? 0) + 1
    await this.registry.put({ ...row, kind: OVER, version, at: Date.now(), data: data as unknown as Json })
    // Where its owner was forgotten meanwhile, nothing of it stays.
    if (!(await this.registry.drop(WAITING, row.id))) await this.registry.drop(OVER, row.id)
  }

  /** Ends a delivery that is not sent, and says why. */
  async giveUp(delivery: StoredDelivery, reason: string): Promise<void> {
    const last = { at: Date.now(), status: null, error: reason }
    await this.end(delivery, { ...delivery.data, state: 'dropped', last })
  }

  /** Ends all that waits for a webhook. The newest are kept for those who look. */
  async giveUpAll(hookId: string, reason: string): Promise<void> {
    let kept = 0
    for await (const row of this.downward(WAITING, hookId)) {
      if (kept++ < MOST_KEPT) await this.giveUp({ row, data: dataOf(row) }, reason)
      else await this.discard(row.id)
    }
    await this.prune(hookId)
  }

  /** Drops all deliveries of a webhook. */
  async dropAll(hookId: string): Promise<void> {
    for (const kind of [WAITING, OVER]) {
      for await (const { id } of this.downward(kind, hookId)) await this.registry.drop(kind, id)
    }
  }

  /** Drops all but the newest of those that are over. */
  async prune(hookId: string): Promise<void> {
    let kept = 0
    for await (const { id } of this.downward(OVER, hookId)) {
      if (kept++ >= MOST_KEPT) await this.registry.drop(OVER, id)
    }
  }

  /** The deliveries of a webhook about trees that a principal sees, the newest first: those that wait, and the latest that are over. */
  async list(hookId: string, by: Principal, { limit, before }: DeliveriesQuery): Promise<readonly WebhookDelivery[]> {
    const from = before === undefined ? undefined : `${hookId}.${before}`
    const found: WebhookDelivery[] = []
    for await (const row of merged(this.downward(OVER, hookId, from), this.downward(WAITING, hookId, from))) {
      if (isSeen(row, by)) found.push(deliveryInfo(row))
      if (found.length >= limit) break
    }
    return found
  }

  /** Puts a delivery among those that are to be sent once more, under the same id. */
  async again(hookId: string, deliveryId: string, by: Principal): Promise<WebhookDelivery> {
    const id = `${hookId}.${deliveryId}`
    const waiting = await this.registry.get(WAITING, id)
    const known = waiting ?? (await this.registry.get(OVER, id))
    if (known === undefined || !isSeen(known, by)) {
      throw new NotFoundError('not_found', `There is no delivery ${deliveryId}.`)
    }
    const now = Date.now()
    const data: DeliveryData = { ...dataOf(known), attempts: 0, nextAt: now, state: 'waiting' }
    const version = (waiting?.version ?? 0) + 1
    const row = { ...known, kind: WAITING, version, at: now, data: data as unknown as Json }
    await this.registry.put(row)
    if (waiting === undefined) await this.registry.drop(OVER, id)
    return deliveryInfo(row)
  }

  /** The rows of a webhook from the newest on, a few at a time. Others come in between. */
  private async *downward(kind: string, hookId: string, from = `${hookId}/`): AsyncGenerator<RegistryRow> {
    for (let before = from; ; ) {
      const rows = await this.registry.list(kind, { after: `${hookId}.`, before, limit: FEW })
      yield* rows
      before = rows.at(-1)?.id ?? ''
      if (rows.length < FEW) return
      await new Promise(setImmediate)
    }
  }
}

/** Joins two lists that come from the greatest id down. Of a row that is in both, the first one counts. */
async function* merged(
  first: AsyncGenerator<RegistryRow>,
  second: AsyncGenerator<RegistryRow>,
): AsyncGenerator<RegistryRow> {
  try {
    let [a, b] = [await first.next(), await second.next()]
    while (a.done !== true || b.done !== true) {
      const isFirst = a.done !== true && (b.done === true || a.value.id >= b.value.id)
      if (isFirst && b.done !== true && b.value.id === a.value?.id) b = await second.next()
      if (isFirst && a.done !== true) {
        yield a.value
        a = await first.next()
      } else if (b.done !== true) {
        yield b.value
        b = await second.next()
      }
    }
  } finally {
    await first.return(undefined)
    await second.return(undefined)
  }
}

/** The row knows whose tree it tells of, and of which agent. */
function isSeen(row: RegistryRow, by: Principal): boolean {
  return maySee(by, row.owner) && mayStart(by, agentOf(row))
}

/** In an older row the message names it, before any word of others; the empty name is nobody's. */
function agentOf(row: RegistryRow): string {
  const { agent, body = '' } = dataOf(row)
  return agent ?? AGENT.exec(body.slice(0, 1_000))?.[1] ?? ''
}

const AGENT = /"nodeId":(?:null|"[^"]*"),"agent":"([^"\\]*)"/

function dataOf(row: RegistryRow): DeliveryData {
  return row.data as unknown as DeliveryData
}

/** The bytes of a row, near enough. */
export function bytesOf({ body = '' }: DeliveryData): number {
  return ROW_BYTES + body.length
}

/** The part of a row's id after its webhook is the id of the message. */
export function messageId(rowId: string): string {
  return rowId.slice(rowId.indexOf('.') + 1)
}

function deliveryInfo(row: RegistryRow): WebhookDelivery {
  const { type, rootId, seq, attempts, nextAt, last, state } = dataOf(row)
  const next = state === 'waiting' ? nextAt : null
  return { id: messageId(row.id), type, rootId, seq, attempts, nextAt: next, last, state }
}
