import { Slices } from '../../core/base/clock.ts'
import { sha256 } from '../../core/base/hash.ts'
import type { Edge, Id, Node } from '../../core/graph/rows.ts'
import { type Finding, finding, type VerifyReport, type WrittenRow } from '../../core/store/archive.ts'
import {
  COMMITS_PER_TREE,
  ownQueues,
  type PackedRow,
  pushConversation,
  pushLink,
  pushNode,
  pushTurn,
  type SqlValue,
  toConversation,
  toLink,
  toNode,
  turnSlot,
} from '../../core/store/codec/rows.ts'
import { verifyTree } from '../../core/store/codec/tree-text.ts'
import { isWhole, readStones, strayIds } from './beside/stones.ts'
import { type Connection, columnText, type SqlRow } from './driver.ts'
import { brokenStretches } from './marks.ts'
import { type ReadTree, STRAY_OWNED, wronglyOwned } from './owners.ts'
import { readConversation } from './remove.ts'
import { writersOf } from './seals.ts'
import {
  BODY,
  edgesIn,
  type FileRow,
  type FileSpan,
  FoundTrees,
  findTrees,
  headsIn,
  namedIn,
  readRecords,
  readSpan,
  type TreePlace,
  treeByLog,
  tryParse,
  writtenRow,
} from './tree.ts'

/** Compares one tree, or the whole file, with its log of commits. */
export function verifySqlite(db: Connection, rootId?: Id): VerifyReport {
  const verifier = new Verifier(db)
  let isOver: boolean | undefined = false
  for (const parts = rootId === undefined ? verifier.all() : verifier.one(rootId); !isOver; ) isOver = parts.next().done
  return verifier
}

/**
 * Compares the whole file with its log, and lets other work go on meanwhile. The connection must show one moment of the file until the
 * end.
 */
export async function verifyInSlices(db: Connection): Promise<VerifyReport> {
  const verifier = new Verifier(db)
  const slices = new Slices()
  for (const _ of verifier.all()) {
    const turn = slices.next()
    if (turn !== undefined) await turn
  }
  return verifier
}

class Verifier implements VerifyReport {
  readonly findings: Finding[] = []
  rows = 0
  commits = 0
  private readonly db: Connection
  private readonly trees = new Set<number>()

  constructor(db: Connection) {
    this.db = db
  }

  *one(rootId: Id): Generator<void> {
    const { byRoot, lost } = findTrees(this.db, rootId)
    for (const n of lost) yield this.lost(n)
    yield this.tree(rootId, byRoot.get(rootId) ?? { spans: [], tree: treeByLog(this.db, rootId) })
  }

  /** Stops after each tree, and after each row of other tables. */
  *all(): Generator<void> {
    const found = new FoundTrees()
    for (const head of headsIn(this.db)) yield found.take(head)
    for (const n of found.lost) yield this.lost(n)
    for (const [rootId, { spans, tree }] of found.byRoot) {
      yield this.tree(rootId, { spans, tree: tree ?? treeByLog(this.db, rootId) })
    }
    yield* this.rest()
  }

  /** Checks everything outside of trees: texts, stray rows, and the pages of the file. */
  private *rest(): Generator<void> {
    for (const [name] of this.db.each(BODIES)) yield this.body(columnText(name))
    for (const [tree] of this.db.each(LOGS)) yield this.log(Number(tree))
    for (const row of this.db.each(KEYS)) yield this.key(row)
    for (const sql of [STRAY_SEALS, STRAY_STRETCHES, STRAY_OWNED]) {
      for (const [n] of this.db.each(sql)) yield this.stray(Number(n))
    }
    for (const [tree, name] of this.db.each(STRAY_USES)) {
      const hash = columnText(name)
      yield this.put('altered_index', { id: hash, rootId: null }, `No text ${hash} of a tree ${tree} is stored.`)
    }
    yield this.tombstones()
    const [said] = this.db.first('PRAGMA integrity_check') ?? []
    if (said !== 'ok') this.put('unreadable', { id: 'file', rootId: null }, `The file is damaged: ${said}`)
  }

  private body(hash: string): void {
    const [bytes] = this.db.first(BODY, [hash]) ?? []
    if (bytes instanceof Uint8Array && sha256(Buffer.from(bytes).toString('utf8')) === hash) return
    const place = { id: hash, rootId: null }
    this.put('altered_body', place, `The text ${hash} is not what was written: it has another hash.`)
  }

  private log(tree: number): void {
    if (this.trees.has(tree)) return
    this.put('broken_chain', { id: `tree ${tree}`, rootId: null }, `The log has commits of a tree that is not there.`)
  }

  /** Names a key that leads nowhere, or to a row which has another name. */
  private key([name, letters, n, isThere, data]: SqlRow): void {
    const [id, slot] = [columnText(name), columnText(letters)]
    const place = { id, rootId: null }
    if (isThere !== 1) return this.put('altered_index', place, `The key ${slot} of ${id} leads nowhere.`)
    const packed = tryParse(columnText(data))
    // A row that cannot be read has its own finding.
    if (packed === null || keysOf(packed, Number(n)).some((key) => key[0] === id && key[1] === slot)) return
    const message = `The key ${slot} of ${id} leads to a row of another name: nobody wrote it.`
    this.put('altered_index', place, message)
  }

  private stray(n: number): void {
    this.put('altered_index', { id: `row ${n}`, rootId: null }, `Row ${n} of the file was written and is not there.`)
  }

  /** The first row of a span cannot be read, so the owner of the others is unknown. */
  lost(n: number): void {
    this.put('altered_row', { id: `row ${n}`, rootId: null }, `Row ${n} of the file cannot be read.`)
  }

  tree(rootId: Id, { spans, tree }: TreePlace): void {
    const records = tree === undefined ? [] : readRecords(this.db, tree)
    if (tree !== undefined) this.trees.add(tree)
    this.commits += records.length
    records.forEach(({ number, rootId: named }, at) => {
      if (number === at + 1 && named === (at === 0 ? rootId : null)) return
      const message = `Commit ${at + 1} of the tree ${rootId} has another place or name than it had.`
      this.put('broken_chain', { id: `${rootId} ${at + 1}`, rootId }, message)
    })
    const rows: WrittenRow[] = []
    const edges = new Map<string, { readonly edge: Edge; count: number }>()
    const read = spans.map((n) => readSpan(this.db, n))
    if (tree !== undefined) this.seals(read, rootId, writersOf(read, records), tree)
    if (tree !== undefined) this.owned({ rootId, tree, spans: read })
    const owner = read.flatMap((span) => readConversation(span) ?? []).find(({ id }) => id === rootId)?.owner
    for (const span of read) {
      this.span(span, { rootId, owner, rows, edges })
      if (tree !== undefined) this.uses(span, { rootId, tree })
    }
    for (const { edge, count } of edges.values()) {
      if (count === 0) continue
      const message = `The ${edge.type} edge from ${edge.from} to ${edge.to} is known to one of its turns only.`
      this.put('altered_index', { id: `${edge.from} -> ${edge.to}`, rootId }, message)
    }
    this.rows += rows.length
    const found = [...edges.values()].map(({ edge }) => edge)
    this.findings.push(...verifyTree({ rootId, rows, edges: found, bodies: [], records }))
  }

  private tombstones(): void {
    for (const stone of readStones(this.db)) {
      if (isWhole(this.db, stone)) continue
      const { n } = stone
      this.put('altered_row', { id: `tombstone ${n}`, rootId: null }, `The tombstone ${n} is not what was written.`)
    }
    for (const id of strayIds(this.db)) {
      this.put('altered_index', { id, rootId: null }, `It is said that ${id} was deleted, and no tombstone is there.`)
    }
  }

  private span(span: FileSpan, found: FoundRows): void {
    for (const row of span.rows) this.row(row, span, found)
    for (const { isShared, ...edge } of edgesIn(span)) {
      const key = `${edge.from} ${edge.to} ${edge.type}`
      const known = found.edges.get(key)
      if (known !== undefined) known.count--
      else found.edges.set(key, { edge, count: isShared ? 1 : 0 })
    }
  }

  /** Checks that each row names the commit that wrote it last, and that each span has its number of rows. */
  private seals(spans: readonly FileSpan[], rootId: Id, writers: ReadonlyMap<number, number>, tree: number): void {
    for (const { rows } of spans) {
      const first = rows[0]?.n ?? 0
      for (const { n, written } of rows) {
        const writer = writers.get(n)
        // A row that no commit wrote gets its own finding.
        if (writer === undefined || written[0] === tree * COMMITS_PER_TREE + writer) continue
        const message = `Row ${n} of the file is said to be of another commit than the one that wrote it.`
        this.put('altered_index', { id: `row ${n}`, rootId }, message)
      }
      const [by] = this.db.first('SELECT writer FROM seals WHERE n = ?', [first]) ?? []
      const isOfTree = Math.floor(Number(by) / COMMITS_PER_TREE) === tree
      if (!isOfTree || rows[0]?.written[1] !== (rows.at(-1)?.n ?? 0) - first + 1) {
        const message = `What is said of the rows of the file from ${first} on, whose and how many, is not so.`
        this.put('altered_index', { id: `row ${first}`, rootId }, message)
      }
      for (const n of brokenStretches(this.db, first)) {
        const message = `The rows of the file from ${n} on are not what they were sealed as.`
        this.put('altered_index', { id: `row ${n}`, rootId }, message)
      }
    }
  }

  /** Checks that lists by owner, agent and state have the tree as its rows say. */
  private owned(place: Pick<ReadTree, 'rootId' | 'tree' | 'spans'>): void {
    for (const n of wronglyOwned(this.db, { ...place, conversationIn: readConversation, nodesIn })) {
      const message = `The rows of the file from ${n} on are not listed as they should be, by owner, agent or state.`
      this.put('altered_index', { id: `row ${n}`, rootId: place.rootId }, message)
    }
  }

  /** Checks that each body is registered for the trees that name it: else it could be deleted with another tree. */
  private uses(span: FileSpan, { rootId, tree }: { rootId: Id; tree: number }): void {
    for (const hash of namedIn(span)) {
      if (this.db.first('SELECT 1 FROM uses WHERE tree = ? AND hash = ?', [tree, hash]) !== undefined) continue
      this.put('altered_index', { id: hash, rootId }, `It is not known that the tree ${rootId} needs the text ${hash}.`)
    }
  }

  private row(row: FileRow, span: FileSpan, { rootId, owner, rows }: FoundRows): void {
    const { n, packed, columns } = row
    const written = writtenRow(row, span.turn?.id ?? null)
    if (written !== null) {
      rows.push(written)
      this.index(row, span, { written, rootId, owner })
    } else if (packed === null || !('edges' in packed) || Object.keys(packed).length > 1) {
      this.put('altered_row', { id: `row ${n}`, rootId }, `Row ${n} of the file cannot be read.`)
    } else {
      if (columns.every((value) => value === null)) return
      this.put('altered_index', { id: `row ${n}`, rootId }, `Row ${n} is found as if it were no edges.`)
    }
  }

  /** Checks that the columns and keys of a row agree with its text. */
  private index(
    row: FileRow,
    span: FileSpan,
    { written, rootId, owner }: TreeOwner & { readonly written: WrittenRow },
  ): void {
    const { id } = written
    const isKept = keysOf(row.packed, row.n).every(
      (key) => this.db.first('SELECT n FROM keys WHERE id = ? AND slot = ?', key)?.[0] === row.n,
    )
    const right = columnsOf(row.packed, span, owner)
    if (isKept && (right === null || right.every((value, at) => value === row.columns[at]))) return
    const message = `What the row ${id} is found by is not what the row says.`
    this.put('altered_index', { id, rootId }, message)
  }

  private put(
    type: 'altered_row' | 'altered_index' | 'altered_body' | 'broken_chain' | 'unreadable',
    { id, rootId }: { id: string; rootId: Id | null },
    message: string,
  ): void {
    const subject = SUBJECTS[type]
    this.findings.push(finding(type, { subject, id, rootId, conversationId: null }, message))
  }
}

interface TreeOwner {
  readonly rootId: Id
  /** Undefined where the root cannot be read. */
  readonly owner: string | null | undefined
}

interface FoundRows extends TreeOwner {
  readonly rows: WrittenRow[]
  /** `count`: the number of further spans that must have it. */
  readonly edges: Map<string, { readonly edge: Edge; count: number }>
}

const SUBJECTS = {
  altered_row: 'store',
  altered_index: 'store',
  altered_body: 'body',
  broken_chain: 'commit',
  unreadable: 'store',
} as const

const BODIES = 'SELECT CAST(hash AS BLOB) FROM bodies'
const LOGS = 'SELECT DISTINCT n / 16777216 FROM commits'
const KEYS = `SELECT CAST(keys.id AS BLOB), CAST(keys.slot AS BLOB), keys.n, rows.n IS NOT NULL,
  iif(typeof(data) = 'text', CAST(data AS BLOB), NULL) FROM keys LEFT JOIN rows ON rows.n = keys.n`
const STRAY_USES = `SELECT tree, CAST(hash AS BLOB) FROM uses WHERE NOT EXISTS (SELECT 1 FROM bodies WHERE bodies.hash = uses.hash)
  OR NOT EXISTS (SELECT 1 FROM rows WHERE n = tree * 1048576)`
const STRAY_SEALS = 'SELECT seals.n FROM seals LEFT JOIN rows ON rows.n = seals.n WHERE rows.n IS NULL'
const STRAY_STRETCHES = 'SELECT s.n FROM stretches AS s LEFT JOIN rows ON rows.n = s.n WHERE rows.n IS NULL'
/** The keys that a row must be found by. */
function keysOf(packed: PackedRow | null, n: number): readonly (readonly [id: string, slot: string])[] {
  if (packed === null || 'edges' in packed) return []
  if ('conversation' in packed) return [[packed.conversation, 'c']]
  if ('node' in packed) return [[packed.node, 'n']]
  if ('link' in packed) return [[packed.link, 'l']]
  const { turn, laneId = packed.conversationId ?? '', ordinal = 0 } = packed
  return [
    [turn, 't'],
    [laneId, turnSlot(ordinal, n)],
  ]
}

/** The columns queue, due and mark according to the row; null when it cannot be read. */
function columnsOf(
  packed: PackedRow | null,
  { turn }: FileSpan,
  owner: TreeOwner['owner'],
): readonly SqlValue[] | null {
  const values: SqlValue[] = []
  try {
    if (packed === null || 'edges' in packed) return null
    if ('conversation' in packed) pushConversation(values, toConversation(packed))
    else if (turn === null) return null
    else if ('turn' in packed) pushTurn(values, turn)
    else if ('node' in packed) pushNode(values, toNode(packed, turn))
    else pushLink(values, toLink(packed, turn))
  } catch {
    return null
  }
  ownQueues(values, owner)
  return values.slice(1, 4)
}

/** The nodes of a turn that can be read. */
function nodesIn({ rows, turn }: FileSpan): { readonly n: number; readonly node: Node }[] {
  return rows.flatMap(({ n, packed }) => {
    if (turn === null || packed === null || !('node' in packed)) return []
    try {
      return [{ n, node: toNode(packed, turn) }]
    } catch {
      return []
    }
  })
}
