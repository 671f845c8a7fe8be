import { sha256 } from '../../base/hash.ts'
import type { Body } from '../../graph/rows.ts'
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
} from '../commit-chain.ts'
import { edgesIn } from './replica.ts'
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
    const own = edgesIn(text, { rootId: '', conversationId: conversationId ?? '' }).map(edgeMark)
    if (!own.every((mark) => marks.includes(mark))) return false
    return marks.includes(turnEdgesMark(turnId ?? '', own)) || countEdges(marks).edgeCount === own.length
  } catch {
    return false
  }
}

/** True where the rows of a whole tree are all that its commits wrote, each as the last of them wrote it. */
export function isComplete(rows: readonly LoadedRow[], marks: ReadonlyMap<number, string>): boolean {
  const written = new Map<string, number>()
  for (const [n, text] of marks) {
    const ofRows = (readMarks(text) ?? []).filter((mark) => !isOfTurnEdges(mark))
    // An edge is written once, or again as it was.
    for (const { key } of ofRows) written.set(key, key.startsWith('e') ? 0 : Math.max(n, written.get(key) ?? 0))
  }
  const found = new Map<string, number>()
  for (const row of rows) {
    for (const key of keysOf(row)) found.set(key, row.letter === 'e' ? 0 : Math.max(row.n, found.get(key) ?? 0))
  }
  return found.size === written.size && [...written].every(([key, n]) => found.get(key) === n)
}

function keysOf({ letter, id, conversationId, text }: LoadedRow): readonly string[] {
  if (letter !== 'e') return [readRowMark(rowMark(letter as RowLetter, id, '')).key]
  return edgesIn(text, { rootId: '', conversationId: conversationId ?? '' }).map(edgeMark)
}

/** A text is named by its hash; a hand-made commit may choose another name. */
export function isNamedRight({ hash, text }: Body): boolean {
  return !IS_HASH.test(hash) || sha256(text) === hash
}

const IS_HASH = /^[0-9a-f]{64}$/
