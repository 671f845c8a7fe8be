// The courier: makes deliveries from the changes of the store, and sends them.
//
// Owns:      the way of a delivery in the process that holds the lease.
// Called by: `server/upkeep`, in rounds, while it holds the lease.
// Must stay true:
//   - A delivery is stored before the cursor moves behind its change, and sent only after that: a crash loses none, and the
//     same event makes no second one.
//   - What waits is ids: a message is made when it is sent, from rows, as its webhook may read them then.
//   - Nothing is sent without the lease, so two servers never send at the same time.
//   - Others come in between, however much there is to do.

import { setMaxListeners } from 'node:events'
import { messageOf } from '../../core/base/error.ts'
import { countedIds, maySee, mayStart } from '../../doors/grant.ts'
import { look, type TreeChange } from '../../doors/rows.ts'
import { isLegateError, type Json, type Runtime } from '../../index.ts'
import { bytesOf, type Deliveries, type DeliveryData, messageId, type StoredDelivery } from './deliveries.ts'
import { isStale } from './lease.ts'
import {
  type HookMessage,
  messageIdOf,
  messageOfDelivery,
  newDelivery,
  outcomeFor,
  webhookBody,
  webhookMessages,
} from './messages.ts'
import { type HookAnswer, postHook } from './post.ts'
import { isAbout, pushText, topRunOf } from './push.ts'
import { DeliveryQueue, type Queued } from './queue.ts'
import { signedHeaders } from './signature.ts'
import type { StoredHook, Webhooks } from './webhooks.ts'

/** How deliveries are made. */
export interface CourierSettings {
  readonly allowPrivate: boolean
  /** The pauses before each further try, in milliseconds. */
  readonly retryMs: readonly number[]
  readonly timeoutMs: number
}

export interface CourierParts {
  readonly runtime: Runtime
  readonly webhooks: Webhooks
  readonly deliveries: Deliveries
  readonly settings: CourierSettings
  /** True while this process may send. */
  readonly isHeld: () => boolean
  readonly report: (error: unknown) => void
}

/** Where the feed is read: kept with the lease. */
export interface CourierPlace {
  readonly cursor: string | null
  /** Keeps the new place. False where the lease is lost. */
  readonly keep: (cursor: string) => Promise<boolean>
}

/** Figures since the process began. */
export interface CourierCounts {
  readonly delivered: number
  readonly failed: number
  readonly disabled: number
  readonly waiting: number
}

const CHANGES = 50
const FEW_ROWS = 25
const MANY_ROWS = 200
/** Pages with fewer bytes may be larger. */
const SMALL_PAGE = 100_000
const RELOAD_MS = 2_000
/** Where looking at all rows takes long, it is done less often. */
const LOAD_SHARE = 20
/** How long it works before others come in. */
const SPELL_MS = 20
const PLACES = { inAll: 128, perOwner: 16, perHook: 8 } as const
/** The most that waits of one owner. */
const MOST_ROWS = 10_000
const MOST_BYTES = 64_000_000
const PRUNE_EVERY = 100
const GONE = 410

const NO_TREE = 'The conversation that it tells of was deleted, or cannot be read.'
const TOO_MANY = 'Too many deliveries of its owner wait.'

export class Courier {
  private readonly parts: CourierParts
  private readonly queue: DeliveryQueue = new DeliveryQueue(PLACES)
  private readonly open: Set<Promise<void>> = new Set()
  private readonly stop: AbortController = new AbortController()
  private readonly count = { delivered: 0, failed: 0, disabled: 0 }
  /** How many deliveries of each webhook are over since it was pruned. */
  private readonly ended: Map<string, number> = new Map()
  private loadAt = 0
  private isClosing = false
  private spellAt = 0

  constructor(parts: CourierParts) {
    this.parts = parts
    setMaxListeners(PLACES.inAll + 1, this.stop.signal)
  }

  get counts(): CourierCounts {
    return { ...this.count, waiting: this.queue.size }
  }

  /** Reads what is new, and sends what is due. Only with the lease. */
  async round(place: CourierPlace): Promise<void> {
    // Before the cursor has moved, nothing of a page is sent: it may be stored once more.
    if (!(await this.readFeed(place))) return
    const began = performance.now()
    if (began >= this.loadAt) {
      await this.load()
      const now = performance.now()
      this.loadAt = now + Math.max(RELOAD_MS, (now - began) * LOAD_SHARE)
    }
    this.send()
  }

  /** Drops the queue: another process has it now. */
  forget(): void {
    this.loadAt = 0
    this.queue.clear()
  }

  /** Begins nothing more. Lets what is being sent end within the grace; the rest is sent again by whoever comes next. */
  async close(graceMs: number): Promise<void> {
    this.isClosing = true
    const timer = setTimeout(() => this.stop.abort(new Error('The server stops.')), graceMs)
    await Promise.allSettled(this.open)
    clearTimeout(timer)
  }

  /** Lets others in after a while. */
  private async breathe(): Promise<void> {
    if (performance.now() - this.spellAt < SPELL_MS) return
    await new Promise(setImmediate)
    this.spellAt = performance.now()
  }

  /** False where the lease was lost. */
  private async readFeed({ cursor: first, keep }: CourierPlace): Promise<boolean> {
    const { store } = this.parts.runtime
    for (let cursor = first; ; ) {
      const page = await store.changes(cursor, cursor === null ? 0 : CHANGES)
      if (page.isCut) this.parts.report(new Error('Webhooks missed changes: they are no longer kept.'))
      if (page.cursor === cursor) return true
      const made = await this.store(page.changes)
      if (!(await keep(page.cursor))) return false
      for (const one of made) this.queue.put(one)
      cursor = page.cursor
    }
  }

  /** Stores the deliveries of some changes. */
  private async store(changes: readonly TreeChange[]): Promise<readonly Queued[]> {
    if (changes.length === 0) return []
    const hooks = (await this.parts.webhooks.all()).filter(({ data }) => data.disabled === null)
    const made: MadeDeliveries = { queued: [], rows: new Map(), lost: new Set() }
    for (const change of changes) {
      const fitting = hooks.filter(({ data }) => isFor(data, change))
      if (fitting.length === 0) continue
      try {
        await this.storeChange(change, fitting, made)
      } catch (error) {
        // A tree that was deleted or damaged must not hold up the others.
        if (!isLegateError(error, 'tampered') && !isLegateError(error, 'not_found')) throw error
        this.parts.report(error)
      }
    }
    return made.queued.filter(({ hookId }) => !made.lost.has(hookId))
  }

  private async storeChange(change: TreeChange, hooks: readonly StoredHook[], made: MadeDeliveries): Promise<void> {
    for (const message of await webhookMessages(this.parts.runtime.store, change)) {
      const top = await topRunOf(this.parts.runtime.store, change.rootId, message.runId)
      for (const hook of hooks) {
        if (!isAbout(hook, top) || !hook.data.types.includes(message.type)) continue
        if (!made.lost.has(hook.row.id) && (await this.hasRoom(hook, made))) {
          made.queued.push(await this.make(change, message, hook))
          const owner = payerOf(hook)
          made.rows.set(owner, (made.rows.get(owner) ?? 0) + 1)
        }
        await this.breathe()
      }
    }
  }

  /** An owner for whom too much waits loses the webhook that most of it waits for. */
  private async hasRoom(wanting: StoredHook, made: MadeDeliveries): Promise<boolean> {
    const { id } = wanting.row
    const whose = payerOf(wanting)
    const { rows, bytes } = this.queue.count(whose)
    if (rows + (made.rows.get(whose) ?? 0) < MOST_ROWS && bytes < MOST_BYTES) return true
    const fullest = this.queue.fullest(whose) ?? id
    const hook = await this.parts.webhooks.read(fullest)
    made.lost.add(fullest)
    if (hook !== undefined) await this.giveUp(hook, TOO_MANY)
    return fullest !== id
  }

  private async make(change: TreeChange, message: HookMessage, hook: StoredHook): Promise<Queued> {
    const id = `${hook.row.id}.${messageIdOf(change, message)}`
    const data = newDelivery(hook.row.id, change, message)
    await this.parts.deliveries.put(id, change.owner, data)
    return queuedOf(id, data, hook)
  }

  /** Takes up what is stored: left by another process, or to be sent again. */
  private async load(): Promise<void> {
    const { webhooks, deliveries } = this.parts
    const hooks = new Map((await webhooks.all()).map((hook) => [hook.row.id, hook]))
    this.queue.park([...hooks.values()].filter(({ data }) => data.disabled !== null).map(({ row }) => row.id))
    this.queue.beginRound()
    for (let [after, limit] = ['', FEW_ROWS]; ; ) {
      const page = await deliveries.waiting(after, limit)
      for (const one of page) await this.takeUp(one, hooks)
      after = page.at(-1)?.row.id ?? ''
      if (page.length < limit) break
      const bytes = page.reduce((sum, { data }) => sum + bytesOf(data), 0)
      limit = bytes < SMALL_PAGE ? MANY_ROWS : FEW_ROWS
      await this.breathe()
      if (!this.parts.isHeld()) return
    }
    this.queue.endRound()
    for (const id of this.queue.hookIds) {
      const hook = hooks.get(id)
      if (hook !== undefined && (await webhooks.isGone(hook))) await this.giveUp(hook, goneWords(hook))
    }
  }

  private async takeUp({ row, data }: StoredDelivery, hooks: ReadonlyMap<string, StoredHook>): Promise<void> {
    const hook = hooks.get(data.hookId)
    if (hook !== undefined) this.queue.put(queuedOf(row.id, data, hook))
    // It may have been made a moment ago.
    else if ((await this.parts.webhooks.read(data.hookId)) === undefined) await this.parts.deliveries.discard(row.id)
  }

  /** Begins everything that is due and has a place. */
  private send(): void {
    while (!this.isClosing && this.parts.isHeld()) {
      const next = this.queue.take(Date.now())
      if (next === undefined) return
      this.begin(next)
    }
  }

  private begin(queued: Queued): void {
    const done = this.deliver(queued)
      .catch((error: unknown) => {
        if (!isStale(error)) this.parts.report(error)
        // The rows say what became of it, at the next look.
        return null
      })
      .then((nextAt) => {
        this.open.delete(done)
        this.queue.done(queued, nextAt)
        if (this.parts.isHeld()) this.send()
      })
    this.open.add(done)
  }

  /** When it is to be sent again; null: it is over. */
  private async deliver({ id, hookId }: Queued): Promise<number | null> {
    const { webhooks, deliveries } = this.parts
    const [delivery, hook] = [await deliveries.get(id), await webhooks.read(hookId)]
    if (delivery === undefined) return null
    if (hook === undefined) {
      await deliveries.discard(id)
      return null
    }
    if (hook.data.disabled !== null) {
      this.queue.parkOne(hookId)
      return delivery.data.nextAt
    }
    if (await webhooks.isGone(hook)) {
      await this.giveUp(hook, goneWords(hook))
      return null
    }
    const body = await this.textOf(hook, delivery)
    if (body === undefined) {
      await deliveries.giveUp(delivery, NO_TREE)
      return null
    }
    const answer = await this.post(hook, delivery, body)
    return answer === undefined ? delivery.data.nextAt : this.settle(hook, delivery, answer)
  }

  /** The message as the webhook may read it now; undefined where its tree is gone, or is not what was written. */
  private async textOf(hook: StoredHook, { data }: StoredDelivery): Promise<string | undefined> {
    const { runtime } = this.parts
    const root = await rootOf(runtime.store, data.rootId).catch(noneIfTampered)
    if (root === undefined || data.body !== undefined) return root === undefined ? undefined : data.body
    const change = { rootId: root.id, agent: root.agent.name, owner: root.owner }
    const message = await messageOfDelivery(runtime.store, change, data).catch(noneIfTampered)
    if (message === undefined) return undefined
    const { include, principal, push } = hook.data
    if (push !== undefined) return pushText(runtime.store, change.rootId, push, message)
    const outcome =
      include === 'outcome' ? await outcomeFor(runtime, principal, message).catch(noneIfMissing) : undefined
    return webhookBody(message, outcome as Json | undefined)
  }

  /** Undefined where it was not sent, or nobody waits for the answer any more. */
  private async post(
    { data: hook }: StoredHook,
    { row }: StoredDelivery,
    body: string,
  ): Promise<HookAnswer | undefined> {
    const { settings, isHeld } = this.parts
    if (!isHeld() || this.stop.signal.aborted) return undefined
    const message = { id: messageId(row.id), timestamp: Math.floor(Date.now() / 1_000), body }
    const { url, secret } = hook
    const { timeoutMs, allowPrivate } = settings
    const headers = { ...hook.push?.headers, ...signedHeaders(secret, message) }
    const answer = await postHook({ url, headers, body, timeoutMs, allowPrivate, signal: this.stop.signal })
    return this.stop.signal.aborted && 'error' in answer ? undefined : answer
  }

  /** When it is to be sent again; null: it is over. */
  private async settle(hook: StoredHook, delivery: StoredDelivery, answer: HookAnswer): Promise<number | null> {
    const { webhooks, deliveries, settings } = this.parts
    const attempts = delivery.data.attempts + 1
    const status = 'status' in answer ? answer.status : null
    const last = { at: Date.now(), status, error: 'error' in answer ? answer.error : null }
    const data: DeliveryData = { ...delivery.data, attempts, last }
    if (status !== null && status >= 200 && status < 300) {
      await deliveries.end(delivery, { ...data, state: 'delivered' })
      this.count.delivered++
      if (data.type === 'run.ended') await webhooks.endPush(hook)
      await this.tidy(hook.row.id)
      return null
    }
    this.count.failed++
    const pause = settings.retryMs[attempts - 1]
    if (pause === undefined || status === GONE) {
      await deliveries.end(delivery, { ...data, state: 'failed' })
      const why = last.error ?? `It answered ${status}.`
      await this.disable(hook, `${data.type} failed ${attempts} times. ${why}`)
      await this.tidy(hook.row.id)
      return null
    }
    const nextAt = Date.now() + pause
    await deliveries.postpone(delivery, { ...data, nextAt })
    return nextAt
  }

  /** Ended deliveries: only the latest stay. */
  private async tidy(hookId: string): Promise<void> {
    const ended = (this.ended.get(hookId) ?? 0) + 1
    if (ended < PRUNE_EVERY) {
      this.ended.set(hookId, ended)
      return
    }
    this.ended.delete(hookId)
    await this.parts.deliveries.prune(hookId)
  }

  /** Nothing more goes there, and what waits is dropped. */
  private async giveUp(hook: StoredHook, reason: string): Promise<void> {
    const { id } = hook.row
    await this.disable(hook, reason)
    this.queue.dropHook(payerOf(hook), id)
    await this.parts.deliveries.giveUpAll(id, reason)
  }

  private async disable({ row, data }: StoredHook, reason: string): Promise<void> {
    this.queue.parkOne(row.id)
    if (data.disabled !== null) return
    await this.parts.webhooks.disable(row.id, reason)
    this.count.disabled++
    this.parts.report(new Error(`The webhook ${row.id} of ${data.principal.id} was disabled. ${messageOf(reason)}`))
  }
}

/** Deliveries of a page of changes that were stored. */
interface MadeDeliveries {
  readonly queued: Queued[]
  /** How many of each owner. */
  readonly rows: Map<string, number>
  /** Webhooks that get nothing more. */
  readonly lost: Set<string>
}

function queuedOf(id: string, data: DeliveryData, hook: StoredHook): Queued {
  const { hookId, rootId, seq, nextAt } = data
  return { id, hookId, owner: payerOf(hook), rootId, seq, nextAt, bytes: bytesOf(data) }
}

/** Whose turn and room it takes: those of an operator take those of their own id. */
function payerOf({ data }: StoredHook): string {
  return countedIds(data.principal).at(-1) ?? ''
}

function goneWords({ data }: StoredHook): string {
  return data.tokenId === null ? 'The login that made it has ended.' : 'The token that made it is gone.'
}

/** Does the webhook's maker see this tree, and did it happen since? */
function isFor({ principal, createdAt }: StoredHook['data'], { owner, agent, at }: TreeChange): boolean {
  return at >= createdAt && maySee(principal, owner) && mayStart(principal, agent)
}

async function rootOf(store: Runtime['store'], rootId: string) {
  return look(store, rootId, (tree) => tree.conversation(rootId))
}

function noneIfTampered(error: unknown): undefined {
  if (!isLegateError(error, 'tampered')) throw error
}

/** A webhook leaves out whatever its maker may not read. */
function noneIfMissing(error: unknown): undefined {
  if (!isLegateError(error, 'not_found') && !isLegateError(error, 'denied')) throw error
}
