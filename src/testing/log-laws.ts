import { parseOwnJson } from '../base/json.ts'
import type { TreeRows } from '../graph/audit/tree-rows.ts'
import { chainHash } from '../store/sqlite-commit.ts'
import type { Connection } from '../store/sqlite-driver.ts'
import type { WorkerLine } from './worker-log.ts'

/** L1: every event that was acknowledged is read back, at its place, byte for byte. */
export function lostEvents(lines: readonly WorkerLine[], trees: readonly TreeRows[]): string[] {
  const stored = new Map(trees.map(({ rootId, events }) => [rootId, events]))
  const wrong: string[] = []
  for (const line of lines) {
    if (line.type !== 'commit' || line.rootId === null) continue
    for (const event of line.events) {
      const found = stored.get(line.rootId)?.[event.seq - 1]
      if (found === undefined) wrong.push(`L1 ${line.rootId}: the acknowledged event ${event.seq} is lost`)
      else if (JSON.stringify(found) !== JSON.stringify(event)) {
        wrong.push(`L1 ${line.rootId}: event ${event.seq} is not what was acknowledged: ${JSON.stringify(found)}`)
      }
    }
  }
  return wrong
}

/** L2: sequence numbers are 1, 2, 3, ... without a gap, and none was acknowledged for two events. */
export function unevenSequences(lines: readonly WorkerLine[], trees: readonly TreeRows[]): string[] {
  const wrong: string[] = []
  for (const { rootId, events } of trees) {
    const at = events.findIndex(({ seq }, index) => seq !== index + 1)
    if (at >= 0) wrong.push(`L2 ${rootId}: event ${at + 1} of the tree has the number ${events[at]?.seq}`)
  }
  const seen = new Set<string>()
  for (const line of lines) {
    if (line.type !== 'commit') continue
    for (const { seq } of line.events) {
      const place = `${line.rootId} ${seq}`
      if (seen.has(place)) wrong.push(`L2 ${place} was acknowledged twice`)
      seen.add(place)
    }
  }
  return wrong
}

/** A row of the commit log, as text where bytes count. */
export interface LoggedCommit {
  readonly rootId: string
  readonly seq: number
  readonly kind: string
  readonly events: string
  readonly digest: string
  readonly hash: string
}

const COMMITS = `SELECT first.root_id, c.seq, c.kind, c.events, c.digest, c.hash FROM commits AS c
  JOIN commits AS first ON first.n = c.n / 16777216 * 16777216 + 1 ORDER BY c.n`

/** The commit log of a database, in the order it was written. */
export function readCommits(db: Connection): LoggedCommit[] {
  const rows = db.all(COMMITS)
  return rows.map(([rootId, seq, kind, events, digest, hash]) => ({
    rootId: String(rootId),
    seq: Number(seq),
    kind: String(kind),
    events: String(events),
    digest: String(digest),
    hash: String(hash),
  }))
}

/** L7: the hash chain of every tree verifies from its first commit, and would not with one byte changed. */
export function brokenChains(commits: readonly LoggedCommit[]): string[] {
  const wrong = unchained(commits)
  const at = Math.floor(Math.random() * commits.length)
  const victim = commits[at]
  if (wrong.length > 0 || victim === undefined) return wrong
  for (const field of ['events', 'digest', 'hash'] as const) {
    const forged = { ...victim, [field]: withFlippedByte(victim[field]) }
    if (unchained(commits.with(at, forged)).length > 0) continue
    wrong.push(`L7 ${victim.rootId}: a changed byte in the ${field} of the commit at ${victim.seq} is not found`)
  }
  return wrong
}

function unchained(commits: readonly LoggedCommit[]): string[] {
  const last = new Map<string, LoggedCommit>()
  const wrong: string[] = []
  for (const commit of commits) {
    const before = last.get(commit.rootId)
    last.set(commit.rootId, commit)
    if (chainHash(before?.hash ?? '', commit.digest, commit.events) !== commit.hash) {
      wrong.push(
        `L7 ${commit.rootId}: the ${commit.kind} commit at ${commit.seq} does not follow from the one before it`,
      )
    } else if ((before?.seq ?? 0) + (parseOwnJson(commit.events) as unknown[]).length !== commit.seq) {
      wrong.push(
        `L2 ${commit.rootId}: the ${commit.kind} commit ends at ${commit.seq} and the one before at ${before?.seq}`,
      )
    }
  }
  return wrong
}

function withFlippedByte(text: string): string {
  const bytes = Buffer.from(text, 'utf8')
  const at = Math.floor(Math.random() * bytes.length)
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  return bytes.toString('latin1')
}
