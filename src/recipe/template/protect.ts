import { Lines, MarkReader, type Segment } from './tags.ts'
import { namesIn } from './variables.ts'

export interface Protected {
  /** The template, with what only looks like one marked as plain text. No line is added. */
  readonly template: string
  /** What was marked, for a person to see. */
  readonly literals: readonly { readonly text: string; readonly line: number; readonly why: 'tag' | 'undefined' }[]
}

export interface ProtectOptions {
  /** Is this the inside of `{{ }}` as the engine reads it? */
  readonly isExpression: (inner: string) => boolean
  /** Names that have a value. Where it is given, an expression with another name is plain text too. */
  readonly known?: ReadonlySet<string>
}

/**
 * People write `{{hf model org}}`, `{#123}` or `{% discount %}` in prose. What is no expression, no comment and no
 * statement stays as it is written. An inside that begins with a quote is left to the engine.
 */
export function protect(text: string, options: ProtectOptions): Protected {
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
  /** Why it is plain text; undefined when it is what it looks like. */
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

  /** The first word of the tag that begins here. */
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

  /** The next `}}`, which is looked for once. */
  private closeAfter(from: number): number {
    if (this.close !== -1 && this.close < from) this.close = this.text.indexOf('}}', from)
    return this.close
  }

  /** What is beyond the next `}}` may be read again from there. What would be read again and again is text. */
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
