/** A piece of a template: plain text, `{{ ... }}`, `{% ... %}`, `{# ... #}`, or a whole raw block. */
export interface Segment {
  readonly kind: 'text' | 'variable' | 'tag' | 'comment' | 'raw'
  readonly start: number
  readonly end: number
  /** The text between the marks, without signs for white space. */
  readonly inner: string
}

/** Splits a template into its pieces in linear time. A mark that is never closed is text. */
export function segmentsOf(text: string): Segment[] {
  const found: Segment[] = []
  const marks = new MarkReader(text)
  let from = 0
  for (let at = text.indexOf('{'); at !== -1; at = text.indexOf('{', at)) {
    const segment = marks.segmentAt(at)
    if (segment === undefined) {
      at++
      continue
    }
    if (segment.start > from) found.push(plain(text, from, segment.start))
    found.push(segment)
    from = segment.end
    at = segment.end
  }
  if (from < text.length) found.push(plain(text, from, text.length))
  return found
}

/** Reads pieces at marks of one text. However many marks are read, the time is proportional to the text. */
export class MarkReader {
  private readonly text: string
  private table: ClosingTable | undefined
  /** From here on no comment is closed. */
  private lastComment = Number.POSITIVE_INFINITY

  constructor(text: string) {
    this.text = text
  }

  /** Returns the closed piece that begins here, if any. */
  segmentAt(start: number): Segment | undefined {
    const kind = KINDS.get(this.text[start + 1])
    const end = this.endAt(start)
    if (kind === undefined || end === undefined) return undefined
    const segment = makeSegment(kind, this.text, { start, end })
    return kind === 'tag' && segment.inner === 'raw' ? rawBlock(this.text, segment) : segment
  }

  /** Finds where the mark that begins here is closed. */
  endAt(start: number): number | undefined {
    const kind = KINDS.get(this.text[start + 1])
    if (kind === undefined) return undefined
    if (kind === 'comment') return this.endOfComment(start)
    this.table ??= new ClosingTable(this.text)
    return kind === 'variable' ? this.table.endOfVariable(start + 2) : this.table.endOfTag(start + 2)
  }

  private endOfComment(start: number): number | undefined {
    if (start >= this.lastComment) return undefined
    const end = this.text.indexOf('#}', start + 2)
    if (end !== -1) return end + 2
    this.lastComment = start
    return undefined
  }
}

const KINDS: ReadonlyMap<string | undefined, 'variable' | 'tag' | 'comment'> = new Map([
  ['{', 'variable'],
  ['%', 'tag'],
  ['#', 'comment'],
])

/** Reads the first word of a tag: `if`, `for`, `endfor`. */
export function tagName({ inner }: Segment): string {
  return /^\w+/.exec(inner)?.[0] ?? ''
}

function makeSegment(kind: Segment['kind'], text: string, { start, end }: Pick<Segment, 'start' | 'end'>): Segment {
  const inner = text
    .slice(start + 2, end - 2)
    .replace(/^[-+]/, '')
    .replace(/[-+]$/, '')
  return { kind, start, end, inner: inner.trim() }
}

function plain(text: string, start: number, end: number): Segment {
  return { kind: 'text', start, end, inner: text.slice(start, end) }
}

function rawBlock(text: string, { start, end }: Segment): Segment {
  const close = /\{%[-+]?\s*endraw\s*[-+]?%\}/g
  close.lastIndex = end
  const found = close.exec(text)
  const last = found === null ? text.length : found.index + found[0].length
  return { kind: 'raw', start, end: last, inner: text.slice(end, found?.index ?? last) }
}

/**
 * Knows for each place of a text where `}}` and `%}` close it, skipping strings, and braces inside an expression. One
 * pass from end to start computes it for all places.
 */
export class ClosingTable {
  private readonly never: number
  private readonly variables: readonly number[]
  private readonly tags: readonly number[]

  constructor(text: string) {
    const { length } = text
    this.never = length + 1
    const table = () => new Array<number>(length + 3).fill(this.never)
    const [double, single, braces, variables, tags] = [table(), table(), table(), table(), table()]
    let after = 0
    for (let at = length - 1; at >= 0; at--) {
      const code = text.charCodeAt(at)
      const step = code === BACKSLASH ? at + 2 : at + 1
      double[at] = code === DOUBLE ? at + 1 : (double[step] as number)
      single[at] = code === SINGLE ? at + 1 : (single[step] as number)
      const next = this.nextOf(code, at, { double, single, braces })
      braces[at] = code === CLOSE ? at + 1 : (braces[next] as number)
      variables[at] = code === CLOSE && after === CLOSE ? at + 2 : (variables[next] as number)
      tags[at] = code === PERCENT && after === CLOSE ? at + 2 : (tags[next] as number)
      after = code
    }
    this.variables = variables
    this.tags = tags
  }

  /** The position after the `}}` that closes a variable whose inside begins here. */
  endOfVariable(from: number): number | undefined {
    return this.known(this.variables[from])
  }

  /** The position after the `%}` that closes a tag whose inside begins here. */
  endOfTag(from: number): number | undefined {
    return this.known(this.tags[from])
  }

  private known(end: number | undefined): number | undefined {
    return end === this.never ? undefined : end
  }

  /** The position after the character, the string or the braces that begin here. */
  private nextOf(
    code: number,
    at: number,
    {
      double,
      single,
      braces,
    }: { readonly double: readonly number[]; readonly single: readonly number[]; readonly braces: readonly number[] },
  ): number {
    if (code === DOUBLE) return double[at + 1] as number
    if (code === SINGLE) return single[at + 1] as number
    return code === OPEN ? (braces[at + 1] as number) : at + 1
  }
}

const DOUBLE = 34
const PERCENT = 37
const SINGLE = 39
const BACKSLASH = 92
const OPEN = 123
const CLOSE = 125

/** One word of an expression. */
export interface Token {
  readonly kind: 'name' | 'number' | 'string' | 'sign'
  readonly text: string
}

const TOKEN =
  /"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'|[\p{L}_][\p{L}\p{N}_]*|\d[\d_]*(?:\.\d+)?|\*\*|\/\/|[=!<>]=|\S/gsu

/** Splits an expression into words, in order. */
export function templateTokens(expression: string): Token[] {
  return Array.from(expression.matchAll(TOKEN), ([text]) => ({ kind: kindOf(text), text }))
}

function kindOf(text: string): Token['kind'] {
  if (/^["']/.test(text) && text.length > 1) return 'string'
  if (/^[\p{L}_]/u.test(text)) return 'name'
  return /^\d/.test(text) ? 'number' : 'sign'
}

/** The lines of a text, counted from 1. Offsets may be looked up in any order, any number of times. */
export class Lines {
  private readonly text: string
  private starts: number[] | undefined

  constructor(text: string) {
    this.text = text
  }

  at(offset: number): number {
    this.starts ??= startsIn(this.text)
    let [low, high] = [0, this.starts.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.starts[middle] ?? 0) <= offset) low = middle
      else high = middle
    }
    return low + 1
  }
}

function startsIn(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}
