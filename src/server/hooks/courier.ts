// The courier: makes deliveries from the changes of the store, and sends them.
//
// Owns:      the queue of each webhook and tree in the process that holds the lease, and the way of a delivery.
// Called by: `server/upkeep`, in rounds, while it holds the lease.
// Must stay true:
//   - A delivery is stored before the cursor moves behind its change, and sent only after that: a crash loses none, and the
//     same event makes no second one.
//   - Of one webhook and one tree, one delivery is sent at a time, the oldest first.
//   - Nothing is sent without the lease, so two servers never send at the same time.

import { messageOf } from '../../base/error.ts'
import { maySee, mayStart } from '../../doors/grant.ts'
import type { TreeChange } from '../../doors/rows.ts'
import { isLegateError, type Json, type Runtime } from '../../index.ts'
import type { Tokens } from '../identity/tokens.ts'
import { isStale } from './lease.ts'
import { bodyOf, type HookMessage, messageIdOf, messagesOf, outcomeFor } from './messages.ts'
import { type HookAnswer, postHook } from './post.ts'
import { isAbout, pushText, topRunOf } from './push.ts'
import { signedHeaders } from './signature.ts'
import { type DeliveryData, messageId, type StoredDelivery, type StoredHook, type Webhooks } from './webhooks.ts'

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
  readonly tokens: Pick<Tokens, 'isValid'>
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

const PAGE = 200
const RELOAD_MS = 2_000
const MOST_AT_ONCE = 64
const MOST_PER_HOOK = 8
const MOST_WAITING = 10_000
const PRUNE_EVERY = 100
const GONE = 410

interface Lane {
  readonly hookId: string
  /** The oldest first. */
  readonly deliveries: StoredDelivery[]
  isSending: boolean
}

export class Courier {
  private readonly parts: CourierParts
  private readonly lanes: Map<string, Lane> = new Map()
  private readonly sending: Map<string, number> = new Map()
  private readonly open: Set<Promise<void>> = new Set()
  private readonly stop: AbortController = new AbortController()
  private readonly count = { delivered: 0, failed: 0, disabled: 0 }
  private loadedAt: number | undefined
  private isClosing = false

  constructor(parts: CourierParts) {
    this.parts = parts
  }

  get counts(): CourierCounts {
    const waiting = [...this.lanes.values()].reduce((sum, { deliveries }) => sum + deliveries.length, 0)
    return { ...this.count, waiting }
  }

  /** Reads what is new, and sends what is due. Only with the lease. */
  async round(place: CourierPlace): Promise<void> {
    // Before the cursor has moved, nothing of a page is sent: it may be stored once more.
    if (!(await this.readFeed(place))) return
    const now = performance.now()
    if (this.loadedAt === undefined || now - this.loadedAt >= RELOAD_MS) {
      this.loadedAt = now
      await this.load()
    }
    this.send()
  }

  /** Drops the queue: another process has it now. */
  forget(): void {
    this.loadedAt = undefined
    for (const [key, lane] of this.lanes) if (!lane.isSending) this.lanes.delete(key)
  }

  /** Begins nothing more. Lets what is being sent end within the grace; the rest is sent again by whoever comes next. */
  async close(graceMs: number): Promise<void> {
    this.isClosing = true
    const timer = setTimeout(() => this.stop.abort(new Error('The server stops.')), graceMs)
    await Promise.allSettled(this.open)
    clearTimeout(timer)
  }

  /** False where the lease was lost. */
  private async readFeed({ cursor: first, keep }: CourierPlace): Promise<boolean> {
    const { store } = this.parts.runtime
    for (let cursor = first; ; ) {
      const page = await store.changes(cursor, cursor === null ? 0 : PAGE)
      if (page.isCut) this.parts.report(new Error('Webhooks missed changes: they are no longer kept.'))
      if (page.cursor === cursor) return true
      const made = page.changes.length === 0 ? [] : await this.store(page.changes)
      if (!(await keep(page.cursor))) return false
      for (const one of made) this.enqueue(one)
      cursor = page.cursor
    }
  }

  /** Stores the deliveries of some changes. */
  private async store(changes: readonly TreeChange[]): Promise<StoredDelivery[]> {
    const hooks = (await this.parts.webhooks.all()).filter(({ data }) => data.disabled === null)
    const made: StoredDelivery[] = []
    for (const change of changes) {
      const fitting = hooks.filter(({ data }) => isFor(data, change))
      if (fitting.length === 0) continue
      try {
        made.push(...(await this.storeChange(change, fitting)))
      } catch (error) {
        // A tree that was deleted or damaged must not hold up the others.
        if (!isLegateError(error, 'tampered') && !isLegateError(error, 'not_found')) throw error
        this.parts.report(error)
      }
    }
    return made
  }

  private async storeChange(change: TreeChange, hooks: readonly StoredHook[]): Promise<StoredDelivery[]> {
    const made: StoredDelivery[] = []
    for (const message of await messagesOf(this.parts.runtime.store, change)) {
      const top = await topRunOf(this.parts.runtime.store, change.rootId, message.runId)
      for (const hook of hooks) {
        const isWanted = isAbout(hook, top) && hook.data.types.includes(message.type)
        const stored = isWanted ? await this.make(change, message, hook) : undefined
        if (stored !== undefined) made.push(stored)
      }
    }
    return made
  }

  private async make(change: TreeChange, message: HookMessage, hook: StoredHook): Promise<StoredDelivery | undefined> {
    const { runtime, webhooks } = this.parts
    const { include, principal } = hook.data
    const outcome =
      include === 'outcome' ? await outcomeFor(runtime, principal, message).catch(noneIfMissing) : undefined
    const { push } = hook.data
    const pushed =
      push === undefined ? undefined : await pushText(runtime.store, { rootId: change.rootId, push }, message)
    const id = `${hook.row.id}.${messageIdOf(change, message)}`
    await webhooks.put(id, change.owner, {
      hookId: hook.row.id,
      type: message.type,
      rootId: change.rootId,
      seq: message.seq,
      body: pushed ?? bodyOf(message, outcome as Json | undefined),
      attempts: 0,
      nextAt: 0,
      last: null,
      state: 'waiting',
    })
    return webhooks.delivery(id)
  }

  /** Takes up what is stored: left by another process, or to be sent again. */
  private async load(): Promise<void> {
    for (const one of await this.parts.webhooks.waiting()) this.enqueue(one)
  }

  private enqueue(delivery: StoredDelivery): void {
    const { hookId, rootId, seq } = delivery.data
    const key = `${hookId} ${rootId}`
    const lane = this.lanes.get(key) ?? { hookId, deliveries: [], isSending: false }
    this.lanes.set(key, lane)
    const at = lane.deliveries.findIndex(({ row }) => row.id === delivery.row.id)
    if (at >= 0) {
      lane.deliveries[at] = delivery
      return
    }
    const before = lane.deliveries.findLastIndex(
      ({ row, data }) => data.seq < seq || (data.seq === seq && row.id < delivery.row.id),
    )
    // Behind the one that is being sent.
    lane.deliveries.splice(Math.max(before + 1, lane.isSending ? 1 : 0), 0, delivery)
  }

  /** Begins everything that is due and has a place. */
  private send(): void {
    const now = Date.now()
    for (const [key, lane] of this.lanes) {
      if (this.open.size >= MOST_AT_ONCE || this.isClosing) return
      const [head] = lane.deliveries
      if (head === undefined) {
        if (!lane.isSending) this.lanes.delete(key)
        continue
      }
      const busy = this.sending.get(lane.hookId) ?? 0
      if (lane.isSending || head.data.nextAt > now || busy >= MOST_PER_HOOK || !this.parts.isHeld()) continue
      this.begin(lane, head)
    }
  }

  private begin(lane: Lane, head: StoredDelivery): void {
    lane.isSending = true
    this.sending.set(lane.hookId, (this.sending.get(lane.hookId) ?? 0) + 1)
    const done = this.deliver(lane, head)
      .catch((error: unknown) => {
        if (!isStale(error)) this.parts.report(error)
      })
      .finally(() => {
        this.open.delete(done)
        lane.isSending = false
        const left = (this.sending.get(lane.hookId) ?? 1) - 1
        if (left > 0) this.sending.set(lane.hookId, left)
        else this.sending.delete(lane.hookId)
        if (this.parts.isHeld()) this.send()
      })
    this.open.add(done)
  }

  private async deliver(lane: Lane, { row: { id } }: StoredDelivery): Promise<void> {
    const { webhooks, tokens } = this.parts
    const [delivery, hook] = [await webhooks.delivery(id), await webhooks.read(lane.hookId)]
    if (delivery === undefined || hook === undefined) {
      if (delivery !== undefined) await webhooks.discard(id)
      return leave(lane, id)
    }
    const { tokenId, endsAt = null, disabled } = hook.data
    const isGone = tokenId === null ? endsAt !== null && endsAt <= Date.now() : !(await tokens.isValid(tokenId))
    if (disabled === null && isGone) {
      await this.disable(
        hook,
        tokenId === null ? 'The login that made it has ended.' : 'The token that made it is gone.',
      )
      lane.deliveries.length = 0
      return
    }
    if (disabled !== null) {
      lane.deliveries.length = 0
      return
    }
    const answer = await this.post(hook, delivery)
    if (answer !== undefined) await this.settle({ lane, hook, delivery }, answer)
  }

  /** Undefined where it was not sent, or nobody waits for the answer any more. */
  private async post({ data: hook }: StoredHook, { row, data }: StoredDelivery): Promise<HookAnswer | undefined> {
    const { settings, isHeld } = this.parts
    if (!isHeld() || this.stop.signal.aborted) return undefined
    const message = { id: messageId(row.id), timestamp: Math.floor(Date.now() / 1_000), body: data.body }
    const { url, secret } = hook
    const { timeoutMs, allowPrivate } = settings
    const headers = { ...hook.push?.headers, ...signedHeaders(secret, message) }
    const answer = await postHook({ url, headers, body: data.body, timeoutMs, allowPrivate, signal: this.stop.signal })
    return this.stop.signal.aborted && 'error' in answer ? undefined : answer
  }

  private async settle({ lane, hook, delivery }: Sent, answer: HookAnswer): Promise<void> {
    const { webhooks, settings } = this.parts
    const attempts = delivery.data.attempts + 1
    const status = 'status' in answer ? answer.status : null
    const last = { at: Date.now(), status, error: 'error' in answer ? answer.error : null }
    const data: DeliveryData = { ...delivery.data, attempts, last }
    if (status !== null && status >= 200 && status < 300) {
      await webhooks.end(delivery, { ...data, state: 'delivered' })
      this.count.delivered++
      leave(lane, delivery.row.id)
      if (data.type === 'run.ended') await webhooks.endPush(hook)
      if (this.count.delivered % PRUNE_EVERY === 0) await webhooks.prune(lane.hookId)
      return
    }
    this.count.failed++
    const pause = settings.retryMs[attempts - 1]
    if (pause === undefined || status === GONE) {
      await webhooks.end(delivery, { ...data, state: 'failed' })
      lane.deliveries.length = 0
      const why = last.error ?? `It answered ${status}.`
      await this.disable(hook, `${data.type} failed ${attempts} times. ${why}`)
      return
    }
    const next = await webhooks.postpone(delivery, { ...data, nextAt: Date.now() + pause })
    if (lane.deliveries[0]?.row.id === next.row.id) lane.deliveries[0] = next
    if (lane.deliveries.length > MOST_WAITING) await this.disable(hook, 'Too many deliveries wait for it.')
  }

  private async disable({ row, data }: StoredHook, reason: string): Promise<void> {
    await this.parts.webhooks.disable(row.id, reason)
    this.count.disabled++
    this.parts.report(new Error(`The webhook ${row.id} of ${data.principal.id} was disabled. ${messageOf(reason)}`))
  }
}

interface Sent {
  readonly lane: Lane
  readonly hook: StoredHook
  readonly delivery: StoredDelivery
}

/** Does the webhook's maker see this tree, and did it happen since? */
function isFor({ principal, createdAt }: StoredHook['data'], { owner, agent, at }: TreeChange): boolean {
  return at >= createdAt && maySee(principal, owner) && mayStart(principal, agent)
}

function leave({ deliveries }: Lane, id: string): void {
  const at = deliveries.findIndex(({ row }) => row.id === id)
  if (at >= 0) deliveries.splice(at, 1)
}

/** A webhook leaves out whatever its maker may not read. */
function noneIfMissing(error: unknown): undefined {
  if (!isLegateError(error, 'not_found') && !isLegateError(error, 'denied')) throw error
}
