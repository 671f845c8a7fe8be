import { byteOrderMark, isAnySpace, isLineEnd, isSpace } from './chars.ts'
import { DocumentFinder } from './document-finder.ts'
import { type DocumentProblem, DocumentReader, type ReaderOptions, TextCache } from './document-reader.ts'
import type { FieldEvent } from './field-event.ts'

/**
 * `searching`: no document yet; `reading`: inside it; `complete`: it closed. At the end of the text also `truncated`:
 * it did not close; `absent`: there was none. `broken`: some part is not JSON; `limit`: it is too large.
 */
export type ParserState = 'searching' | 'reading' | 'complete' | 'truncated' | 'absent' | 'broken' | 'limit'

/**
 * Finds one document in a text that comes in pieces, and reads it. A place where the document may begin is a candidate;
 * a candidate that closes or breaks before it is recognised leaves no trace. The first that is recognised is the only
 * one.
 */
export class TextParser {
  state: ParserState = 'searching'
  /** Why there is no complete document. */
  problem = ''

  private readonly options: ReaderOptions
  private readonly finder: DocumentFinder
  private readonly texts = new TextCache()
  private reader: DocumentReader
  private phase: number
  private text = ''
  private at = 0
  /** The length of the text before `text`. */
  private offset = 0
  /** Where in the whole text the candidate begins, and its part in earlier pieces of text. */
  private start = 0
  private kept = ''
  /** How many characters have been read more than once. */
  private reread = 0
  /** Keys of the last object that did not match the schema. */
  private otherKeys: readonly string[] = []

  constructor(options: ReaderOptions) {
    this.options = options
    this.finder = new DocumentFinder(options.rule)
    this.reader = new DocumentReader(options, this.texts)
    this.phase = options.isStrict ? reading : seeking
  }

  push(chunk: string): readonly FieldEvent[] {
    if (this.phase === over) return nothing
    const { maxLength } = this.options.limits
    const left = maxLength - this.offset
    this.text = chunk.length > left ? chunk.slice(0, left) : chunk
    this.at = this.offset === 0 && chunk.charCodeAt(0) === byteOrderMark ? 1 : 0
    this.advance()
    if (chunk.length > left) this.stop('limit', `The text is longer than ${maxLength} characters.`)
    this.leaveText()
    return this.take()
  }

  end(): readonly FieldEvent[] {
    while (this.phase === reading || this.phase === tail) this.resolveCandidate()
    if (this.phase === seeking) this.stop('absent', this.whyAbsent())
    return this.take()
  }

  get value(): unknown {
    return this.reader.isCommitted ? this.reader.value : undefined
  }

  get notes(): DocumentReader['notes']['list'] {
    return this.reader.isCommitted ? this.reader.notes.list : []
  }

  private advance(): void {
    while (this.at < this.text.length && this.phase !== over) {
      if (this.phase === reading) this.read()
      else if (this.phase === seeking) this.seek()
      else this.readTail()
    }
  }

  private seek(): void {
    this.at = this.finder.find(this.text, this.at)
    if (this.at === this.text.length) return
    this.start = this.offset + this.at
    this.kept = ''
    this.reader = new DocumentReader(this.options, this.texts)
    this.phase = reading
  }

  private read(): void {
    const { reader } = this
    this.at = reader.read(this.text, this.at)
    this.look(reader)
  }

  private look(reader: DocumentReader): void {
    if (reader.isCommitted && this.state === 'searching') this.state = 'reading'
    if (reader.problem !== null) this.fail(reader, reader.problem)
    else if (reader.isClosed) this.close(reader)
  }

  private close(reader: DocumentReader): void {
    const { value } = reader
    if (this.options.isStrict || typeof value !== 'object' || value === null) {
      this.phase = tail
      return
    }
    if (reader.isCommitted) return this.stop('complete', '')
    this.otherKeys = Object.keys(value).slice(0, 5)
    this.finder.resume()
    this.phase = seeking
  }

  /** Behind strict JSON only space may follow; a document that is a single value needs a line of its own. */
  private readTail(): void {
    const { isStrict } = this.options
    const code = this.text.charCodeAt(this.at)
    if (!isStrict && isLineEnd(code)) return this.acceptTail()
    if (isStrict ? isSpace(code) : isAnySpace(code)) this.at++
    else if (isStrict) this.stop('broken', `There is more text after the JSON, ${this.place()}.`)
    else this.reject()
  }

  private acceptTail(): void {
    this.reader.isCommitted = true
    this.stop('complete', '')
  }

  /** Called when no more text comes: decides what the open candidate is. */
  private resolveCandidate(): void {
    if (this.phase === tail) return this.acceptTail()
    const { reader } = this
    reader.finish()
    if (reader.problem !== null || reader.isClosed) this.look(reader)
    else if (!reader.isCommitted) this.reject()
    else if (this.options.isStrict && reader.isUntouched) this.stop('absent', 'There is no text.')
    else this.stop('truncated', 'The text ends before the JSON does.')
    this.advance()
  }

  private fail(reader: DocumentReader, problem: DocumentProblem): void {
    if (!reader.isCommitted) return this.reject()
    const place = problem.reason === 'broken' ? `It is not JSON ${this.place()}: ` : ''
    this.stop(problem.reason, `${place}${problem.message}`)
  }

  /**
   * Goes back to look for a document inside the failed candidate. Text that would have to be read again and again,
   * which nobody writes by accident, is skipped instead: time stays in proportion to the length.
   */
  private reject(): void {
    const here = this.offset + this.at
    this.reread += here - this.start
    this.phase = seeking
    this.finder.resume()
    if (this.reread > here * rereadTimes + rereadSlack) return
    this.text = this.kept + this.text
    this.offset -= this.kept.length
    this.kept = ''
    this.at = this.start + 1 - this.offset
  }

  /** Drops the text that has been read, except for an open candidate. */
  private leaveText(): void {
    if (this.phase === seeking || this.phase === over || this.reader.isCommitted) this.kept = ''
    else this.kept += this.text.slice(Math.max(0, this.start - this.offset))
    this.offset += this.text.length
    this.text = ''
    this.at = 0
  }

  private stop(state: ParserState, problem: string): void {
    if (this.phase === over) return
    if (state !== 'complete') this.reader.cut()
    this.state = state
    this.problem = problem
    this.phase = over
  }

  private take(): readonly FieldEvent[] {
    const { reader } = this
    if (!reader.isCommitted || reader.events.length === 0) return nothing
    const { events } = reader
    reader.events = []
    return events
  }

  private whyAbsent(): string {
    if (this.finder.isInThink) return 'The text ends inside a block of thoughts, before any answer.'
    if (this.otherKeys.length === 0) return 'There is no JSON of the right form in the text.'
    const keys = this.otherKeys.map((key) => JSON.stringify(key.slice(0, 40))).join(', ')
    return `There is JSON in the text, but none of its keys is known: ${keys}.`
  }

  private place(): string {
    return `at character ${this.offset + this.at + 1}`
  }
}

const seeking = 0
const reading = 1
const tail = 2
const over = 3

const rereadTimes = 4
const rereadSlack = 65_536
const nothing: readonly FieldEvent[] = Object.freeze([])
