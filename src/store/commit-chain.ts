/// <reference lib="es2024.string" />

import { shortSha256 } from '../base/hash.ts'
import type { Edge, Id } from '../graph/rows.ts'

/**
 * One commit of a tree, as the record of the tree keeps it. `marks` says which rows it wrote, each with a hash of what was
 * written; `hash` covers all of it and the hash of the commit before. What is stored later can be held against it.
 */
export interface ChainRecord {
  readonly kind: string
  readonly at: number
  /** The tree's sequence after it. */
  readonly seq: number
  /** The events it told, as JSON. */
  readonly events: string
  readonly marks: string
  readonly hash: string
}

/** conversation, turn, node, link */
export type RowLetter = 'c' | 't' | 'n' | 'l'

const ID = 8
const HASH = 16
const ROW_MARK = 1 + ID + HASH

/** `text` is the row as it is stored; of nodes and links, which do not say it, with the turn they are of. */
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
 * Which edges of a commit each turn has: of more than one edge, which could be taken for all of them, and an edge between two
 * turns is of both. Commits of older stores do not say it.
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

/** Says which edges a turn has, and is of no row. */
export function isOfTurnEdges({ key }: Mark): boolean {
  return key.startsWith(TURN_EDGES)
}

/** Ids end in what makes them different. Half a character would not come back from a file as it is. */
function shortened(id: Id): string {
  return (id.length >= ID ? id.slice(-ID) : id.padStart(ID, '.')).toWellFormed()
}

export function chainHash(before: string, { kind, at, seq, events, marks }: Omit<ChainRecord, 'hash'>): string {
  return shortSha256(`${before}\n${kind} ${at} ${seq}\n${marks}\n${events}`)
}

export interface Mark {
  /** Whose it is: letter and end of the id; of an edge, the whole mark. */
  readonly key: string
  readonly hash: string
}

/** Undefined when they are not marks at all. */
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

/** Of marks that are taken as they are: it reads nothing but the first letter of each. */
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
