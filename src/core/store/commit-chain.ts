// The record of a tree: what each commit wrote, as marks of rows and one chain of hashes.
//
// Owns:      the form of marks, and the hash of a commit.
// Called by: the stores that keep a record, exports, and whoever compares rows with what was written.
// Must stay true:
//   - The same rows give the same marks in every version and in every store, PostgreSQL included.

/// <reference lib="es2024.string" />

import { shortSha256 } from '../base/hash.ts'
import type { Edge, Id } from '../graph/rows.ts'

/**
 * One commit of a tree in the tree's record. `marks` lists the rows it wrote, each with a hash of its text; `hash` covers all
 * of it and the hash of the commit before. Stored rows can be compared with it later.
 */
export interface ChainRecord {
  readonly kind: string
  readonly at: number
  /** The tree's sequence after the commit. */
  readonly seq: number
  /** Its events, as JSON. */
  readonly events: string
  readonly marks: string
  readonly hash: string
}

/** conversation, turn, node, link */
export type RowLetter = 'c' | 't' | 'n' | 'l'

const ID = 8
const HASH = 16
const ROW_MARK = 1 + ID + HASH

/** The mark of one row. `text` is its stored form; for nodes and links, whose text does not name it, the turn comes first. */
export function rowMark(letter: RowLetter, id: Id, text: string): string {
  return `${letter}${shortened(id)}${shortSha256(text).slice(0, HASH)}`
}

export function memberText(turnId: Id, text: string): string {
  return `${turnId}\n${text}`
}

export function edgeMark({ from, to, type }: Pick<Edge, 'from' | 'to' | 'type'>): string {
  return `e${shortSha256(`${from} ${to} ${type}`).slice(0, HASH)}`
}

/**
 * Marks the edges of each turn in a commit, for turns with more than one edge, so that a single edge cannot pass for all of
 * them. An edge between two turns belongs to both. Commits of older stores lack these marks.
 */
export function turnEdgesMarks(edges: readonly Edge[], turnOf: (nodeId: Id) => Id): string {
  const byTurn = new Map<Id, Set<Edge>>()
  for (const edge of edges) {
    for (const turnId of [turnOf(edge.from), turnOf(edge.to)]) {
      const found = byTurn.get(turnId)
      if (found === undefined) byTurn.set(turnId, new Set([edge]))
      else found.add(edge)
    }
  }
  if (byTurn.size < 2) return edges.length < 2 ? '' : ALL_OF_ONE_TURN
  return [...byTurn].map(([turnId, found]) => turnEdgesMark(turnId, [...found].map(edgeMark))).join('')
}

export function turnEdgesMark(turnId: Id, marks: readonly string[]): string {
  const text = [turnId, ...[...marks].sort()].join('\n')
  return `${TURN_EDGES}${shortened(turnId)}${shortSha256(text).slice(0, HASH)}`
}

const TURN_EDGES = 'x'
const ALL_OF_ONE_TURN = TURN_EDGES.padEnd(ROW_MARK, '.')

/** True for a mark of a turn's edges, which belongs to no row. */
export function isOfTurnEdges({ key }: Mark): boolean {
  return key.startsWith(TURN_EDGES)
}

/** The end of an id, where ids differ. It never begins with half a surrogate pair, which would not survive a file. */
function shortened(id: Id): string {
  return (id.length >= ID ? id.slice(-ID) : id.padStart(ID, '.')).toWellFormed()
}

export function chainHash(before: string, { kind, at, seq, events, marks }: Omit<ChainRecord, 'hash'>): string {
  return shortSha256(`${before}\n${kind} ${at} ${seq}\n${marks}\n${events}`)
}

export interface Mark {
  /** The row: letter and end of the id; for an edge, the whole mark. */
  readonly key: string
  readonly hash: string
}

/** Undefined for a text that is not a list of marks. */
export function readMarks(marks: string): Mark[] | undefined {
  const found: Mark[] = []
  for (let at = 0; at < marks.length; ) {
    const isEdge = marks[at] === 'e'
    const end = at + (isEdge ? 1 + HASH : ROW_MARK)
    if (end > marks.length) return undefined
    const mark = marks.slice(at, end)
    found.push(isEdge ? { key: mark, hash: mark } : readRowMark(mark))
    at = end
  }
  return found
}

export interface EdgeCount {
  readonly edgeCount: number
  readonly saysTurns: boolean
}

/** Counts the edges in trusted marks: it reads only the first letter of each. */
export function countEdges(marks: string): EdgeCount {
  let edgeCount = 0
  let saysTurns = false
  for (let at = 0; at < marks.length; ) {
    const isEdge = marks[at] === 'e'
    if (isEdge) edgeCount++
    else if (marks[at] === TURN_EDGES) saysTurns = true
    at += isEdge ? 1 + HASH : ROW_MARK
  }
  return { edgeCount, saysTurns }
}

export function readRowMark(mark: string): Mark {
  return { key: mark.slice(0, 1 + ID), hash: mark.slice(1 + ID) }
}
