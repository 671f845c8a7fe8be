// The queue of the courier: what is to be sent, without a word of it, and whose turn it is.
//
// Owns:      the order of deliveries in their lanes, the turns of owners, and how much of each owner waits.
// Called by: the courier, which mirrors the stored deliveries in it.
// Must stay true:
//   - Of one webhook and one tree, one delivery is sent at a time, the oldest first.
//   - Owners take turns, and no owner has more than a part of the places.
//   - It holds ids and numbers only: a delivery that waits costs some 300 bytes.

/** A delivery that waits. */
export interface Queued {
  /** The id of its row. */
  readonly id: string
  readonly hookId: string
  /** The owner of its webhook. */
  readonly owner: string
  readonly rootId: string
  readonly seq: number
  /** Not before this moment. */
  readonly nextAt: number
  /** The bytes of its row. */
  readonly bytes: number
}

/** How much is sent at the same time. */
export interface QueuePlaces {
  readonly inAll: number
  readonly perOwner: number
  readonly perHook: number
}

interface Entry {
  readonly id: string
  readonly seq: number
  readonly bytes: number
  nextAt: number
  /** The round in which its row was seen last. */
  seen: number
}

/** One webhook and one tree. */
interface Lane {
  readonly key: string
  readonly hookId: string
  /** The oldest first. */
  readonly entries: Entry[]
  readonly known: Map<string, Entry>
  isSending: boolean
}

interface OwnerQueue {
  /** Those that wait longest for their turn first. */
  readonly lanes: Map<string, Lane>
  /** How many deliveries of each webhook wait. */
  readonly hooks: Map<string, number>
  rows: number
  bytes: number
  busy: number
  /** No lane is due before this moment. */
  dueAt: number
}

/** The deliveries of an owner that wait. */
export interface QueueCount {
  readonly rows: number
  readonly bytes: number
}

export class DeliveryQueue {
  private readonly places: QueuePlaces
  /** Those that wait longest for their turn first. */
  private readonly owners: Map<string, OwnerQueue> = new Map()
  private readonly busyHooks: Map<string, number> = new Map()
  private readonly parked: Set<string> = new Set()
  private busy = 0
  private round = 0

  constructor(places: QueuePlaces) {
    this.places = places
  }

  /** How many deliveries wait, or are being sent. */
  get size(): number {
    let size = 0
    for (const { rows } of this.owners.values()) size += rows
    return size
  }

  /** The webhooks that something waits for, parked ones left out. */
  get hookIds(): readonly string[] {
    const ids = [...this.owners.values()].flatMap(({ hooks }) => [...hooks.keys()])
    return ids.filter((id) => !this.parked.has(id))
  }

  count(owner: string): QueueCount {
    return this.owners.get(owner) ?? { rows: 0, bytes: 0 }
  }

  /** The webhook of an owner that most deliveries wait for; undefined where none waits. */
  fullest(owner: string): string | undefined {
    const hooks = [...(this.owners.get(owner)?.hooks ?? [])].filter(([id]) => !this.parked.has(id))
    return hooks.sort(([, a], [, b]) => b - a)[0]?.[0]
  }

  /** Puts a delivery in its place. One that is there already is due as it is now. */
  put(queued: Queued): void {
    const { id, hookId, seq, nextAt, bytes } = queued
    const owner = this.ownerOf(queued.owner)
    const lane = laneOf(owner, queued)
    const known = lane.known.get(id)
    const entry = known ?? { id, seq, bytes, nextAt, seen: this.round }
    entry.seen = this.round
    // A delivery that is being sent is due again when the attempt has ended.
    if (!(lane.isSending && lane.entries[0] === known)) {
      entry.nextAt = nextAt
      owner.dueAt = Math.min(owner.dueAt, nextAt)
    }
    if (known !== undefined) return
    lane.known.set(id, entry)
    const before = lane.entries.findLastIndex((one) => one.seq < seq || (one.seq === seq && one.id < id))
    // Behind the one that is being sent.
    lane.entries.splice(Math.max(before + 1, lane.isSending ? 1 : 0), 0, entry)
    owner.rows++
    owner.bytes += bytes
    owner.hooks.set(hookId, (owner.hooks.get(hookId) ?? 0) + 1)
  }

  private ownerOf(name: string): OwnerQueue {
    const known = this.owners.get(name)
    if (known !== undefined) return known
    const made = { lanes: new Map(), hooks: new Map(), rows: 0, bytes: 0, busy: 0, dueAt: Number.POSITIVE_INFINITY }
    this.owners.set(name, made)
    return made
  }

  /** Takes the next one that is due and has a place. Its lane waits until `done`. */
  take(now: number): Queued | undefined {
    if (this.busy >= this.places.inAll) return undefined
    for (const [name, owner] of this.owners) {
      if (owner.busy >= this.places.perOwner || owner.dueAt > now) continue
      const lane = this.dueLane(owner, now)
      const [head] = lane?.entries ?? []
      if (lane === undefined || head === undefined) continue
      this.begin(name, owner, lane)
      const { id, seq, nextAt, bytes } = head
      return {
        id,
        hookId: lane.hookId,
        owner: name,
        rootId: lane.key.slice(lane.hookId.length + 1),
        seq,
        nextAt,
        bytes,
      }
    }
    return undefined
  }

  /** The lane that waits longest of those that are due; notes when the first of them will be, where none is. */
  private dueLane(owner: OwnerQueue, now: number): Lane | undefined {
    let dueAt = Number.POSITIVE_INFINITY
    for (const lane of owner.lanes.values()) {
      const nextAt = lane.entries[0]?.nextAt ?? Number.POSITIVE_INFINITY
      const isBusy = lane.isSending || (this.busyHooks.get(lane.hookId) ?? 0) >= this.places.perHook
      if (isBusy || this.parked.has(lane.hookId)) continue
      if (nextAt <= now) return lane
      dueAt = Math.min(dueAt, nextAt)
    }
    owner.dueAt = dueAt
    return undefined
  }

  private begin(name: string, owner: OwnerQueue, lane: Lane): void {
    lane.isSending = true
    owner.busy++
    this.busy++
    this.busyHooks.set(lane.hookId, (this.busyHooks.get(lane.hookId) ?? 0) + 1)
    // Others come first now.
    owner.lanes.delete(lane.key)
    owner.lanes.set(lane.key, lane)
    this.owners.delete(name)
    this.owners.set(name, owner)
  }

  /** It was sent, or not. `nextAt`: it waits again, until this moment; null: it is over. */
  done(queued: Queued, nextAt: number | null): void {
    const owner = this.owners.get(queued.owner)
    const lane = owner?.lanes.get(keyOf(queued))
    this.busy--
    const left = (this.busyHooks.get(queued.hookId) ?? 1) - 1
    if (left > 0) this.busyHooks.set(queued.hookId, left)
    else this.busyHooks.delete(queued.hookId)
    if (owner === undefined || lane === undefined) return
    owner.busy--
    owner.dueAt = 0
    lane.isSending = false
    const entry = lane.known.get(queued.id)
    if (entry !== undefined && nextAt !== null) entry.nextAt = nextAt
    else if (entry !== undefined) this.remove(owner, lane, entry)
    this.tidy(queued.owner, owner, lane)
  }

  private remove(owner: OwnerQueue, { entries, known, hookId }: Lane, entry: Entry): void {
    entries.splice(entries.indexOf(entry), 1)
    known.delete(entry.id)
    owner.rows--
    owner.bytes -= entry.bytes
    const left = (owner.hooks.get(hookId) ?? 1) - 1
    if (left > 0) owner.hooks.set(hookId, left)
    else owner.hooks.delete(hookId)
  }

  private tidy(name: string, owner: OwnerQueue, lane: Lane): void {
    if (lane.entries.length === 0 && !lane.isSending) owner.lanes.delete(lane.key)
    if (owner.lanes.size === 0 && owner.busy === 0) this.owners.delete(name)
  }

  /** Sends nothing of these webhooks, and everything of all others. */
  park(hookIds: Iterable<string>): void {
    this.parked.clear()
    for (const id of hookIds) this.parked.add(id)
    for (const owner of this.owners.values()) owner.dueAt = 0
  }

  /** Sends nothing of this one any more. */
  parkOne(hookId: string): void {
    this.parked.add(hookId)
  }

  /** Forgets what waits for a webhook. */
  dropHook(name: string, hookId: string): void {
    const owner = this.owners.get(name)
    if (owner !== undefined) this.dropWhere(name, owner, (lane) => lane.hookId === hookId)
  }

  /** From now on rows are seen. */
  beginRound(): void {
    this.round++
  }

  /** All rows were seen: what was not is gone. */
  endRound(): void {
    for (const [name, owner] of this.owners) this.dropWhere(name, owner, (_, { seen }) => seen < this.round)
  }

  /** Forgets all that is not being sent: another process has it now. */
  clear(): void {
    for (const [name, owner] of this.owners) this.dropWhere(name, owner, () => true)
  }

  private dropWhere(name: string, owner: OwnerQueue, isGone: (lane: Lane, entry: Entry) => boolean): void {
    for (const lane of [...owner.lanes.values()]) {
      const waiting = lane.isSending ? lane.entries.slice(1) : [...lane.entries]
      for (const entry of waiting) if (isGone(lane, entry)) this.remove(owner, lane, entry)
      this.tidy(name, owner, lane)
    }
  }
}

function laneOf(owner: OwnerQueue, queued: Queued): Lane {
  const key = keyOf(queued)
  const lane = owner.lanes.get(key) ?? { key, hookId: queued.hookId, entries: [], known: new Map(), isSending: false }
  owner.lanes.set(key, lane)
  return lane
}

function keyOf({ hookId, rootId }: Pick<Queued, 'hookId' | 'rootId'>): string {
  return `${hookId} ${rootId}`
}
