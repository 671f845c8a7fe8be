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
  let from = 0
  for (let at = text.indexOf('{'); at !== -1; at = text.indexOf('{', at)) {
    const segment = segmentAt(text, at)
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

/** The piece that begins here, when one does and it is closed. */
export function segmentAt(text: string, start: number): Segment | undefined {
  const mark = text[start + 1]
  if (mark === '#') {
    const end = text.indexOf('#}', start + 2)
    return end === -1 ? undefined : made('comment', text, { start, end: end + 2 })
  }
  if (mark !== '{' && mark !== '%') return undefined
  const end = closing(text, start + 2, mark === '{' ? '}}' : '%}')
  if (end === -1) return undefined
  const segment = made(mark === '{' ? 'variable' : 'tag', text, { start, end })
  return segment.kind === 'tag' && segment.inner === 'raw' ? rawBlock(text, segment) : segment
}

/** The first word of a tag: `if`, `for`, `endfor`. */
export function tagName({ inner }: Segment): string {
  return /^\w+/.exec(inner)?.[0] ?? ''
}

export function lineOf(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++
  return line
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

/** Where the marks end: strings are passed over, and braces inside an expression. -1 when they do not. */
function closing(text: string, from: number, end: '}}' | '%}'): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (char === '"' || char === "'") {
      at = endOfString(text, at)
      if (at === -1) return -1
    } else if (depth === 0 && text.startsWith(end, at)) return at + 2
    else if (char === '{') depth++
    else if (char === '}' && depth > 0) depth--
  }
  return -1
}

function endOfString(text: string, start: number): number {
  const quote = text[start]
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === quote) return at
  }
  return -1
}
