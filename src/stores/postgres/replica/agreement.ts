import { sha256 } from '../../../core/base/hash.ts'
import type { Body } from '../../../core/graph/rows.ts'
import {
  countEdges,
  edgeMark,
  isOfTurnEdges,
  memberText,
  type RowLetter,
  readMarks,
  readRowMark,
  rowMark,
  turnEdgesMark,
} from '../../../core/store/commit-chain.ts'
import { edgesInText } from './replica.ts'
import type { StoredRow } from './transport.ts'

/** A row, with its id and the number of the commit that wrote it last. */
export interface LoadedRow extends StoredRow {
  readonly id: string
  readonly n: number
}

/** True where each row is what its last commit wrote. `marksOf` gives the marks of a commit. */
export function agree(rows: readonly LoadedRow[], marksOf: (n: number) => string | undefined): boolean {
  return rows.every((row) => {
    const marks = marksOf(row.n)
    return marks !== undefined && (row.letter === 'e' ? edgesAgree(row, marks) : rowAgrees(row, marks))
  })
}

function rowAgrees({ letter, id, turnId, text }: LoadedRow, marks: string): boolean {
  const isMember = letter === 'n' || letter === 'l'
  return marks.includes(rowMark(letter as RowLetter, id, isMember ? memberText(turnId ?? '', text) : text))
}

/** All edges of the turn in this commit, and no others. */
function edgesAgree({ turnId, conversationId, text }: LoadedRow, marks: string): boolean {
  try {
    const own = edgesInText(text, { rootId: '', conversationId: conversationId ?? '' }).map(edgeMark)
    if (!own.every((mark) => marks.includes(mark))) return false
    return marks.includes(turnEdgesMark(turnId ?? '', own)) || countEdges(marks).edgeCount === own.length
  } catch {
    return false
  }
}

/** True where the rows of a whole tree are all that its commits wrote, each as the last of them wrote it. */
export function isComplete(rows: readonly LoadedRow[], marks: ReadonlyMap<number, string>): boolean {
  const found = newest(rows.map((row) => [row.n, keysOf(row)]))
  const written = newest([...marks].map(([n, text]) => [n, keysIn(text)]))
  return found.size === written.size && [...written].every(([key, n]) => found.get(key) === n)
}

/** The number of the last commit for each key; 0 for an edge, which is written once, or again as it was. */
function newest(keys: readonly (readonly [n: number, keys: readonly string[]])[]): ReadonlyMap<string, number> {
  const last = new Map<string, number>()
  for (const [n, own] of keys) {
    for (const key of own) last.set(key, key.startsWith('e') ? 0 : Math.max(n, last.get(key) ?? 0))
  }
  return last
}

function keysOf({ letter, id, conversationId, text }: LoadedRow): readonly string[] {
  if (letter !== 'e') return [readRowMark(rowMark(letter as RowLetter, id, '')).key]
  return edgesInText(text, { rootId: '', conversationId: conversationId ?? '' }).map(edgeMark)
}

function keysIn(marks: string): readonly string[] {
  return (readMarks(marks) ?? []).filter((mark) => !isOfTurnEdges(mark)).map(({ key }) => key)
}

/** A text is named by its hash; a hand-made commit may choose another name. */
export function isNamedRight({ hash, text }: Body): boolean {
  return !IS_HASH.test(hash) || sha256(text) === hash
}

const IS_HASH = /^[0-9a-f]{64}$/
