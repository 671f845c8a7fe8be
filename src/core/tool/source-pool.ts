import { messageOf } from '../base/error.ts'
import type { SourceBoard } from '../engine/source-board.ts'
import type { Request } from '../grant/request.ts'
import type { Id } from '../graph/rows.ts'
import type { OpenSource, ToolSource } from './source.ts'
import type { Logger } from './tool.ts'

/** A run that uses a source. */
export interface SourceUser {
  readonly conversationId: Id
  readonly rootId: Id
  readonly runId: Id
  /** The run at the top of its tree: sources that the tree shares last until it ends. */
  readonly topRunId: Id
}

/** A source, and the decision about starting it. */
export interface Start {
  readonly source: ToolSource
  readonly decided: readonly Request[]
}

interface Entry {
  readonly users: Set<Id>
  readonly opening: Promise<OpenSource>
  readonly starting: AbortController
  /** When the last start failed. */
  failedAt: number | null
}

/** A source that could not be started is not tried again before that. */
export const RETRY_MS = 30_000

export interface SourcePoolParts {
  readonly logger: Logger
  readonly now: () => number
  readonly board: SourceBoard
}

/**
 * Owns the sources that this process has started: live handles of the runtime. A source starts at its first use, is
 * shared within its scope, and ends with the last run that used it.
 */
export class SourcePool {
  readonly board: SourceBoard
  private readonly logger: Logger
  private readonly now: () => number
  private readonly entries: Map<string, Entry> = new Map()
  private readonly closing: Set<Promise<void>> = new Set()
  /** The sources that people have allowed to start, per tree: the source, the request, and the layer that asked. */
  private readonly allowed: Map<Id, Set<string>> = new Map()
  /** The messages that each run has already received. */
  private readonly told: Map<Id, Set<string>> = new Map()
  private isClosed = false

  constructor({ logger, now, board }: SourcePoolParts) {
    this.logger = logger
    this.now = now
    this.board = board
  }

  /** Returns the source, started and ready. Rejects with the reason. */
  async use(name: string, start: Start, user: SourceUser): Promise<OpenSource> {
    const { source } = start
    const entry = this.entry(name, start, user)
    entry.users.add(user.runId)
    if (source.scope !== 'conversation') entry.users.add(user.topRunId)
    const open = await entry.opening
    await open.ready()
    this.board.started(name, source.key)
    return open
  }

  /** Lets a source that did not start be tried again at its next use. */
  tryAgain(source: ToolSource, user: SourceUser): void {
    const known = this.entries.get(keyOf(source, user))
    if (known?.failedAt != null) known.failedAt = Number.NEGATIVE_INFINITY
  }

  /**
   * Records that a person has allowed a source to start in a tree. While it runs, this process does not ask again where the same
   * layers ask for the same: `asked` has a key for each.
   */
  allow(rootId: Id, source: ToolSource, asked: readonly string[]): void {
    const keys = this.allowed.get(rootId) ?? new Set()
    for (const one of asked) keys.add(`${source.key}\n${one}`)
    this.allowed.set(rootId, keys)
  }

  isAllowed(rootId: Id, source: ToolSource, asked: readonly string[]): boolean {
    const keys = this.allowed.get(rootId)
    if (keys === undefined || asked.length === 0 || !this.isOpen(rootId, source)) return false
    return asked.every((one) => keys.has(`${source.key}\n${one}`))
  }

  /** Returns true the first time a message is sent to a run. */
  recordMessage(runId: Id, message: string): boolean {
    const told = this.told.get(runId) ?? new Set()
    if (told.has(message)) return false
    this.told.set(runId, told.add(message))
    return true
  }

  /** Ends the sources that nobody uses after this run has ended. */
  leave(runId: Id): void {
    if (this.entries.size === 0 && this.told.size === 0) return
    this.told.delete(runId)
    for (const [key, { users }] of this.entries) {
      if (users.delete(runId) && users.size === 0 && !key.startsWith(SHARED)) this.end(key)
    }
    if (this.entries.size === 0) this.allowed.clear()
  }

  /** The runs that use a source. */
  runs(): Id[] {
    return [...this.entries.values()].flatMap(({ users }) => [...users])
  }

  /** Ends all sources, and waits until they have ended. */
  async close(): Promise<void> {
    this.isClosed = true
    for (const key of [...this.entries.keys()]) this.end(key)
    await Promise.all(this.closing)
  }

  private entry(name: string, { source, decided }: Start, user: SourceUser): Entry {
    if (this.isClosed) throw new Error('the runtime is closed')
    const key = keyOf(source, user)
    const known = this.entries.get(key)
    const isStale = known?.failedAt != null && this.now() - known.failedAt >= RETRY_MS
    if (known !== undefined && !isStale) return known
    const starting = new AbortController()
    const opening = source.open({ name, logger: this.logger, signal: starting.signal, decided })
    const entry: Entry = { users: known?.users ?? new Set(), opening, starting, failedAt: null }
    opening.catch((error: unknown) => {
      entry.failedAt = this.now()
      if (!starting.signal.aborted) this.board.failed(name, source.key, messageOf(error))
    })
    this.entries.set(key, entry)
    return entry
  }

  /** Tells whether a source runs, or starts, for this tree. */
  isOpen(rootId: Id, source: ToolSource): boolean {
    return [...this.entries.keys()].some((key) => key.endsWith(source.key) && belongsTo(key, rootId))
  }

  private end(key: string): void {
    const entry = this.entries.get(key)
    if (entry === undefined) return
    this.entries.delete(key)
    entry.starting.abort()
    const closed: Promise<void> = entry.opening
      .then(
        (open) => open.close(),
        () => undefined,
      )
      .then(() => {
        this.closing.delete(closed)
      })
    this.closing.add(closed)
  }
}

const SHARED = 'runtime '

/** Conversations of a tree count as part of the tree. */
function belongsTo(key: string, rootId: Id): boolean {
  return key.startsWith(SHARED) || key.startsWith(`${rootId} `)
}

function keyOf({ scope, key }: ToolSource, { conversationId, rootId }: SourceUser): string {
  if (scope === 'runtime') return `${SHARED}${key}`
  return scope === 'run' ? `${rootId} ${key}` : `${rootId} ${conversationId} ${key}`
}
