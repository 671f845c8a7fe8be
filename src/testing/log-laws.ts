import type { TreeRows } from '../graph/audit/tree-rows.ts'
import type { Connection } from '../store/sqlite/driver.ts'
import { findTrees, readRecords } from '../store/sqlite/tree.ts'
import { verifySqlite } from '../store/sqlite/verify.ts'
import { brokenLinks } from '../store/verify-tree.ts'
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

/** L7: all that is stored is what was committed, and would not be with one byte of a commit changed. */
export function brokenChains(db: Connection): string[] {
  const wrong = verifySqlite(db).findings.map(({ message }) => `L7 ${message}`)
  const trees = [...findTrees(db).byRoot]
  const [rootId, place] = trees[Math.floor(Math.random() * trees.length)] ?? []
  const records = place?.tree === undefined ? [] : readRecords(db, place.tree)
  const at = Math.floor(Math.random() * records.length)
  const victim = records[at]
  if (wrong.length > 0 || victim === undefined || rootId === undefined) return wrong
  for (const field of ['events', 'marks', 'hash', 'kind'] as const) {
    const forged = { ...victim, [field]: withFlippedByte(victim[field]) }
    if (brokenLinks(rootId, records.with(at, forged)).length > 0) continue
    wrong.push(`L7 ${rootId}: a changed byte in the ${field} of commit ${at + 1} is not found`)
  }
  return wrong
}

/** A text of no bytes gets one. */
function withFlippedByte(text: string): string {
  const bytes = Buffer.from(text === '' ? ' ' : text, 'utf8')
  const at = Math.floor(Math.random() * bytes.length)
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  return bytes.toString('latin1')
}
