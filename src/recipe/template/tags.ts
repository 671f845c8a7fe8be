import { ClosingTable } from './closing-table.ts'

/** A piece of a template: plain text, `{{ ... }}`, `{% ... %}`, `{# ... #}`, or a raw block with all that is in it. */
export interface Segment {
  readonly kind: 'text' | 'variable' | 'tag' | 'comment' | 'raw'
  readonly start: number
  readonly end: number
  /** What is between the marks, without signs for white space. */
  readonly inner: string
}

/** Cuts a template into its pieces, in linear time. A mark that is never closed is text. */
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

/** Reads what begins at a mark of one text. However many marks are asked for, it takes time in proportion to the text. */
export class MarkReader {
  private readonly text: string
  private table: ClosingTable | undefined
  /** From here on nothing closes a comment. */
  private lastComment = Number.POSITIVE_INFINITY

  constructor(text: string) {
    this.text = text
  }

  /** The piece that begins here, when one does and it is closed. */
  segmentAt(start: number): Segment | undefined {
    const kind = KINDS.get(this.text[start + 1])
    const end = this.endAt(start)
    if (kind === undefined || end === undefined) return undefined
    const segment = made(kind, this.text, { start, end })
    return kind === 'tag' && segment.inner === 'raw' ? rawBlock(this.text, segment) : segment
  }

  /** Where the mark that begins here is closed. */
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

/** The first word of a tag: `if`, `for`, `endfor`. */
export function tagName({ inner }: Segment): string {
  return /^\w+/.exec(inner)?.[0] ?? ''
}

function made(kind: Segment['kind'], text: string, { start, end }: Pick<Segment, 'start' | 'end'>): Segment {
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
