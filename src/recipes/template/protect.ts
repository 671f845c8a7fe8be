import { Lines, MarkReader, type Segment } from './tags.ts'
import { namesIn } from './variables.ts'

export interface ProtectedTemplate {
  /** The template, with text that only looks like a tag marked as plain. It has the same lines. */
  readonly template: string
  /** The marked texts, to show to people. */
  readonly literals: readonly { readonly text: string; readonly line: number; readonly why: 'tag' | 'undefined' }[]
}

export interface ProtectOptions {
  /** Tells whether the engine accepts this inside of `{{ }}`. */
  readonly isExpression: (inner: string) => boolean
  /** Names with a value. If given, an expression with any other name counts as plain text. */
  readonly known?: ReadonlySet<string>
}

/**
 * Protects prose that looks like a template: `{{hf model org}}`, `{#123}`, `{% discount %}`. Text that is not an
 * expression, a comment or a statement stays as written. An inside that begins with a quote is left to the engine.
 */
export function protect(text: string, options: ProtectOptions): ProtectedTemplate {
  if (!/\{[{%#]/.test(text)) return { template: text, literals: [] }
  const literals: { text: string; line: number; why: 'tag' | 'undefined' }[] = []
  const pieces = new PieceReader(text, options)
  const lines = new Lines(text)
  let template = ''
  let from = 0
  for (let at = text.indexOf('{'); at !== -1; at = text.indexOf('{', at)) {
    const piece = pieces.pieceAt(at)
    if (piece === undefined) {
      at++
      continue
    }
    if (piece.why !== undefined) {
      template += `${text.slice(from, at)}{% raw %}${text.slice(at, piece.end)}{% endraw %}`
      from = piece.end
      if (piece.why !== 'expression')
        literals.push({ text: text.slice(at, piece.end), line: lines.at(at), why: piece.why })
    }
    at = piece.end
  }
  return { template: template + text.slice(from), literals }
}

interface Piece {
  readonly end: number
  /** Why it is plain text; undefined if it is what it looks like. */
  readonly why?: 'expression' | 'tag' | 'undefined'
}

const STATEMENTS: ReadonlySet<string> = new Set(
  (
    'if elif else endif for endfor set endset block endblock extends include import from macro endmacro call endcall ' +
    'filter endfilter with endwith autoescape endautoescape do raw endraw'
  ).split(' '),
)

class PieceReader {
  private readonly text: string
  private readonly options: ProtectOptions
  private readonly marks: MarkReader
  private close = 0
  /** How many characters may still be read more than once. */
  private spare: number

  constructor(text: string, options: ProtectOptions) {
    this.text = text
    this.options = options
    this.marks = new MarkReader(text)
    this.spare = text.length + SPARE
  }

  pieceAt(at: number): Piece | undefined {
    const mark = this.text[at + 1]
    if (mark === '{') return this.variableAt(at)
    if (mark !== '%' && mark !== '#') return undefined
    const isNone = mark === '%' && !STATEMENTS.has(this.nameAt(at))
    const segment = isNone ? undefined : this.marks.segmentAt(at)
    return segment === undefined ? { end: at + 2, why: 'tag' } : { end: segment.end }
  }

  /** Reads the first word of the tag that begins here. */
  private nameAt(at: number): string {
    TAG_NAME.lastIndex = at
    return TAG_NAME.exec(this.text)?.[1] ?? ''
  }

  private variableAt(at: number): Piece {
    const close = this.closeAfter(at + 2)
    if (close === -1) return { end: at + 2 }
    const end = this.marks.endAt(at) ?? close + 2
    const segment = this.isTooMuch(end - close) ? undefined : this.marks.segmentAt(at)
    if (segment !== undefined && this.isWhole(segment)) {
      return this.isKnown(segment) ? { end } : { end, why: 'undefined' }
    }
    const inner = this.text.slice(at + 2, close)
    if (/^\s*['"]/.test(inner) || inner.includes('\n')) return { end }
    return { end: close + 2, why: 'expression' }
  }

  /** Finds the next `}}`, once for each place. */
  private closeAfter(from: number): number {
    if (this.close !== -1 && this.close < from) this.close = this.text.indexOf('}}', from)
    return this.close
  }

  /** Text beyond the next `}}` may be read again from there. Text that would be read too often counts as plain. */
  private isTooMuch(beyond: number): boolean {
    this.spare -= beyond - 2
    return this.spare < 0
  }

  private isWhole({ inner }: Segment): boolean {
    return /^[A-Za-z_]\w*$/.test(inner) || this.options.isExpression(inner)
  }

  private isKnown({ inner }: Segment): boolean {
    const { known } = this.options
    return known === undefined || namesIn(inner).every((name) => known.has(name))
  }
}

const SPARE = 65_536
const TAG_NAME = /\{%[-+]?\s*(\w*)/y
