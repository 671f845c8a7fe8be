import type { Id } from '../../graph/rows.ts'
import { edgeMark, memberText, type RowLetter, rowMark, turnEdgesMark } from '../tree-chain.ts'
import { type EdgeEnds, edgeType, type Packed, SPAN } from './rows.ts'
import type { SpanRow } from './span-text.ts'

/** The marks that commits have of rows. Rows of a turn do not say its id, and name its nodes by their places. */
export class RowMarks {
  private readonly turnId: Id
  private readonly names: NodeNames

  constructor(turnId: Id, names: NodeNames) {
    this.turnId = turnId
    this.names = names
  }

  /** A mark that no commit has, for what cannot be read. */
  of({ text, packed }: SpanRow): readonly string[] {
    if ('edges' in packed) return Object.keys(packed).length === 1 ? this.ofEdges(packed.edges) : [NONE]
    const { letter, id } = nameIn(packed)
    return [rowMark(letter, id, letter === 'n' || letter === 'l' ? memberText(this.turnId, text) : text)]
  }

  /** Of all edges of the turn that one commit wrote. */
  ofTurn(edges: readonly string[]): string {
    return turnEdgesMark(this.turnId, edges)
  }

  private ofEdges(edges: readonly EdgeEnds[]): readonly string[] {
    return Array.isArray(edges) && edges.length > 0 ? edges.map((ends) => this.ofEdge(ends)) : [NONE]
  }

  private ofEdge(ends: EdgeEnds): string {
    const [from, to, letter] = Array.isArray(ends) ? ends : ['', '', '']
    const type = edgeType(letter)
    return type === undefined || !this.isOfTurn(from, to)
      ? NONE
      : edgeMark({ from: this.idOf(from), to: this.idOf(to), type })
  }

  /** A node of the turn is named by its place, and one of the two is. */
  private isOfTurn(from: number | Id, to: number | Id): boolean {
    const elsewhere = typeof from === 'number' ? to : from
    if (typeof elsewhere === 'number') return true
    return (typeof from === 'number' || typeof to === 'number') && !this.names.has(String(elsewhere))
  }

  private idOf(end: number | Id): Id {
    return typeof end === 'number' ? this.names.at(end) : String(end)
  }
}

const NONE = ' '

/** Of a whole span. */
export function marksIn(rows: readonly SpanRow[]): RowMarks {
  const head = rows[0]?.packed
  return new RowMarks(head !== undefined && 'turn' in head ? String(head.turn) : '', namesIn(rows))
}

/** The ids of the nodes of a turn. */
export interface NodeNames {
  /** Empty where no node is. */
  at(place: number): Id
  has(id: Id): boolean
}

export function namesIn(rows: readonly SpanRow[]): NodeNames {
  let byPlace: ReadonlyMap<number, Id> | undefined
  let all: ReadonlySet<Id> | undefined
  const places = () => {
    byPlace ??= new Map(rows.map(({ n, packed }) => [n % SPAN, 'node' in packed ? String(packed.node) : '']))
    return byPlace
  }
  return {
    at: (place) => places().get(place) ?? '',
    has: (id) => {
      all ??= new Set(places().values())
      return all.has(id)
    },
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
