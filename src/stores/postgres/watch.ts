import { parseJson } from '../../core/base/json.ts'
import type { Commit } from '../../core/graph/commit.ts'
import type { Id } from '../../core/graph/rows.ts'
import { ANSWER_MS, type Database } from './connection/database.ts'
import { abandon, type PgRow, type PostgresClient } from './connection/driver.ts'
import { isLost } from './connection/failure.ts'
import type { TreeNotice } from './replica/transport.ts'

/** How often this process tells others of its commits, at most. One message of the database is slow for all its users. */
const TELL_MS = 25
/** How often it asks whether somebody has written. This alone would do. */
const LOOK_MS = 1_000
/** So many times it looks until it forgets what nobody needs. */
const TIDY_EVERY = 60
/** How long it waits before it listens again after its connection was lost. */
const AGAIN_MS = 500
/** How long it waits where the database refuses to listen: a replica does, until it is made a primary. */
const REFUSED_MS = 15_000
/** PostgreSQL takes no longer message. */
const MOST_BYTES = 7_000

/** A message says so of work that is left for anybody. */
const LEFT = 2
const ANYTHING: TreeNotice = { rootId: null, runnable: true, isLeft: true, stop: true, ended: [] }

const WRITES = 'SELECT last_value FROM @.writes'
const TELL = 'SELECT pg_notify($1, message) FROM unnest($2::text[]) AS m (message)'

export interface WatchOptions {
  readonly database: Database
  /** True where a queue tells others of runnable nodes. */
  readonly isQueued: boolean
  /** True for a tree that somebody elsewhere reads: he hears of all commits. */
  readonly isRead: (rootId: Id) => boolean
  /** Called before others hear that somebody has written to a tree. */
  readonly heard: (rootId: Id) => void
  /** Called each second while somebody listens. */
  readonly look: () => Promise<void>
  /** Called now and then. */
  readonly tidy: () => Promise<void>
  /** The connection was lost. */
  readonly lost: () => void
}

/** Tells other processes of commits, and hears of theirs. Everything said here may be lost: whoever misses it finds it by looking. */
export class ChangeWatch {
  private readonly options: WatchOptions
  private readonly origin = Math.random().toString(36).slice(2)
  private readonly channel: string
  private readonly listeners = new Set<(notice: TreeNotice) => void>()
  private readonly untold = new Map<Id, TreeNotice>()
  private telling: NodeJS.Timeout | undefined
  /** Runs for some time after a message; the next one waits for its end. */
  private resting: NodeJS.Timeout | undefined
  private looking: NodeJS.Timeout | undefined
  private client: PostgresClient | undefined
  private isListening = false
  private isEnded = false
  /** How many writes of its own it knows of. */
  private known = 0
  /** How many writes of its own are under way: the database may have counted them already. */
  private underWay = 0
  /** The writes of others that there were at the last look, at least; -1 where some may have been missed since. */
  private seen = -1
  private looks = 0
  /** True once this connection has brought a message: a pooler may take the wish to listen, and bring none. */
  hears = false

  constructor(options: WatchOptions) {
    this.options = options
    this.channel = `legate_${options.database.options.schema}`.slice(0, 60)
  }

  /** Does a write of this process, which is counted when it is done. */
  async write<T>(act: () => Promise<T>): Promise<T> {
    this.underWay++
    try {
      return await act()
    } finally {
      this.underWay--
    }
  }

  /** Takes note of a commit of this process. */
  committed(commit: Commit): void {
    if (commit.rootId === null) return
    this.known++
    const notice = hintOf(commit, this.options.isQueued)
    if (notice === undefined || notice.rootId === null) return
    const isForOthers = notice.runnable || notice.stop || notice.ended.length > 0
    if (!isForOthers && !this.options.isRead(notice.rootId)) return
    this.note(notice.rootId, notice)
  }

  /** Tells that a tree has work which this process does not do. */
  left(rootId: Id): void {
    this.note(rootId, { rootId, runnable: true, isLeft: true, stop: false, ended: [] })
  }

  private note(rootId: Id, notice: TreeNotice): void {
    const before = this.untold.get(rootId)
    this.untold.set(rootId, before === undefined ? notice : joined(before, notice))
    this.arm()
  }

  /** Tells that something changed that is of no tree. */
  changed(): void {
    this.known++
    this.untold.set('', { ...ANYTHING, runnable: false, stop: false })
    this.arm(TELL_MS)
  }

  listen(heard: (notice: TreeNotice) => void): () => void {
    this.listeners.add(heard)
    this.begin()
    return () => {
      this.listeners.delete(heard)
    }
  }

  async end(): Promise<void> {
    this.isEnded = true
    this.listeners.clear()
    clearTimeout(this.looking)
    if (this.untold.size > 0) await this.tell().catch(() => undefined)
    clearTimeout(this.resting)
    const { client } = this
    this.client = undefined
    client?.release(true)
  }

  /** The first commit after a rest is told at once, those that come soon after it together. What is of no tree has time. */
  private arm(ms = 0): void {
    if (this.isEnded || this.resting !== undefined) return
    this.telling ??= setTimeout(() => {
      // A process that misses the message finds the change when it looks.
      this.tell().catch(() => undefined)
    }, ms)
  }

  private rest(): void {
    this.resting = setTimeout(() => {
      this.resting = undefined
      if (this.untold.size > 0) this.arm()
    }, TELL_MS)
    this.resting.unref()
  }

  private async tell(): Promise<void> {
    clearTimeout(this.telling)
    this.telling = undefined
    this.rest()
    const messages = messagesOf(this.origin, [...this.untold.values()])
    this.untold.clear()
    await this.options.database.once(TELL, [this.channel, messages])
  }

  private begin(): void {
    if (this.isListening || this.isEnded) return
    this.isListening = true
    this.hear().catch(() => this.hearAgain())
    this.lookLater()
  }

  private async hear(): Promise<void> {
    const client = await this.options.database.reserve()
    if (this.isEnded) return client.release(true)
    this.client = client
    const over = () => this.lose(client)
    client.on('error', over)
    client.on('end', over)
    client.on('notification', (message) => this.heard(String((message as { payload?: unknown }).payload)))
    client.unref?.()
    try {
      await client.query({ text: `LISTEN "${this.channel.replaceAll('"', '""')}"`, query_timeout: ANSWER_MS })
      this.seen = -1
    } catch (error) {
      this.lose(client, isLost(error) ? AGAIN_MS : REFUSED_MS)
    }
  }

  /** Gives the connection up, once, and listens on another one later. */
  private lose(client: PostgresClient, againMs = AGAIN_MS): void {
    if (this.client !== client) return
    this.client = undefined
    this.hears = false
    abandon(client)
    this.options.lost()
    this.hearAgain(againMs)
  }

  private hearAgain(ms = AGAIN_MS): void {
    if (this.isEnded) return
    setTimeout(() => {
      if (!this.isEnded) this.hear().catch(() => this.hearAgain())
    }, ms).unref()
  }

  /** Anybody may write to a channel: a message that is not a notice is passed over. */
  private heard(message: string): void {
    const read = parseJson(message)
    this.hears = true
    const [origin, ...notices] = read.ok && Array.isArray(read.value) ? read.value : []
    if (origin === this.origin) return
    for (const notice of readNotices(notices)) {
      if (notice.rootId !== null) this.options.heard(notice.rootId)
      for (const listener of this.listeners) listener(notice)
    }
  }

  private lookLater(): void {
    if (this.isEnded) return
    this.looking = setTimeout(() => {
      this.look()
        .catch(() => undefined)
        .finally(() => this.lookLater())
    }, LOOK_MS)
    this.looking.unref()
  }

  /**
   * Others have written where there were more writes than those of this process. One that is under way may be among those that
   * were counted, or not: it never hides one of somebody else.
   */
  private async look(): Promise<void> {
    await this.options.look()
    if (++this.looks % TIDY_EVERY === 0) await this.options.tidy()
    const own = this.known
    const writes = await this.countWrites()
    const isNews = writes - own > this.seen
    this.seen = writes - this.known - this.underWay
    if (isNews) for (const listener of this.listeners) listener(ANYTHING)
  }

  /** Asks on the connection that listens: where the other side has forgotten it, nobody would ever say so. */
  private async countWrites(): Promise<number> {
    const { client } = this
    const { database } = this.options
    if (client === undefined) return Number((await database.query(WRITES))[0]?.[0])
    try {
      const { text } = database.statement(WRITES)
      const { rows } = await client.query({ text, rowMode: 'array', query_timeout: ANSWER_MS })
      return Number((rows[0] as PgRow | undefined)?.[0])
    } catch (error) {
      this.lose(client)
      throw error
    }
  }
}

function joined(a: TreeNotice, b: TreeNotice): TreeNotice {
  return {
    rootId: a.rootId,
    runnable: a.runnable || b.runnable,
    isLeft: a.isLeft || b.isLeft,
    stop: a.stop || b.stop,
    ended: [...a.ended, ...b.ended],
  }
}

/** Changes that others may have to act on: a node that nobody claimed, a stop, an end. */
function hintOf({ rootId, nodes, turns }: Commit, isQueued: boolean): TreeNotice | undefined {
  if (rootId === null) return undefined
  const runnable = !isQueued && nodes.some(({ state, blockers }) => state === 'pending' && blockers === 0)
  const isAskedToStop = turns.some(({ cancel, state }) => cancel !== null && state !== 'ended')
  const stop = isAskedToStop || nodes.some(({ marks }) => marks?.stop != null)
  const ended = turns.filter(({ state }) => state === 'ended').map(({ id }) => id)
  return { rootId, runnable, isLeft: false, stop, ended }
}

/** As many messages as it takes: none of them is too long. */
function messagesOf(origin: string, watch: readonly TreeNotice[]): readonly string[] {
  const lots: string[][] = [[]]
  let size = 0
  for (const text of watch.map(textOf)) {
    size += Buffer.byteLength(text)
    if (size > MOST_BYTES) {
      lots.push([])
      size = Buffer.byteLength(text)
    }
    lots.at(-1)?.push(text)
  }
  return lots.map((lot) => `[${[JSON.stringify(origin), ...lot].join(',')}]`)
}

/** A notice that is too long says only that something changed. */
function textOf({ rootId, runnable, isLeft, stop, ended }: TreeNotice): string {
  const text = JSON.stringify([rootId, isLeft ? LEFT : Number(runnable), Number(stop), ...ended])
  return Buffer.byteLength(text) <= MOST_BYTES ? text : textOf(ANYTHING)
}

/** A message of ours has fewer notices. */
const MOST_NOTICES = 200

/** The notices of a message, one of each kind: a message that says often that something changed says it once. */
function readNotices(list: readonly unknown[]): readonly TreeNotice[] {
  if (list.length > MOST_NOTICES) return [ANYTHING]
  const notices = list.filter((one) => Array.isArray(one)).map(readNotice)
  return notices.some(({ rootId }) => rootId === null) ? [ANYTHING] : notices
}

function readNotice([rootId, runnable, stop, ...ended]: readonly unknown[]): TreeNotice {
  return {
    rootId: typeof rootId === 'string' ? rootId : null,
    runnable: runnable === 1 || runnable === LEFT,
    isLeft: runnable === LEFT,
    stop: stop === 1,
    ended: ended.filter((id) => typeof id === 'string'),
  }
}
