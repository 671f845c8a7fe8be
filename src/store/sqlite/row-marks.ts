import type { Id } from '../../graph/rows.ts'
import { edgeMark, memberText, type RowLetter, rowMark } from '../tree-chain.ts'
import { type EdgeEnds, edgeType, type Packed, SPAN } from './rows.ts'
import type { SpanRow } from './span-text.ts'

/** The marks that commits have of rows. Rows of a turn do not say its id, and name its nodes by their places. */
export class RowMarks {
  private readonly turnId: Id
  private readonly idAt: (place: number) => Id

  constructor(turnId: Id, idAt: (place: number) => Id) {
    this.turnId = turnId
    this.idAt = idAt
  }

  /** A mark that no commit has, for what cannot be read. */
  of({ text, packed }: SpanRow): readonly string[] {
    if ('edges' in packed) return this.ofEdges(packed.edges)
    const { letter, id } = nameIn(packed)
    return [rowMark(letter, id, letter === 'n' || letter === 'l' ? memberText(this.turnId, text) : text)]
  }

  private ofEdges(edges: readonly EdgeEnds[]): readonly string[] {
    return Array.isArray(edges) && edges.length > 0 ? edges.map((ends) => this.ofEdge(ends)) : [NONE]
  }

  private ofEdge(ends: EdgeEnds): string {
    const [from, to, letter] = Array.isArray(ends) ? ends : ['', '', '']
    const type = edgeType(letter)
    return type === undefined ? NONE : edgeMark({ from: this.idOf(from), to: this.idOf(to), type })
  }

  private idOf(end: number | Id): Id {
    return typeof end === 'number' ? this.idAt(end) : String(end)
  }
}

const NONE = ' '

/** Of a whole span. */
export function marksIn(rows: readonly SpanRow[]): RowMarks {
  const head = rows[0]?.packed
  return new RowMarks(head !== undefined && 'turn' in head ? String(head.turn) : '', idsIn(rows))
}

/** By place; empty where none of the rows is a node. */
export function idsIn(rows: readonly SpanRow[]): (place: number) => Id {
  let ids: ReadonlyMap<number, Id> | undefined
  return (place) => {
    ids ??= new Map(rows.map(({ n, packed }) => [n % SPAN, 'node' in packed ? String(packed.node) : '']))
    return ids.get(place) ?? ''
  }
}

interface RowName {
  readonly kind: string
  readonly letter: RowLetter
  readonly id: Id
}

function nameIn(packed: Exclude<Packed, { readonly edges: unknown }>): RowName {
  if ('node' in packed) return { kind: 'node', letter: 'n', id: String(packed.node) }
  if ('link' in packed) return { kind: 'link', letter: 'l', id: String(packed.link) }
  if ('turn' in packed) return { kind: 'turn', letter: 't', id: String(packed.turn) }
  return { kind: 'conversation', letter: 'c', id: String(packed.conversation) }
}

/** As a sentence begins. */
export function nameOf({ n, packed }: SpanRow): string {
  if ('edges' in packed) return `Row ${n} of the file`
  const { kind, id } = nameIn(packed)
  return `The ${kind} ${id}`
}
