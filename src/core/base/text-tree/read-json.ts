import { parseJson } from '../json.ts'
import { leafAt, type TextEntry, type TextPlace, TextProblem, type TextTree } from './tree.ts'

/**
 * Parses JSON with the place of every value. Allows comments, trailing commas, single quotes and bare keys, but no
 * repeated key. Throws TextProblem.
 */
export function readJsonTree(text: string): TextTree {
  const reader = new JsonReader(text)
  const tree = reader.value(0)
  reader.end()
  return tree
}

const DEEPEST = 60
const SPACE = /\s+/y
const LINE_COMMENT = /\/\/[^\n]*/y
const BARE = /[\p{L}_$][\p{L}\p{N}_$]*/uy
const NUMBER = /[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y
const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
])

class JsonReader {
  private readonly text: string
  private offset = 0
  /** The line of the last requested place, and where it begins and ends. */
  private line = 1
  private lineStart = 0
  private lineEnd: number

  constructor(text: string) {
    this.text = text
    this.lineEnd = this.endOfLine()
  }

  value(depth: number): TextTree {
    this.skip()
    const at = this.place()
    if (depth >= DEEPEST) throw new TextProblem(`nested more than ${DEEPEST} levels deep`, at)
    if (this.take('{')) return { kind: 'map', entries: this.entries(depth), ...at }
    if (this.take('[')) return { kind: 'list', items: this.items(depth), ...at }
    return leafAt(this.scalar(), at)
  }

  end(): void {
    this.skip()
    if (this.offset < this.text.length) throw this.wrong('there is something behind the end')
  }

  private entries(depth: number): Map<string, TextEntry> {
    const entries = new Map<string, TextEntry>()
    while (!this.closes('}')) {
      const at = this.place()
      const key = this.key()
      if (entries.has(key))
        throw new TextProblem(`the key ${JSON.stringify(key)} is there twice`, at, 'Remove one of them.')
      this.skip()
      if (!this.take(':')) throw this.wrong('a colon is missing behind the key')
      entries.set(key, { ...at, value: this.value(depth + 1) })
      this.comma('}')
    }
    return entries
  }

  private items(depth: number): TextTree[] {
    const items: TextTree[] = []
    while (!this.closes(']')) {
      items.push(this.value(depth + 1))
      this.comma(']')
    }
    return items
  }

  private closes(end: string): boolean {
    this.skip()
    if (this.offset >= this.text.length) throw this.wrong(`the text ends before ${end}`)
    return this.take(end)
  }

  private comma(end: string): void {
    this.skip()
    if (this.take(',') || this.text[this.offset] === end) return
    throw this.wrong(`a comma or ${end} is missing`)
  }

  private key(): string {
    return this.quoted() ?? this.match(BARE) ?? this.fail('a key is missing')
  }

  private scalar(): string | number | boolean | null {
    const text = this.quoted()
    if (text !== undefined) return text
    const number = this.match(NUMBER)
    if (number !== undefined) return this.finite(Number(number))
    const start = this.offset
    const word = WORDS.get(this.match(BARE) ?? '')
    if (word !== undefined) return word
    this.offset = start
    throw this.wrong('a value is missing')
  }

  private finite(value: number): number {
    return Number.isFinite(value) ? value : this.fail('the number is too large to keep')
  }

  private quoted(): string | undefined {
    const quote = this.text[this.offset]
    if (quote !== '"' && quote !== "'") return undefined
    let end = this.offset + 1
    while (end < this.text.length && this.text[end] !== quote) end += this.text[end] === '\\' ? 2 : 1
    if (end >= this.text.length) throw this.wrong('the text is not closed')
    const parsed = parseJson(strict(this.text.slice(this.offset + 1, end)))
    this.offset = end + 1
    return parsed.ok && typeof parsed.value === 'string' ? parsed.value : this.fail('the text has an unknown escape')
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.offset
    const [found] = pattern.exec(this.text) ?? []
    if (found === undefined) return undefined
    this.offset += found.length
    return found
  }

  private skip(): void {
    while (this.match(SPACE) ?? this.match(LINE_COMMENT) ?? this.comment()) {
      // Skips space and comments.
    }
  }

  private comment(): string | undefined {
    if (!this.text.startsWith('/*', this.offset)) return undefined
    const end = this.text.indexOf('*/', this.offset + 2)
    if (end === -1) throw this.wrong('the comment is not closed')
    this.offset = end + 2
    return '/*'
  }

  private take(char: string): boolean {
    if (this.text[this.offset] !== char) return false
    this.offset++
    return true
  }

  /** Places are requested in order, so every line is counted once. */
  private place(): TextPlace {
    while (this.lineEnd < this.offset) {
      this.line++
      this.lineStart = this.lineEnd + 1
      this.lineEnd = this.endOfLine()
    }
    return { line: this.line, column: this.offset - this.lineStart + 1 }
  }

  private endOfLine(): number {
    const end = this.text.indexOf('\n', this.lineStart)
    return end === -1 ? this.text.length : end
  }

  private wrong(problem: string): TextProblem {
    return new TextProblem(`not valid JSON: ${problem}`, this.place())
  }

  private fail(problem: string): never {
    throw this.wrong(problem)
  }
}

/** Rewrites a text for double quotes, as strict JSON needs it. */
function strict(inside: string): string {
  const escaped = inside.replace(/\\[\s\S]|"|\p{Cc}/gu, (piece) => {
    if (piece === "\\'") return "'"
    if (piece === '\\\n') return ''
    if (piece.length > 1) return piece
    return JSON.stringify(piece).slice(1, -1)
  })
  return `"${escaped}"`
}
