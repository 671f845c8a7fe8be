// Trees as they are loaded from the database.
//
// Owns:      the statements that read rows of trees, and the check that each row is what its last commit wrote.
// Called by: the transport.
// Must stay true:
//   - What is loaded of a tree is of one moment.
//   - Trees that are wanted at the same moment are loaded with one statement. One that was changed from outside fails alone.

import { isLegateError, type StoreError } from '../../core/base/error.ts'
import type { Body, Id } from '../../core/graph/rows.ts'
import { tampered } from '../../core/store/not-found.ts'
import { AT_ONE_MOMENT, isIn, longData, marksInText, readTableTree, verifyTables } from './archive-tree.ts'
import type { Database } from './connection/database.ts'
import type { PgRow } from './connection/driver.ts'
import { escaped, idOf, keyOf, laneKey, unescaped } from './escape.ts'
import { agree, isComplete, isNamedRight, type LoadedRow } from './replica/agreement.ts'
import type { Head, TreePart, WantedRows } from './replica/transport.ts'

const HEADS = `SELECT h.t, h.n, h.seq FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (root, at)
  LEFT JOIN @.trees h ON h.root_id = asked.root ORDER BY at`
const ORDER = `strpos('ctnle', letter::text), x.ordinal, x.n, x.id`
const COLUMNS = 'id, letter, version, n, seq, ordinal, span, conversation_id, data, edges, edges_n, edges_seq'
const FOUND = `h.t, h.n, h.seq, x.letter::text, x.id, x.version, x.n, x.seq, x.span, x.conversation_id, x.data,
  x.edges, x.edges_n, x.edges_seq`
/** The marks that commits have of their rows (m), and the texts that they brought (b). */
const beside = (ofCommits: string, ofBodies: string) => `
    UNION ALL SELECT NULL, 'm', 0, n, seq, NULL, NULL, NULL, marks, NULL, 0, 0, NULL, NULL FROM @.commits WHERE t = h.t AND ${ofCommits}
    UNION ALL SELECT NULL, 'b', 0, n, 0, NULL, NULL, NULL, '', NULL, 0, 0, hash, data FROM @.bodies WHERE t = h.t AND ${ofBodies}`
/** All rows of trees, or none of a tree that has more than wanted. */
const ROWS = `SELECT at, ${FOUND}, x.hash, x.body
  FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS asked (root, most, at) JOIN @.trees h ON h.root_id = asked.root
  CROSS JOIN LATERAL (
    SELECT count(*) <= asked.most AS yes FROM (SELECT 1 FROM @.rows r WHERE r.t = h.t LIMIT asked.most + 1) c) few
  LEFT JOIN LATERAL (
    SELECT ${COLUMNS}, NULL AS hash, NULL::bytea AS body FROM @.rows WHERE t = h.t AND few.yes${beside('few.yes', 'few.yes')}) x
  ON true ORDER BY at, ${ORDER}`
/** The rows that later commits have written: they name them, or all rows are looked at. */
const NEWER = `SELECT at, ${FOUND}, x.hash, x.body
  FROM unnest($1::bytea[], $2::bigint[], $3::int[], $4::int[]) WITH ORDINALITY AS asked (root, tree, since, after, at)
  JOIN @.trees h ON h.root_id = asked.root AND h.t = asked.tree
  CROSS JOIN LATERAL (SELECT coalesce(bool_or(ids IS NULL), false) AS yes FROM @.commits
    WHERE t = h.t AND seq >= asked.after AND n > asked.since) few
  LEFT JOIN LATERAL (
    SELECT ${prefixed('r')}, NULL AS hash, NULL::bytea AS body FROM (
      SELECT DISTINCT w.x FROM @.commits c, unnest(c.ids) AS w (x)
        WHERE c.t = h.t AND c.seq >= asked.after AND c.n > asked.since AND NOT few.yes) named
      JOIN @.rows r ON r.id = substr(named.x, 2) AND r.letter = convert_from(substr(named.x, 1, 1), 'UTF8')::"char" AND r.t + 0 = h.t
    UNION ALL SELECT ${COLUMNS}, NULL, NULL FROM @.rows WHERE t = h.t AND n > asked.since AND few.yes
    ${beside('seq >= asked.after AND n > asked.since', 'n > asked.since')}) x
  ON true ORDER BY at, ${ORDER}`
/** The tree, and its number for other tables. */
const HEAD = 'h AS (SELECT t, n, seq FROM @.trees WHERE root_id = $1)'
const TREE = '(SELECT t FROM h)'
/**
 * Turns by id, by what they hold, of lanes and open ones; with them, those that called them. Then all their rows. Each row is looked up
 * by itself (`+ 0`, `OFFSET 0`): the planner takes a tree for small, and would read all of a large one.
 */
const FIND = `WITH RECURSIVE ${HEAD},
  named AS (SELECT id, letter, span FROM @.rows WHERE id = ANY ($2) AND letter <> 'e' AND t + 0 = ${TREE}),
  turns (id) AS (
    (SELECT f.id FROM unnest($3::bytea[], $4::bigint[], $5::bigint[]) AS q (lane, last, most) CROSS JOIN LATERAL (
      SELECT id FROM @.rows WHERE t = ${TREE} AND letter = 't' AND span = q.lane AND ordinal <= q.last
        ORDER BY ordinal DESC LIMIT q.most) f
    UNION ALL SELECT CASE WHEN letter = 't' THEN id ELSE span END FROM named WHERE letter <> 'c'
    UNION ALL SELECT id FROM @.rows WHERE $6 AND queue IN ('t', 'u') AND t = ${TREE})
    UNION SELECT l.span FROM turns JOIN @.rows l ON l.id = turns.id AND l.letter = 'l' AND l.t + 0 = ${TREE}),
  of_turns AS (SELECT ${prefixed('r')} FROM turns JOIN @.rows r ON r.id = turns.id AND r.letter = 't' AND r.t + 0 = ${TREE})
  SELECT ${FOUND} FROM h LEFT JOIN (
    SELECT r.* FROM turns CROSS JOIN LATERAL (SELECT ${COLUMNS} FROM @.rows WHERE t = ${TREE} AND span = turns.id OFFSET 0) r
    UNION ALL SELECT * FROM of_turns
    UNION ALL SELECT ${prefixed('r')} FROM (SELECT conversation_id AS id FROM of_turns UNION SELECT id FROM named WHERE letter = 'c'
      UNION SELECT $1::bytea FROM h) c JOIN @.rows r ON r.id = c.id AND r.letter = 'c' AND r.t + 0 = ${TREE}) x
  ON true ORDER BY ${ORDER}`
const MARKS = `SELECT c.n, c.marks FROM unnest($2::int[], $3::int[]) AS q (seq, n)
  CROSS JOIN LATERAL (SELECT n, marks FROM @.commits WHERE t = $1 AND seq = q.seq AND n = q.n OFFSET 0) c`
const BODIES =
  'SELECT hash, data FROM @.bodies WHERE t = (SELECT t FROM @.trees WHERE root_id = $1) AND hash = ANY ($2)'

function prefixed(table: string): string {
  return COLUMNS.split(', ')
    .map((column) => `${table}.${column}`)
    .join(', ')
}

/** More than PostgreSQL takes as a limit of ours. */
const MOST = 2 ** 31 - 1
/** So many trees are loaded with one statement, and so many heads. */
const MOST_TREES = 16
const MOST_HEADS = 1_000

/** Called with the error for a tree that somebody else has changed. */
export type Altered = (rootId: Id, error: StoreError) => void

/** Rows, and the marks of the commits that wrote them. */
interface LoadedTree {
  readonly part: TreePart & { readonly rows: readonly LoadedRow[] | undefined }
  readonly marks: ReadonlyMap<number, string>
  /** True for all rows of a tree. */
  readonly isWhole: boolean
}

interface AskedRows {
  readonly rootId: Id
  readonly most: number
}

interface AskedNews {
  readonly rootId: Id
  readonly since: Head
}

/** Loads trees, and parts of them, from the database. */
export class TreeLoader {
  private readonly database: Database
  private readonly altered: Altered | undefined
  private readonly heads: Gathered<Id, Head | undefined>
  private readonly wholes: Gathered<AskedRows, LoadedTree | undefined>
  private readonly news: Gathered<AskedNews, LoadedTree | undefined>

  constructor(database: Database, altered: Altered | undefined) {
    this.database = database
    this.altered = altered
    this.heads = new Gathered(MOST_HEADS, (asked) => this.readHeads(asked))
    this.wholes = new Gathered(MOST_TREES, (asked) => this.readWholes(asked))
    this.news = new Gathered(MOST_TREES, (asked) => this.readNews(asked))
  }

  head(rootId: Id): Promise<Head | undefined> {
    return this.heads.ask(rootId)
  }

  /** A whole tree, or its head alone where it has more than `most` rows. */
  whole(rootId: Id, most: number): Promise<TreePart | undefined> {
    // Who wants all rows of a tree may get very many.
    const read = () => (most > MOST ? this.readLarge(rootId) : this.wholes.ask({ rootId, most }))
    return this.checked(rootId, read)
  }

  newer(rootId: Id, since: Head): Promise<TreePart | undefined> {
    return this.checked(rootId, () => this.news.ask({ rootId, since }))
  }

  find(rootId: Id, wanted: WantedRows): Promise<TreePart | undefined> {
    return this.checked(rootId, () => this.readSome(rootId, wanted))
  }

  async bodies(rootId: Id, hashes: readonly string[]): Promise<readonly Body[]> {
    return (await this.database.query(BODIES, [keyOf(rootId), hashes.map(escaped)])).map(bodyOf)
  }

  /** Gives only rows that their commits wrote. A difference counts when the whole tree shows it at one moment. */
  private async checked(rootId: Id, read: () => Promise<LoadedTree | undefined>): Promise<TreePart | undefined> {
    const { database } = this
    for (;;) {
      const loaded = await read()
      if (loaded === undefined || isRight(loaded)) return loaded?.part
      const tree = await database.transaction(AT_ONE_MOMENT, (query) => readTableTree(query, rootId))
      const [wrong] = tree === undefined ? [] : verifyTables(tree)
      if (wrong !== undefined) {
        const error = tampered(wrong.message.replace(/\.$/, ''), { rootId, path: database.address })
        this.altered?.(rootId, error)
        throw error
      }
      if (tree !== undefined && isIn(tree, loaded.part)) return loaded.part
    }
  }

  private async readHeads(asked: readonly Id[]): Promise<readonly (Head | undefined)[]> {
    const found = await this.database.query(HEADS, [asked.map(keyOf)])
    return found.map((row) => (row[0] === null ? undefined : headInRow(row)))
  }

  private async readWholes(asked: readonly AskedRows[]): Promise<readonly (LoadedTree | undefined)[]> {
    const values = [asked.map(({ rootId }) => keyOf(rootId)), asked.map(({ most }) => most)]
    const found = byPlace(await this.database.query(ROWS, values))
    return asked.map(({ rootId }, at) => wholeOf(rootId, found.get(at + 1) ?? []))
  }

  private async readLarge(rootId: Id): Promise<LoadedTree | undefined> {
    const found = byPlace(await this.database.scan(ROWS, [[keyOf(rootId)], [MOST]]))
    return wholeOf(rootId, found.get(1) ?? [])
  }

  private async readNews(asked: readonly AskedNews[]): Promise<readonly (LoadedTree | undefined)[]> {
    const values = [
      asked.map(({ rootId }) => keyOf(rootId)),
      asked.map(({ since }) => since.tree),
      asked.map(({ since }) => since.n),
      asked.map(({ since }) => since.seq),
    ]
    const found = byPlace(await this.database.query(NEWER, values))
    return asked.map(({ rootId, since }, at) =>
      loadedOf(found.get(at + 1) ?? [], { rootId, since: since.n, marks: [] }),
    )
  }

  private async readSome(rootId: Id, wanted: WantedRows): Promise<LoadedTree | undefined> {
    const found = await this.database.query(FIND, wantedValues(rootId, wanted))
    const [tree] = found[0] ?? []
    if (tree === undefined) return undefined
    const writers = new Map<number, number>()
    for (const [, , , , , , n, seq, , , , , edgesN, edgesSeq] of found) {
      writers.set(Number(n), Number(seq))
      if (edgesN !== null) writers.set(Number(edgesN), Number(edgesSeq))
    }
    const marks = await this.database.query(MARKS, [tree, [...writers.values()], [...writers.keys()]])
    return loadedOf(found, { rootId, since: 0, marks })
  }
}

/** Rows by the place of their tree in the question. */
function byPlace(found: readonly PgRow[]): ReadonlyMap<number, readonly PgRow[]> {
  const places = new Map<number, PgRow[]>()
  for (const [at, ...row] of found) {
    const known = places.get(Number(at))
    if (known === undefined) places.set(Number(at), [row])
    else known.push(row)
  }
  return places
}

function isRight({ part, marks, isWhole }: LoadedTree): boolean {
  const { rows = [], bodies } = part
  return agree(rows, (n) => marks.get(n)) && bodies.every(isNamedRight) && (!isWhole || isComplete(rows, marks))
}

function wholeOf(rootId: Id, found: readonly PgRow[]): LoadedTree | undefined {
  const [first] = found
  // A tree has at least its root.
  if (first?.[3] === null) {
    return { part: { head: headInRow(first), rows: undefined, bodies: [] }, marks: new Map(), isWhole: false }
  }
  const loaded = loadedOf(found, { rootId, since: 0, marks: [] })
  return loaded === undefined ? undefined : { ...loaded, isWhole: true }
}

function wantedValues(rootId: Id, { ids, lanes, open }: WantedRows): readonly unknown[] {
  const ranges = [
    lanes.map(({ laneId }) => laneKey(laneId)),
    lanes.map(({ last }) => last),
    lanes.map(({ limit }) => Math.min(limit, MOST)),
  ]
  return [keyOf(rootId), ids.map(keyOf), ...ranges, open]
}

interface LoadedFrom {
  readonly rootId: Id
  /** Edges of commits up to this one are there already. */
  readonly since: number
  /** Marks that were asked for. */
  readonly marks: readonly PgRow[]
}

/** Reads rows with their head, and what is beside them. */
function loadedOf(found: readonly PgRow[], { rootId, since, marks: more }: LoadedFrom): LoadedTree | undefined {
  const [first] = found
  if (first === undefined) return undefined
  const rows: LoadedRow[] = []
  const edges: LoadedRow[] = []
  const bodies: Body[] = []
  const marks = new Map(more.map(([n, text]) => [Number(n), String(text)]))
  for (const [, , , ...row] of found) {
    const [letter, , , n, , , , text, own, , , hash, body] = row
    if (letter === 'm') marks.set(Number(n), String(text))
    else if (letter === 'b') bodies.push(bodyOf([hash, body]))
    else if (letter !== null) rows.push(loadedRow(rootId, row))
    if (own !== null) edges.push(loadedEdges(rootId, row))
  }
  // Edges from before are there already, unless a later commit says that it wrote them.
  const written = [...marks.values()].join('')
  const isNew = ({ n, text }: LoadedRow) =>
    since === 0 || n > since || marksInText(text).some((mark) => written.includes(mark))
  const part = { head: headInRow(first), rows: [...rows, ...edges.filter(isNew)], bodies }
  return { part, marks, isWhole: false }
}

function bodyOf([hash, data]: PgRow): Body {
  return { hash: unescaped(String(hash)), text: (data as Buffer).toString('utf8') }
}

export function headInRow([tree, n, seq]: PgRow): Head {
  return { tree: Number(tree), n: Number(n), seq: Number(seq) }
}

/** The edges that a node came with. */
function loadedEdges(rootId: Id, [, key, version, , seq, span, conversation, , edges, n]: PgRow): LoadedRow {
  return loadedRow(rootId, ['e', key, version, n, seq, span, conversation, edges])
}

function loadedRow(rootId: Id, [letter, key, version, n, , span, conversation, data]: PgRow): LoadedRow {
  const isOfTurn = letter !== 'c' && letter !== 't'
  const id = letter === 'e' ? '' : idOf(key)
  return {
    letter: letter as LoadedRow['letter'],
    id,
    n: Number(n),
    turnId: isOfTurn ? idOf(span) : null,
    conversationId: letter === 'e' ? idOf(conversation) : null,
    text: longData([letter, key, version, span, data], rootId),
  }
}

/**
 * Asks for everything that is wanted in one turn of the event loop with one question: each costs a round trip. Where that fails, each is
 * asked for alone, unless the database is away.
 */
export class Gathered<Asked, Answer> {
  private readonly askAll: (asked: readonly Asked[]) => Promise<readonly Answer[]>
  private readonly most: number
  private waiting: WaitingQuestion<Asked, Answer>[] = []

  /** `askAll` answers at most `most` at once, in their order. */
  constructor(most: number, askAll: (asked: readonly Asked[]) => Promise<readonly Answer[]>) {
    this.most = most
    this.askAll = askAll
  }

  ask(asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // After everything that the same event has set off.
      if (this.waiting.length === 0) process.nextTick(() => this.send())
      this.waiting.push({ asked, resolve, reject })
    })
  }

  private send(): void {
    const { waiting } = this
    this.waiting = []
    for (let from = 0; from < waiting.length; from += this.most) this.sendLot(waiting.slice(from, from + this.most))
  }

  private sendLot(lot: readonly WaitingQuestion<Asked, Answer>[]): void {
    this.askAll(lot.map(({ asked }) => asked)).then(
      (answers) => {
        for (const [at, { resolve }] of lot.entries()) resolve(answers[at] as Answer)
      },
      (error: unknown) => {
        if (lot.length === 1 || isLegateError(error, 'store_busy')) for (const { reject } of lot) reject(error)
        else for (const one of lot) this.sendLot([one])
      },
    )
  }
}

interface WaitingQuestion<Asked, Answer> {
  readonly asked: Asked
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}
