import type { Request } from '../grant/request.ts'
import type { Id } from '../graph/rows.ts'
import type { OpenSource, ToolSource } from './source.ts'
import type { Logger } from './tool.ts'

/** Who uses a source. */
export interface SourceUser {
  readonly conversationId: Id
  readonly rootId: Id
  readonly runId: Id
  /** The run at the top of its tree: what the tree shares does not end before it. */
  readonly topRunId: Id
}

/** A source, and what was decided of starting it. */
export interface Start {
  readonly source: ToolSource
  readonly decided: readonly Request[]
}

interface Entry {
  readonly users: Set<Id>
  readonly opening: Promise<OpenSource>
  readonly starting: AbortController
  /** When it could not be started. */
  failedAt: number | null
}

/** One that could not be started is not tried again before that. */
const RETRY_MS = 30_000

/**
 * The sources that this process has started: live handles of the runtime. Each is started when it is first used, shared
 * within its scope, and ended when the last run that used it has.
 */
export class SourcePool {
  private readonly logger: Logger
  private readonly now: () => number
  private readonly entries: Map<string, Entry> = new Map()
  private readonly closing: Set<Promise<void>> = new Set()
  /** What a person has allowed to be started, per tree. */
  private readonly allowed: Map<Id, Set<string>> = new Map()
  /** What was already told to each run. */
  private readonly told: Map<Id, Set<string>> = new Map()
  private isClosed = false

  constructor(logger: Logger, now: () => number) {
    this.logger = logger
    this.now = now
  }

  /** The source, started and ready. Rejects with the reason. */
  async use(name: string, start: Start, user: SourceUser): Promise<OpenSource> {
    const { source } = start
    const entry = this.entry(name, start, user)
    entry.users.add(user.runId)
    if (source.scope !== 'conversation') entry.users.add(user.topRunId)
    const open = await entry.opening
    await open.ready()
    return open
  }

  /** A person has allowed this to be started in a tree: while this process goes on with it, nobody asks again. */
  allow(rootId: Id, source: ToolSource): void {
    const keys = this.allowed.get(rootId) ?? new Set()
    this.allowed.set(rootId, keys.add(source.key))
  }

  isAllowed(rootId: Id, source: ToolSource): boolean {
    return this.allowed.get(rootId)?.has(source.key) === true && this.isOpen(rootId, source)
  }

  /** True the first time something is told to a run. */
  tell(runId: Id, message: string): boolean {
    const told = this.told.get(runId) ?? new Set()
    if (told.has(message)) return false
    this.told.set(runId, told.add(message))
    return true
  }

  /** A run has ended: what nobody uses any more ends too. */
  leave(runId: Id): void {
    if (this.entries.size === 0 && this.told.size === 0) return
    this.told.delete(runId)
    for (const [key, { users }] of this.entries) {
      if (users.delete(runId) && users.size === 0 && !key.startsWith(SHARED)) this.end(key)
    }
    if (this.entries.size === 0) this.allowed.clear()
  }

  /** Runs that have ended elsewhere. */
  leaveAll(isEnded: (runId: Id) => boolean): void {
    const runs = new Set([...this.entries.values()].flatMap(({ users }) => [...users]))
    for (const run of runs) if (isEnded(run)) this.leave(run)
  }

  /** Ends all of them, and waits until they have. */
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
    opening.catch(() => {
      entry.failedAt = this.now()
    })
    this.entries.set(key, entry)
    return entry
  }

  private isOpen(rootId: Id, source: ToolSource): boolean {
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

/** A tree's own conversations count as the tree's. */
function belongsTo(key: string, rootId: Id): boolean {
  return key.startsWith(SHARED) || key.startsWith(`${rootId} `)
}

function keyOf({ scope, key }: ToolSource, { conversationId, rootId }: SourceUser): string {
  if (scope === 'runtime') return `${SHARED}${key}`
  return scope === 'run' ? `${rootId} ${key}` : `${rootId} ${conversationId} ${key}`
}
