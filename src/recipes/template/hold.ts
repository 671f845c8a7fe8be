import { Lines, type Segment, segmentsOf, tagName, templateTokens } from './tags.ts'

export type HeldTemplate =
  | { readonly ok: true; readonly template: string }
  | { readonly ok: false; readonly message: string; readonly line: number }

/**
 * Rewrites a template so that every value is held instead of written: the result has only the author's words and marks,
 * so no value can change its structure. Macros, `super()` and blocks write the author's words themselves.
 */
export function holdValues(template: string): HeldTemplate {
  return replaceValues(template, holding)
}

/** Rewrites a template so that the source of each expression, `{{ ... }}` included, is held in place of a value. */
export function holdSources(template: string, mark: string, held: string[]): HeldTemplate {
  return replaceValues(template, (source) => `\ue0f0${mark}:${held.push(source) - 1}\ue0f1`)
}

function replaceValues(template: string, replace: (source: string, segment: Segment) => string): HeldTemplate {
  const macros = macrosIn(template)
  let captures = 0
  let held = ''
  for (const segment of segmentsOf(template)) {
    if (isFilterOfValues(segment)) return { ok: false, message: FILTER, line: new Lines(template).at(segment.start) }
    captures += captureChange(segment)
    const isWritten = segment.kind === 'variable' && captures === 0 && !isAuthors(segment, macros)
    const source = template.slice(segment.start, segment.end)
    held += isWritten ? replace(source, segment) : source
  }
  return { ok: true, template: held }
}

/** Replaces marks by the values they hold. */
export class Releaser {
  private readonly held: readonly string[]
  private readonly open: string
  /** The characters still allowed. Held text may contain further marks, from a macro, so its growth is limited. */
  private left = MOST_CHARACTERS

  constructor(held: readonly string[], mark: string) {
    this.held = held
    this.open = `\ue0f0${mark}:`
  }

  has(text: string): boolean {
    return text.includes(this.open)
  }

  /** Returns the text with all marks replaced; undefined if it would be too long. */
  release(text: string, depth = 0): string | undefined {
    this.left -= text.length
    if (this.left < 0 || depth > DEEPEST) return undefined
    let released = ''
    let from = 0
    for (let at = text.indexOf(this.open); at !== -1; at = text.indexOf(this.open, from)) {
      const end = text.indexOf('\ue0f1', at)
      const value = this.held[Number(text.slice(at + this.open.length, end === -1 ? undefined : end))]
      if (end === -1 || value === undefined) break
      const inner = this.release(value, depth + 1)
      if (inner === undefined) return undefined
      released += text.slice(from, at) + inner
      from = end + 1
    }
    return released + text.slice(from)
  }
}

const MOST_CHARACTERS = 4_000_000
const DEEPEST = 100
const FILTER = '{% filter %} around keys of the file takes plain texts and numbers only'

function holding(source: string, { inner }: Segment): string {
  const [, before = ''] = /^\{\{([-+]?)/.exec(source) ?? []
  const [, after = ''] = /([-+]?)\}\}$/.exec(source) ?? []
  return `{{${before} (${inner})|string|legate_hold((${inner}) is undefined) ${after}}}`
}

/** Tracks `{% set x %} ... {% endset %}`, whose content is written, and held, where x is used. */
function captureChange(segment: Segment): number {
  if (segment.kind !== 'tag') return 0
  if (tagName(segment) === 'endset') return -1
  return tagName(segment) === 'set' && !templateTokens(segment.inner).some(({ text }) => text === '=') ? 1 : 0
}

/** Recognizes filters with arguments, which would be written without being held. */
function isFilterOfValues(segment: Segment): boolean {
  if (segment.kind !== 'tag' || tagName(segment) !== 'filter') return false
  const [, , ...rest] = templateTokens(segment.inner)
  return !rest.every(({ kind, text }, at) => {
    return (
      kind !== 'name' || rest[at - 1]?.text === '|' || rest[at + 1]?.text === '=' || /^(?:true|false|none)$/i.test(text)
    )
  })
}

/** Recognizes a call, with nothing after it, that writes the author's own words. */
function isAuthors({ inner }: Segment, macros: ReadonlySet<string>): boolean {
  const tokens = templateTokens(inner)
  const open = tokens.findIndex(({ text }) => text === '(')
  if (
    open < 1 ||
    closingOf(
      tokens.map(({ text }) => text),
      open,
    ) !==
      tokens.length - 1
  )
    return false
  const callee = tokens
    .slice(0, open)
    .map(({ text }) => text)
    .join('')
  return (
    callee === 'super' || callee === 'caller' || callee === 'loop' || callee.startsWith('self.') || macros.has(callee)
  )
}

function closingOf(tokens: readonly string[], open: number): number {
  let depth = 0
  for (let at = open; at < tokens.length; at++) {
    if (tokens[at] === '(') depth++
    if (tokens[at] === ')' && --depth === 0) return at
  }
  return -1
}

/** Lists the macros of this template by name; those of another file are held as a whole. */
function macrosIn(template: string): ReadonlySet<string> {
  return new Set(
    segmentsOf(template)
      .filter((segment) => segment.kind === 'tag' && tagName(segment) === 'macro')
      .map(({ inner }) => templateTokens(inner)[1]?.text ?? ''),
  )
}
