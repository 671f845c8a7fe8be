import { OWN_TEXT, parseJson } from '../base/json.ts'
import { type Finding, finding, type Place } from '../graph/audit/finding.ts'
import type { Edge, Id } from '../graph/rows.ts'
import type { WholeTree, WrittenRow } from './archive.ts'
import {
  type ChainRecord,
  chainHash,
  edgeMark,
  isOfTurnEdges,
  memberText,
  readMarks,
  readRowMark,
  rowMark,
} from './tree-chain.ts'

/** What of a tree is not what its commits wrote. */
export function verifyTree(tree: WholeTree): Finding[] {
  const { rootId, records } = tree
  const written = new Written(rootId)
  return [...brokenLinks(rootId, records), ...written.read(records), ...written.holdAgainst(tree)]
}

/** Records that do not follow from the one before. */
export function brokenLinks(rootId: Id, records: readonly ChainRecord[]): Finding[] {
  const found: Finding[] = []
  let before = { hash: '', seq: 0 }
  for (const [at, record] of records.entries()) {
    if (!follows(record, before)) {
      const message = `Commit ${at + 1} of the tree ${rootId} (${record.kind}) is not what was written, or not after what was before it.`
      found.push(finding('broken_chain', placeOf('commit', rootId, `${rootId} ${at + 1}`), message))
    }
    before = record
  }
  return found
}

export function follows(record: ChainRecord, before: Pick<ChainRecord, 'hash' | 'seq'>): boolean {
  if (chainHash(before.hash, record) !== record.hash) return false
  return record.seq - before.seq === eventCount(record.events)
}

function eventCount(events: string): number {
  if (events === '[]') return 0
  const read = parseJson(events, OWN_TEXT)
  return read.ok && Array.isArray(read.value) ? read.value.length : Number.NaN
}

/** Of a row, as its commits wrote it. */
interface Versions {
  count: number
  last: string
  readonly hashes: Set<string>
}

/** What the records say was written. */
class Written {
  private readonly rootId: Id
  /** By letter and end of the id. */
  private readonly rows = new Map<string, Versions>()
  private readonly edges = new Set<string>()

  constructor(rootId: Id) {
    this.rootId = rootId
  }

  *read(records: readonly ChainRecord[]): Generator<Finding> {
    for (const [at, { marks }] of records.entries()) {
      const read = readMarks(marks)
      if (read === undefined) {
        const place = placeOf('commit', this.rootId, `${this.rootId} ${at + 1}`)
        yield finding('broken_chain', place, `Commit ${at + 1} of the tree ${this.rootId} does not say what it wrote.`)
      }
      for (const mark of read ?? []) if (!isOfTurnEdges(mark)) this.take(mark.key, mark.hash)
    }
  }

  private take(key: string, hash: string): void {
    if (key === hash) this.edges.add(hash)
    else {
      const known = this.rows.get(key) ?? { count: 0, last: hash, hashes: new Set() }
      this.rows.set(key, known)
      known.count++
      known.last = hash
      known.hashes.add(hash)
    }
  }

  *holdAgainst({ rows, edges }: WholeTree): Generator<Finding> {
    const seen = new Set<string>()
    const told = new Set<string>()
    const versions = new Map<string, number>()
    const shared = sharedKeys(rows)
    for (const row of rows) {
      const { key, hash } = markOf(row)
      seen.add(key)
      versions.set(key, (versions.get(key) ?? 0) + versionOf(row))
      const wrong = this.wrong(key, hash, shared.has(key))
      if (wrong === undefined) continue
      told.add(key)
      yield this.found(wrong, row)
    }
    // A commit makes one version more: of what was put back, more were written than there are.
    for (const row of rows) {
      const { key } = markOf(row)
      const written = this.rows.get(key)?.count ?? 0
      if (!told.has(key) && written > (versions.get(key) ?? written)) yield this.found(PUT_BACK, row)
    }
    for (const key of this.rows.keys()) {
      if (seen.has(key)) continue
      const subject = SUBJECTS[key[0] as WrittenRow['letter']]
      const message = `A ${subject} of the tree ${this.rootId} whose id ends in ${key.slice(1)} was written and is not there.`
      yield finding('missing_row', placeOf(subject ?? 'store', this.rootId, key.slice(1)), message)
    }
    yield* this.edgesAgainst(edges)
  }

  private *edgesAgainst(edges: readonly Edge[]): Generator<Finding> {
    const left = new Set(this.edges)
    for (const edge of edges) {
      const mark = edgeMark(edge)
      left.delete(mark)
      if (this.edges.has(mark)) continue
      const place = placeOf('edge', this.rootId, `${edge.from} -> ${edge.to}`)
      yield finding('unknown_row', place, `No commit wrote the ${edge.type} edge from ${edge.from} to ${edge.to}.`)
    }
    for (const mark of left) {
      const message = `An edge of the tree ${this.rootId} was written and is not there.`
      yield finding('missing_row', placeOf('edge', this.rootId, mark), message)
    }
  }

  /** `isShared`: several rows have ids that end so; any of their versions will do. */
  private wrong(key: string, hash: string, isShared: boolean): Wrong | undefined {
    const versions = this.rows.get(key)
    if (versions === undefined) return ['unknown_row', 'was written by no commit']
    const isKnown = versions.hashes.has(hash)
    if (versions.last === hash || (isShared && isKnown)) return undefined
    if (isKnown) return ['altered_row', 'is an older version than the last that was written']
    return ['altered_row', 'is not what was written']
  }

  private found([type, what]: Wrong, { letter, id }: WrittenRow): Finding {
    const subject = SUBJECTS[letter]
    return finding(type, placeOf(subject, this.rootId, id), `The ${subject} ${id} ${what}.`)
  }
}

const PUT_BACK = ['altered_row', 'was put back to an older version, and written again since'] as const

type Wrong = readonly [type: 'altered_row' | 'unknown_row', what: string]

const SUBJECTS = { c: 'conversation', t: 'turn', n: 'node', l: 'link' } as const

function placeOf(subject: Place['subject'], rootId: Id, id: string): Place {
  return { subject, id, rootId, conversationId: subject === 'conversation' ? id : null }
}

export function markOf({ letter, id, turnId, text }: WrittenRow): { readonly key: string; readonly hash: string } {
  return readRowMark(rowMark(letter, id, turnId === null ? text : memberText(turnId, text)))
}

function versionOf({ text }: WrittenRow): number {
  const read = parseJson(text, OWN_TEXT)
  const version = read.ok && typeof read.value === 'object' ? Reflect.get(read.value ?? {}, 'version') : 0
  return typeof version === 'number' ? version : 0
}

export function sharedKeys(rows: readonly WrittenRow[]): Set<string> {
  const [seen, shared] = [new Set<string>(), new Set<string>()]
  for (const { letter, id } of rows) {
    const { key } = readRowMark(rowMark(letter, id, ''))
    if (seen.has(key)) shared.add(key)
    seen.add(key)
  }
  return shared
}
