import type { Issue } from '../base/schema/schema.ts'
import {
  ANY,
  apostrophe,
  closeBrace,
  closeBracket,
  colon,
  comma,
  isAnySpace,
  isBare,
  isSpace,
  LIST,
  OBJECT,
  openBrace,
  openBracket,
  type ParserLimits,
  quote,
  STRING,
  slash,
  valueKind,
} from './chars.ts'
import { FieldEvent, type FieldKind } from './field-event.ts'
import { framePath, KeyShape, OpenContainer } from './frame.ts'
import { CommentReader, kindBegun, losesDigits, readBareValue, readLooseValue } from './literal-reader.ts'
import type { CommitRule } from './schema-view.ts'
import { StringReader } from './string-reader.ts'

export interface ReaderOptions {
  /** Accepts JSON to the letter only, with nothing around it. */
  readonly isStrict: boolean
  readonly limits: ParserLimits
  /**
   * Decides at the beginning of each value, until it says yes, whether this is the document that the caller looks for.
   */
  readonly rule: CommitRule
}

export interface DocumentProblem {
  readonly reason: 'broken' | 'limit'
  readonly message: string
}

/** Reads one value, piece by piece, and collects its events. It looks at every character once. */
export class DocumentReader {
  events: FieldEvent[] = []
  readonly notes = new Notes()
  isCommitted: boolean
  isClosed = false
  problem: DocumentProblem | null = null

  private readonly options: ReaderOptions
  private readonly string: StringReader
  private readonly comment = new CommentReader()
  private readonly texts: TextCache
  private text = ''
  private at = 0
  private state = beforeValue
  private root: unknown = undefined
  private frame: OpenContainer | null = null
  /** The key or index under which the current value belongs. */
  private key: string | number = ''
  private isRepeat = false
  /** The part of a number, literal or unquoted key that earlier pieces held. */
  private token = ''
  private values = 0

  /** Candidates of one text may share a cache of texts. */
  constructor(options: ReaderOptions, texts: TextCache) {
    this.options = options
    this.texts = texts
    this.string = new StringReader(options.isStrict)
    this.isCommitted = options.isStrict
  }

  /** Reads on. Returns the place behind the value, the place of the error, or the end of the text. */
  read(text: string, from: number): number {
    this.text = text
    this.at = from
    while (this.at < text.length && !this.isClosed && this.problem === null) this.step()
    if (this.state === inString) this.emitDelta()
    this.text = ''
    return this.at
  }

  /**
   * Called when no more text comes. A number or literal that is the whole document ends here, and an open value may
   * commit the document.
   */
  finish(): void {
    if (this.problem !== null) return
    if (this.state === inBare && this.frame === null) this.completeBare(this.token, 0, this.token.length)
    else if (this.state === inBare) this.consider(kindBegun(this.token))
    else if (this.state === beforeValue) this.consider(ANY)
  }

  /** The document as far as it has been read. This is not a copy. */
  get value(): unknown {
    if (this.state !== inString || this.isClosed) return this.root
    if (this.frame === null) return this.string.value
    this.frame.put(this.key, this.string.value)
    return this.root
  }

  /** True when nothing but space has been read. */
  get isUntouched(): boolean {
    return this.values === 0
  }

  /** Emits `truncated` for everything that is still open, the innermost first. */
  cut(): void {
    const whole = this.value
    if (this.state === inString) this.emit('truncated', this.string.value, undefined)
    else if (this.state === inBare) this.emit('truncated', undefined, undefined)
    for (let frame = this.frame; frame !== null; frame = frame.parent) {
      this.events.push(new FieldEvent('truncated', frame.parent, frame.key, frame.isRepeat, frame.value, undefined))
    }
    this.root = whole
    this.state = beforeValue
  }

  private step(): void {
    if (this.comment.isOpen) return this.passComment()
    switch (this.state) {
      case inString:
        return this.readString()
      case inKey:
        return this.readKey()
      case inBare:
        return this.readBare()
      case inBareKey:
        return this.readBareKey()
      default:
        return this.readSign()
    }
  }

  /** Reads the next character that matters between two values. */
  private readSign(): void {
    const code = this.peek()
    if (code === -1) return
    switch (this.state) {
      case afterValue:
        return this.leaveValue(code)
      case beforeColon:
        return code === colon ? this.go(beforeValue) : this.fail(`expected ":" after the key ${this.shownKey()}`)
      case firstKey:
      case nextKey:
        return this.beginKey(code)
      default:
        return this.beginValue(code)
    }
  }

  private leaveValue(code: number): void {
    const isList = this.frame !== null && this.frame.list !== null
    if (code === comma) return this.go(isList ? nextItem : nextKey)
    if (code === (isList ? closeBracket : closeBrace)) return this.closeFrame()
    return this.fail(`expected "," or "${isList ? ']' : '}'}"`)
  }

  private beginKey(code: number): void {
    const { isStrict } = this.options
    if (code === closeBrace && (this.state === firstKey || !isStrict)) return this.closeFrame()
    if (code === quote || (code === apostrophe && !isStrict)) {
      this.string.open(code, isStrict || !this.isCommitted)
      return this.go(inKey)
    }
    if (isStrict || !isKeyPart(code)) return this.fail('expected a key')
    this.token = ''
    this.state = inBareKey
  }

  private beginValue(code: number): void {
    const { isStrict, limits } = this.options
    if (code === closeBracket && (this.state === firstItem || (this.state === nextItem && !isStrict))) {
      return this.closeFrame()
    }
    if (++this.values > limits.maxValues)
      return this.stop('limit', `The JSON has more than ${limits.maxValues} values.`)
    if (this.frame !== null && this.frame.list !== null) {
      this.key = this.frame.size
      this.isRepeat = this.frame.isRepeat
    }
    if (code === quote || (code === apostrophe && !isStrict)) return this.openString(code)
    if (code === openBrace) return this.openFrame(OBJECT)
    if (code === openBracket) return this.openFrame(LIST)
    if (!isBare(code)) return this.fail('expected a value')
    this.token = ''
    this.state = inBare
  }

  private openString(end: number): void {
    this.consider(STRING)
    this.string.open(end, this.options.isStrict || (end === apostrophe && this.isDoubtful))
    this.go(inString)
  }

  private readString(): void {
    const { string } = this
    this.at = string.read(this.text, this.at)
    if (string.isBroken) return this.fail('a string has a character or escape that JSON does not allow')
    if (!string.isClosed) return
    const around = string.value === '' ? this.text.length : 0
    this.emitDelta()
    if (string.hasWrongEscape) this.note('has an escape that is none; it was kept as written')
    this.complete(this.texts.kept(string.value, around))
    string.value = ''
  }

  private emitDelta(): void {
    const delta = this.string.takeDelta()
    if (delta !== '') this.emit('delta', this.string.value, delta)
  }

  private readBare(): void {
    const from = this.at
    const end = endOfBare(this.text, from)
    this.at = end
    if (end === this.text.length) {
      this.token += this.text.slice(from, end)
      return
    }
    if (this.token === '') return this.completeBare(this.text, from, end)
    this.token += this.text.slice(from, end)
    this.completeBare(this.token, 0, this.token.length)
  }

  private completeBare(text: string, from: number, to: number): void {
    const value = this.options.isStrict ? readBareValue(text, from, to) : readLooseValue(text, from, to)
    if (value === undefined)
      return this.fail(`${JSON.stringify(text.slice(from, Math.min(to, from + 40)))} is no value`)
    this.consider(valueKind(value))
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return this.complete(value)
    if (!Number.isFinite(value)) {
      this.note('is not a finite number, which JSON cannot keep; it was read as null')
      return this.complete(null)
    }
    if (losesDigits(value, text, from)) this.note('has more digits than a number keeps; give it as a string')
    return this.complete(value)
  }

  private readKey(): void {
    const { string } = this
    this.at = string.read(this.text, this.at)
    if (string.isBroken) return this.fail('a key has a character or escape that JSON does not allow')
    if (string.isClosed) this.nameKey(string.delta)
  }

  private readBareKey(): void {
    const from = this.at
    let end = from
    while (end < this.text.length && isKeyPart(this.text.charCodeAt(end))) end++
    this.token += this.text.slice(from, end)
    this.at = end
    if (end < this.text.length) this.nameKey(this.token.toWellFormed())
  }

  private nameKey(name: string): void {
    const { frame } = this
    this.state = beforeColon
    if (frame === null) return
    this.key = frame.nameKey(name)
    this.isRepeat = frame.isRepeat || frame.isDouble
    if (frame.isDouble) this.note('stands more than once in its object; the last one counts')
  }

  private openFrame(kind: number): void {
    const { maxDepth } = this.options.limits
    const { frame: parent } = this
    const shape = parent === null ? new KeyShape() : parent.shapeBelow()
    const frame = new OpenContainer(parent, this.key, kind === LIST, this.isRepeat, shape)
    if (frame.depth > maxDepth) return this.stop('limit', `The JSON is nested more than ${maxDepth} levels deep.`)
    this.consider(kind)
    if (parent === null) this.root = frame.value
    else parent.put(this.key, frame.value)
    this.emit('open', frame.value, undefined)
    this.frame = frame
    this.go(kind === LIST ? firstItem : firstKey)
  }

  private closeFrame(): void {
    const { frame } = this
    if (frame === null) return
    if (!this.isCommitted && frame.parent === null && frame.size === 0) {
      this.isCommitted = this.options.rule.commitsEmpty(frame.list === null ? OBJECT : LIST)
    }
    this.frame = frame.parent
    this.key = frame.key
    this.isRepeat = frame.isRepeat
    this.at++
    const value = frame.close()
    if (frame.parent === null) this.root = value
    this.end(value)
  }

  private complete(value: unknown): void {
    if (this.frame === null) this.root = value
    else this.frame.put(this.key, value)
    this.end(value)
  }

  private end(value: unknown): void {
    this.emit('done', value, undefined)
    this.state = afterValue
    if (this.frame === null) this.isClosed = true
    else this.frame.size++
  }

  /**
   * An apostrophe behind a stray brace must not swallow the document as its string, so such a string ends with its
   * line.
   */
  private get isDoubtful(): boolean {
    return !this.isCommitted && this.frame !== null
  }

  private consider(kind: number): void {
    if (this.isCommitted || this.frame === null) return
    this.isCommitted = this.options.rule.commits(this.frame, this.key, kind)
  }

  private peek(): number {
    const { text } = this
    const { isStrict } = this.options
    for (let at = this.at; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (isStrict ? isSpace(code) : isAnySpace(code)) continue
      this.at = at
      if (code !== slash || isStrict) return code
      this.comment.open()
      this.at++
      return -1
    }
    this.at = text.length
    return -1
  }

  private passComment(): void {
    this.at = this.comment.read(this.text, this.at)
    if (this.comment.isBroken) this.fail('a "/" begins no comment')
  }

  private emit(kind: FieldKind, value: unknown, delta: string | undefined): void {
    const event = new FieldEvent(kind, this.frame, this.key, this.isRepeat, value, delta)
    // A list that starts with its first item takes less memory than one that grows from nothing.
    if (this.events.length === 0) this.events = [event]
    else this.events.push(event)
  }

  private note(message: string): void {
    this.notes.add(this.frame, this.key, message)
  }

  /** Moves on to the next character. */
  private go(state: number): void {
    this.at++
    this.state = state
  }

  private fail(message: string): void {
    this.stop('broken', message)
  }

  private stop(reason: DocumentProblem['reason'], message: string): void {
    this.problem = { reason, message }
  }

  private shownKey(): string {
    return JSON.stringify(String(this.key).slice(0, 40))
  }
}

const beforeValue = 0
const firstItem = 1
const nextItem = 2
const firstKey = 3
const nextKey = 4
const beforeColon = 5
const afterValue = 6
const inString = 7
const inKey = 8
const inBare = 9
const inBareKey = 10

function endOfBare(text: string, from: number): number {
  let at = from
  while (at < text.length && isBare(text.charCodeAt(at))) at++
  return at
}

function isKeyPart(code: number): boolean {
  return isBare(code) || (code > 127 && !isAnySpace(code))
}

/** Notes about a document that did not stop its reading. Keeps at most 100. */
class Notes {
  readonly list: Issue[] = []

  add(parent: OpenContainer | null, key: string | number, message: string): void {
    if (this.list.length < maxNotes) this.list.push({ path: framePath(parent, key), message })
  }
}

const maxNotes = 100

/// <reference lib="es2024.string" />

/** Saves memory: equal short texts share one string, and no text keeps alive the pieces that it was cut from. */
export class TextCache {
  private readonly texts: string[] = new Array<string>(slots).fill('')

  /**
   * Returns an equal text that keeps nothing else alive. `around` is the length of the piece that it was cut from, or
   * 0.
   */
  kept(text: string, around: number): string {
    const { length } = text
    if (length > shortText) return whole(around > pieceLength ? halves(text) : text)
    if (length === 0) return text
    const slot = (text.charCodeAt(length - 1) * 7 + text.charCodeAt(0) * 31 + length) & (slots - 1)
    const known = this.texts[slot]
    if (known === text) return known
    this.texts[slot] = text
    return text
  }
}

/** A power of two. */
const slots = 256
/** Up to this length the JavaScript engine itself copies a text that is cut out of another. */
const shortText = 12
/** A piece up to this length may stay alive. */
const pieceLength = 64

/** Joins two halves, which makes the engine build a string of its own. */
function halves(text: string): string {
  const half = text.length >> 1
  return text.slice(0, half) + text.slice(half)
}

/**
 * Makes the engine flatten a text of several pieces by reading one of its characters. A well-formed text stays the
 * same.
 */
function whole(text: string): string {
  return text.charCodeAt(0) === replacement ? text.toWellFormed() : text
}

const replacement = 0xfffd
