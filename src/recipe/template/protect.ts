import { lineOf, type Segment, segmentAt, tagName } from './tags.ts'
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
  let template = ''
  let from = 0
  for (let at = text.indexOf('{'); at !== -1; at = text.indexOf('{', at)) {
    const piece = pieceAt(text, at, options)
    if (piece === undefined) {
      at++
      continue
    }
    if (piece.why !== undefined) {
      template += `${text.slice(from, at)}{% raw %}${text.slice(at, piece.end)}{% endraw %}`
      from = piece.end
      if (piece.why !== 'expression')
        literals.push({ text: text.slice(at, piece.end), line: lineOf(text, at), why: piece.why })
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

function pieceAt(text: string, at: number, options: ProtectOptions): Piece | undefined {
  const mark = text[at + 1]
  if (mark === '{') return variableAt(text, at, options)
  if (mark !== '%' && mark !== '#') return undefined
  const segment = segmentAt(text, at)
  if (segment === undefined) return { end: at + 2, why: 'tag' }
  if (segment.kind === 'tag' && !STATEMENTS.has(tagName(segment))) return { end: at + 2, why: 'tag' }
  return { end: segment.end }
}

const STATEMENTS: ReadonlySet<string> = new Set(
  (
    'if elif else endif for endfor set endset block endblock extends include import from macro endmacro call endcall ' +
    'filter endfilter with endwith autoescape endautoescape do raw endraw'
  ).split(' '),
)

function variableAt(text: string, at: number, options: ProtectOptions): Piece {
  const segment = segmentAt(text, at)
  const close = text.indexOf('}}', at + 2)
  if (close === -1) return { end: at + 2 }
  const inner = text.slice(at + 2, close)
  if (segment !== undefined && isWhole(segment, options)) {
    return isKnown(segment, options) ? { end: segment.end } : { end: segment.end, why: 'undefined' }
  }
  if (/^\s*['"]/.test(inner) || inner.includes('\n')) return { end: segment?.end ?? close + 2 }
  return { end: close + 2, why: 'expression' }
}

function isWhole({ inner }: Segment, { isExpression }: ProtectOptions): boolean {
  return /^[A-Za-z_]\w*$/.test(inner) || isExpression(inner)
}

function isKnown({ inner }: Segment, { known }: ProtectOptions): boolean {
  return known === undefined || namesIn(inner).every((name) => known.has(name))
}
