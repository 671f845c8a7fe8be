import { InputError, StoreError } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { type Json, OWN_TEXT, parseJson } from '../../base/json.ts'
import { type Commit, emptyCommit } from '../../graph/commit.ts'
import type { EventRow } from '../../graph/event.ts'
import type { TreeRows } from '../../graph/reader.ts'
import type { Body, Conversation, Edge, EdgeType, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { type Finding, type FindingPlace, finding, type WholeTree, type WrittenRow } from '../archive.ts'
import {
  type ChainRecord,
  chainHash,
  edgeMark,
  isOfTurnEdges,
  memberText,
  type RowLetter,
  readMarks,
  readRowMark,
  rowMark,
  turnEdgesMarks,
} from '../commit-chain.ts'
import { packEvents, unpackEvents } from './event-text.ts'
import { packConversation, packLink, packNode, packTurn } from './rows.made.ts'
import { parseRow, toConversation, toLink, toNode, toTurn } from './rows.ts'

/** Packs a whole tree in its stored form. A tree without a record of its commits gets one with a single commit. */
export function packTree(
  tree: TreeRows,
  { body, records }: { body: (hash: string) => string | undefined; records: readonly ChainRecord[] | null },
): WholeTree {
  const rows: WrittenRow[] = []
  for (const row of tree.conversations.values()) rows.push(conversationText(row))
  for (const row of tree.turns.values()) rows.push(turnText(row))
  for (const row of tree.nodes.values()) rows.push(nodeText(row))
  for (const row of tree.links.values()) rows.push(linkText(row))
  const edges = [...tree.edgesTo.values()].flat()
  const bodies = bodiesOf(tree, body)
  return { rootId: tree.rootId, rows, edges, bodies, records: records ?? [snapshot(tree, rows, edges)] }
}

export function conversationText(row: Conversation): WrittenRow {
  return { letter: 'c', id: row.id, turnId: null, text: packConversation(row) }
}

export function turnText(row: Turn): WrittenRow {
  return { letter: 't', id: row.id, turnId: null, text: packTurn(row) }
}

export function nodeText(row: Node): WrittenRow {
  return { letter: 'n', id: row.id, turnId: row.turnId, text: packNode(row) }
}

export function linkText(row: Link): WrittenRow {
  return { letter: 'l', id: row.id, turnId: row.hostTurnId, text: packLink(row) }
}

/** The marks of all rows and edges. `turnOf` gives the turn of a node. */
export function marksOf(rows: Iterable<WrittenRow>, edges: readonly Edge[], turnOf: (nodeId: Id) => Id): string {
  let marks = ''
  for (const { letter, id, turnId, text } of rows) {
    marks += rowMark(letter, id, turnId === null ? text : memberText(turnId, text))
  }
  for (const edge of edges) marks += edgeMark(edge)
  return marks + turnEdgesMarks(edges, turnOf)
}

function snapshot(
  { events, conversations, nodes }: TreeRows,
  rows: readonly WrittenRow[],
  edges: readonly Edge[],
): ChainRecord {
  const [root] = conversations.values()
  const record = {
    kind: 'snapshot',
    at: events.at(-1)?.at ?? root?.createdAt ?? 0,
    seq: events.length,
    events: packEvents(events),
    marks: marksOf(rows, edges, (id) => nodes.get(id)?.turnId ?? ''),
  }
  return { ...record, hash: chainHash('', record) }
}

function bodiesOf({ nodes }: TreeRows, body: (hash: string) => string | undefined): Body[] {
  const hashes = new Set<string>()
  for (const { output } of nodes.values()) if (output.bodyRef !== undefined) hashes.add(output.bodyRef)
  return [...hashes].flatMap((hash) => {
    const text = body(hash)
    return text === undefined ? [] : [{ hash, text }]
  })
}

/** Unpacks the rows of a whole tree, in its order and at their versions, and all of its events. */
export function unpackTree({ rootId, rows, edges, bodies, records }: WholeTree): Commit {
  const conversations: Conversation[] = []
  const turns = new Map<Id, Turn>()
  const nodes: Node[] = []
  const links: Link[] = []
  for (const { text, turnId, id } of rows) {
    const packed = parseRow(text)
    if ('conversation' in packed) conversations.push(toConversation(packed))
    else if ('turn' in packed) turns.set(packed.turn, toTurn(packed))
    else if ('node' in packed) nodes.push(toNode(packed, turnOf(turns, turnId, id)))
    else if ('link' in packed) links.push(toLink(packed, turnOf(turns, turnId, id)))
  }
  const events: EventRow[] = []
  for (const record of records) for (const event of unpackEvents(record.events, record.seq)) events.push(event)
  const at = records.at(-1)?.at ?? 0
  return {
    ...emptyCommit('mutate', at, rootId),
    conversations,
    turns: [...turns.values()],
    nodes,
    links,
    edges,
    bodies,
    events,
  }
}

function turnOf(turns: ReadonlyMap<Id, Turn>, turnId: Id | null, id: Id): Turn {
  const turn = turns.get(turnId ?? '')
  if (turn === undefined) throw new StoreError('store', `The row ${id} is of the turn ${turnId}, which is not there.`)
  return turn
}

const FORMAT = 'tree'
const VERSION = 1

/**
 * Writes a whole tree as JSON Lines: a header, every commit with its events, every row in its stored form, edges, texts, and an
 * end with the number of lines. Rows keep their bytes, so that the importer can compare them with the commits.
 */
export function* toLines(tree: WholeTree): Generator<string> {
  const writer = new TreeWriter(tree.rootId, tree.records.at(-1)?.hash ?? '')
  yield writer.head()
  yield* writer.lines(tree)
  yield writer.end()
}

/** Writes a tree part by part, as `toLines` does. */
export class TreeWriter {
  private readonly rootId: Id
  private readonly hash: string
  private count = 2

  constructor(rootId: Id, hash: string) {
    this.rootId = rootId
    this.hash = hash
  }

  head(): string {
    return JSON.stringify({ legate: FORMAT, version: VERSION, rootId: this.rootId, hash: this.hash })
  }

  *lines({ rows, edges, bodies, records }: Omit<WholeTree, 'rootId'>): Generator<string> {
    this.count += 2 * records.length + rows.length + edges.length + bodies.length
    for (const { kind, at, seq, marks, hash: own, events } of records) {
      yield `["commit",${JSON.stringify({ kind, at, seq, marks, hash: own })}]`
      yield `["events",${events}]`
    }
    for (const { letter, turnId, text } of rows) yield `["row","${letter}",${JSON.stringify(turnId)},${text}]`
    for (const { from, to, type, conversationId } of edges)
      yield JSON.stringify(['edge', conversationId, from, to, type])
    for (const { hash: name, text } of bodies) yield JSON.stringify(['body', name, text])
  }

  end(): string {
    return JSON.stringify({ end: this.hash, lines: this.count })
  }
}

/**
 * Gives a line as `toLines` wrote it: where it went through a terminal, characters that nobody sees are escaped, and the hashes
 * are of the text without these escapes. Texts between escapes are taken as they are.
 */
function asWritten(line: string): string {
  let at = line.indexOf('\\')
  if (at < 0 || !line.includes('\\u')) return line
  const parts: string[] = []
  let from = 0
  for (; at >= 0; at = line.indexOf('\\', at)) {
    const length = line[at + 1] === 'u' ? escapeLength(line, at) : 0
    if (length > 0) {
      parts.push(line.slice(from, at), unescaped(line, at, length))
      from = at + length
    }
    // A backslash that is escaped itself begins no escape.
    at += Math.max(length, 2)
  }
  return from === 0 ? line : parts.join('') + line.slice(from)
}

const UNIT = '\\u0000'.length

/** The length of the escape of a character that JSON is written with as it is; 0 for any other escape. */
function escapeLength(line: string, at: number): number {
  const unit = unitAt(line, at)
  if (!(unit >= FIRST_PLAIN) || (unit >= 0xdc00 && unit <= 0xdfff)) return 0
  if (unit < 0xd800 || unit > 0xdbff) return UNIT
  const low = line.startsWith('\\u', at + UNIT) ? unitAt(line, at + UNIT) : Number.NaN
  return low >= 0xdc00 && low <= 0xdfff ? 2 * UNIT : 0
}

/** Characters before it are controls, which JSON escapes itself, and those of ASCII, which nobody escapes. */
const FIRST_PLAIN = 0x70

function unitAt(line: string, at: number): number {
  const hex = line.slice(at + 2, at + UNIT)
  return HEX.test(hex) ? Number.parseInt(hex, 16) : Number.NaN
}

const HEX = /^[0-9a-f]{4}$/

function unescaped(line: string, at: number, length: number): string {
  const first = unitAt(line, at)
  return length === UNIT ? String.fromCharCode(first) : String.fromCharCode(first, unitAt(line, at + UNIT))
}

/** Reads the lines of `toLines` one by one. Throws an InputError that names the wrong line. */
export class TreeParser {
  private rootId: Id | undefined
  private hash = ''
  private lines = 0
  private isAtEnd = false
  private readonly rows: WrittenRow[] = []
  private readonly edges: Edge[] = []
  private readonly bodies: Body[] = []
  private readonly records: ChainRecord[] = []
  private record: Omit<ChainRecord, 'events'> | undefined

  take(line: string): void {
    if (typeof line === 'string' && line.length > MOST_OF_LINE) {
      this.lines++
      throw this.wrong(`It is longer than ${MOST_OF_LINE} characters, which no line of an export is.`)
    }
    const text = typeof line === 'string' ? asWritten(line.trimEnd()) : undefined
    if (text === '') return
    this.lines++
    if (text === undefined) throw this.wrong('It is not a text.')
    const read = parseJson(text, LIMITS)
    if (!read.ok) throw this.wrong(read.error)
    if (this.isAtEnd) throw this.wrong('It comes after the end.')
    if (this.rootId === undefined) this.header(read.value)
    else if (Array.isArray(read.value)) this.item(read.value, text)
    else this.end(read.value)
  }

  tree(): WholeTree {
    const { rootId, rows, edges, bodies, records } = this
    if (rootId === undefined || !this.isAtEnd) {
      throw new InputError('invalid_input', 'The export is not whole: its last line is missing. Export the tree again.')
    }
    return { rootId, rows, edges, bodies, records }
  }

  private header(value: Json): void {
    const { legate, version, rootId, hash } = fieldsOf(value)
    if (legate !== FORMAT || typeof rootId !== 'string' || typeof hash !== 'string') {
      throw this.wrong('It is not the first line of an exported tree.')
    }
    if (version !== VERSION) throw this.wrong(`It is of format ${String(version)}; this version reads ${VERSION}.`)
    this.rootId = rootId
    this.hash = hash
  }

  private item(value: readonly Json[], text: string): void {
    const [kind] = value
    if (kind === 'commit') this.commit(fieldsOf(value[1] ?? null))
    else if (kind === 'events') this.events(text)
    else if (kind === 'row') this.row(value, text)
    else if (kind === 'edge') this.edge(value)
    else if (kind === 'body') this.body(value)
    else throw this.wrong('It is no line of an exported tree.')
  }

  private commit({ kind, at, seq, marks, hash }: Fields): void {
    const isRight = typeof kind === 'string' && typeof marks === 'string' && typeof hash === 'string'
    if (!isRight || !Number.isFinite(at) || !Number.isInteger(seq)) throw this.wrong('It is no commit.')
    this.record = { kind, at: Number(at), seq: Number(seq), marks, hash }
  }

  private events(text: string): void {
    if (this.record === undefined) throw this.wrong('Events come after their commit.')
    const { kind, at, seq, marks, hash } = this.record
    this.records.push({ kind, at, seq, events: text.slice('["events",'.length, -1), marks, hash })
    this.record = undefined
  }

  private row(value: readonly Json[], text: string): void {
    const [, letter, turnId = null, row] = value
    const before = `["row","${String(letter)}",${JSON.stringify(turnId)},`
    const isRight = typeof letter === 'string' && letter in NAMES && text.startsWith(before)
    const id = isRight ? fieldsOf(row ?? null)[NAMES[letter as RowLetter]] : undefined
    if (typeof id !== 'string' || (turnId !== null && typeof turnId !== 'string')) throw this.wrong('It is no row.')
    this.rows.push({ letter: letter as RowLetter, id, turnId, text: text.slice(before.length, -1) })
  }

  private edge([, conversationId, from, to, type]: readonly Json[]): void {
    const isRight = [conversationId, from, to].every((id) => typeof id === 'string') && TYPES.includes(String(type))
    if (!isRight || this.rootId === undefined) throw this.wrong('It is no edge.')
    const ends = { from: String(from), to: String(to), type: type as EdgeType }
    this.edges.push({ rootId: this.rootId, conversationId: String(conversationId), ...ends })
  }

  private body([, hash, text]: readonly Json[]): void {
    if (typeof text !== 'string' || hash !== sha256(text)) throw this.wrong('The text has another hash than it says.')
    this.bodies.push({ hash, text })
  }

  private end(value: Json): void {
    const { end, lines } = fieldsOf(value)
    if (end !== this.hash || lines !== this.lines || this.records.at(-1)?.hash !== this.hash) {
      throw this.wrong(`It says that there were ${String(lines)} lines. Some are missing, or were changed.`)
    }
    this.isAtEnd = true
  }

  private wrong(why: string): InputError {
    const message = `Line ${this.lines} of the export cannot be taken: ${why.replace(/\.?$/, '.')} Nothing was written; export the tree again.`
    return new InputError('invalid_input', message, { details: { line: this.lines } })
  }
}

type Fields = { readonly [key: string]: Json }

/** The most characters of one line: more would hold up all other work while they are read. */
const MOST_OF_LINE = 16_000_000
const LIMITS = { ...OWN_TEXT, maxDepth: 200 }
const NAMES = { c: 'conversation', t: 'turn', n: 'node', l: 'link' } as const
const TYPES = ['sequence', 'dependency', 'branch']

function fieldsOf(value: Json): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

/** Finds every part of a tree that differs from its commits. */
export function verifyTree(tree: WholeTree): Finding[] {
  const { rootId, records } = tree
  const written = new CommittedRows(rootId)
  return [...brokenLinks(rootId, records), ...written.read(records), ...written.holdAgainst(tree)]
}

/** Finds records that do not follow from the one before. */
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

/** The versions of a row that its commits wrote. */
interface Versions {
  count: number
  last: string
  readonly hashes: Set<string>
}

/** The rows and edges that the records list. */
class CommittedRows {
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
    // Each commit adds one version: a row that was put back has fewer versions than commits.
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

  /** `isShared`: several rows have ids with this ending, so any of their versions counts. */
  private wrong(key: string, hash: string, isShared: boolean): RowFault | undefined {
    const versions = this.rows.get(key)
    if (versions === undefined) return ['unknown_row', 'was written by no commit']
    const isKnown = versions.hashes.has(hash)
    if (versions.last === hash || (isShared && isKnown)) return undefined
    if (isKnown) return ['altered_row', 'is an older version than the last that was written']
    return ['altered_row', 'is not what was written']
  }

  private found([type, what]: RowFault, { letter, id }: WrittenRow): Finding {
    const subject = SUBJECTS[letter]
    return finding(type, placeOf(subject, this.rootId, id), `The ${subject} ${id} ${what}.`)
  }
}

const PUT_BACK = ['altered_row', 'was put back to an older version, and written again since'] as const

type RowFault = readonly [type: 'altered_row' | 'unknown_row', what: string]

const SUBJECTS = { c: 'conversation', t: 'turn', n: 'node', l: 'link' } as const

function placeOf(subject: FindingPlace['subject'], rootId: Id, id: string): FindingPlace {
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
