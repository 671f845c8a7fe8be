import { truncateUtf8 } from '../base/json.ts'
import type { SourceHealth } from '../graph/commit.ts'
import type { AgentRef } from '../graph/rows.ts'

/** How often in a row a source may fail to start before its nodes are left to other processes. */
export const MOST_FAILURES = 3

const LONGEST_ERROR = 300
const MOST_LISTED = 64

interface Entry {
  readonly name: string
  readonly failures: number
  readonly error: string | null
  readonly since: number
  /** Until when nodes of these agents are left to others. */
  readonly left: ReadonlyMap<string, number>
}

/** The name by which an agent is left to others. Agents of files that have one name may have nothing else in common. */
export function leftAs({ name, hash, inline }: AgentRef): string {
  return inline === undefined ? name : hash
}

/** Records how the sources are that this process has used, and which agents it leaves to others because of them. */
export class SourceBoard {
  /** True once it has left agents to others. */
  hasLeft = false
  private readonly now: () => number
  private readonly entries: Map<string, Entry> = new Map()
  private listed: readonly SourceHealth[] | undefined
  /** When the list changes by itself: the process tries a source again. */
  private changesAt = Number.POSITIVE_INFINITY

  constructor(now: () => number) {
    this.now = now
  }

  /** Records that a source works. */
  started(name: string, key: string): void {
    const known = this.entries.get(key)
    if (known?.failures === 0) return
    this.put(key, { name, failures: 0, error: null, since: this.now(), left: new Map() })
  }

  failed(name: string, key: string, error: string): void {
    const { failures = 0, since = 0, left = new Map() } = this.entries.get(key) ?? {}
    const isFirst = failures === 0
    const reason = truncateUtf8(error, LONGEST_ERROR)
    this.put(key, { name, failures: failures + 1, error: reason, since: isFirst ? this.now() : since, left })
  }

  failures(key: string): number {
    return this.entries.get(key)?.failures ?? 0
  }

  /** Leaves the nodes of an agent to other processes for a while, because of a source that fails here. */
  leave(key: string, agent: AgentRef, ms: number): void {
    const known = this.entries.get(key)
    if (known === undefined) return
    this.hasLeft = true
    this.put(key, { ...known, left: new Map(known.left).set(leftAs(agent), this.now() + ms) })
  }

  /** Whether the nodes of an agent are left to others now. */
  isLeft(agent: AgentRef): boolean {
    const now = this.now()
    const name = leftAs(agent)
    return [...this.entries.values()].some(({ left }) => (left.get(name) ?? 0) > now)
  }

  /** The newest sources, with those that fail first. The same list while nothing changed. */
  list(): readonly SourceHealth[] {
    if (this.listed === undefined || this.now() >= this.changesAt) this.listed = this.look()
    return this.listed
  }

  private look(): readonly SourceHealth[] {
    const now = this.now()
    const all = [...this.entries.values()]
    const later = all.flatMap(({ left }) => [...left.values()].filter((until) => until > now))
    this.changesAt = Math.min(Number.POSITIVE_INFINITY, ...later)
    return all
      .map(({ left, ...health }) => ({
        ...health,
        leaves: [...left].flatMap(([name, until]) => (until > now ? name : [])),
      }))
      .sort((a, b) => b.failures - a.failures || b.since - a.since)
      .slice(0, MOST_LISTED)
  }

  private put(key: string, entry: Entry): void {
    this.entries.delete(key)
    this.entries.set(key, entry)
    const [oldest = ''] = this.entries.keys()
    if (this.entries.size > MOST_LISTED * 4) this.entries.delete(oldest)
    this.listed = undefined
    this.changesAt = Math.min(this.changesAt, ...entry.left.values())
  }
}
