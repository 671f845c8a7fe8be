// The incremental parser of structured output, as `legate/output` exports it: text comes in pieces, field events go
// out. `agent/step` judges and watches answers with it, `conversation/fields` reads fields for users, and
// `agent/planner` reads plans. `TextParser` finds the document, `DocumentReader` reads it, `FieldCheck` checks single
// fields.
//
// Stays true:
// - However the text is cut into pieces, the events add up to the same document.
// - Time and memory stay in proportion to the length of the text, whatever a model writes (I10).
// - It never throws because of the text: a wrong document is a state, a problem in words, and the part that was read.

import { InputError } from '../base/error.ts'
import { anything, flag, int, type OptionRules, readOptions, record } from '../base/options.ts'
import {
  type CheckedSchema,
  type InferInput,
  type InferOutput,
  type Issue,
  readSchema,
  type Schema,
} from '../base/schema/schema.ts'
import { PARSER_LIMITS, type ParserLimits } from './chars.ts'
import { FieldCheck } from './field-check.ts'
import type { FieldEvent } from './field-event.ts'
import type { FieldPath, FieldValue } from './field-path.ts'
import { spelledOut } from './locate.ts'
import { type PathPattern, readPath } from './path-pattern.ts'
import { commitRule, viewSchema } from './schema-view.ts'
import { type ParserState, TextParser } from './text-parser.ts'

export interface FieldParserOptions<S extends Schema = Schema> {
  /** The schema of the document. It also tells the document from other JSON in the text. */
  readonly schema?: S
  /** True: JSON to the letter with nothing around it. Default: JSON5 anywhere in a text. */
  readonly strict?: boolean
  /** How long, deep and large a document may be. */
  readonly limits?: Partial<ParserLimits>
}

export type ParserResult<T> =
  | { readonly ok: true; readonly value: T; readonly notes: readonly Issue[] }
  | {
      readonly ok: false
      readonly reason: 'absent' | 'truncated' | 'broken' | 'limit' | 'invalid'
      /** Problems to report to the model, at least one. */
      readonly issues: readonly Issue[]
      /** The part that was read before the text ended; undefined when nothing was read. */
      readonly partial: unknown
      readonly notes: readonly Issue[]
    }

/** Makes a parser for one text that comes in pieces. Throws a DefinitionError for an invalid schema. */
export function fieldParser<S extends Schema = JsonDocument>(
  options: FieldParserOptions<S> = {},
): FieldParser<InferInput<S>, InferOutput<S>> {
  readOptions('fieldParser()', options, { schema: anything, strict: flag, limits: record })
  if (options.limits !== undefined) readOptions('fieldParser({ limits })', options.limits, LIMITS)
  const schema = options.schema === undefined ? null : readSchema(options.schema, 'the schema of a parser')
  return new FieldParser(schema as CheckedSchema<InferOutput<S>> | null, options)
}

const LIMITS: OptionRules<ParserLimits> = { maxDepth: int(1), maxLength: int(1), maxValues: int(1) }

/** Any JSON at all. */
type JsonDocument = Readonly<Record<string, unknown>>

/** `Raw` is the type that the model writes, `Read` the type after validation. */
export class FieldParser<Raw = unknown, Read = Raw> {
  private readonly schema: CheckedSchema<Read> | null
  private readonly parser: TextParser
  private fieldCheck: FieldCheck | undefined
  private isEnded = false

  constructor(schema: CheckedSchema<Read> | null, options: Omit<FieldParserOptions, 'schema'>) {
    this.schema = schema
    this.parser = new TextParser({
      isStrict: options.strict ?? false,
      limits: { ...PARSER_LIMITS, ...options.limits },
      rule: commitRule(schema === null ? undefined : viewSchema(schema.jsonSchema)),
    })
  }

  get state(): ParserState {
    return this.parser.state
  }

  /**
   * The document as far as it has been read, before validation. It is no copy: it grows as text comes, and an equal
   * list may replace a list that closes. Read it, do not change it.
   */
  get value(): unknown {
    return this.parser.value
  }

  /** Explains to the model why there is no document; empty while there may still be one. */
  get problem(): string {
    return this.parser.problem
  }

  /** Notes about a document that could be read: doubled keys, numbers that JSON cannot keep. */
  get notes(): readonly Issue[] {
    return this.parser.notes
  }

  /** Takes the next piece of text, wherever it is cut, and returns the events it caused, in order. */
  push(text: string): readonly FieldEvent[] {
    if (this.isEnded) throw new InputError('invalid_input', 'push() came after end(); use a new parser for a new text.')
    if (typeof text !== 'string') throw new InputError('invalid_input', 'push() takes text: decode bytes before.')
    return this.parser.push(text)
  }

  /**
   * Ends the text. Returns an event for everything that is still open, the innermost first; nothing when called again.
   */
  end(): readonly FieldEvent[] {
    this.isEnded = true
    return this.parser.end()
  }

  /** Checks a field that is done against its part of the schema; empty when it fits. Also kept in `event.issues`. */
  async check(event: FieldEvent): Promise<readonly Issue[]> {
    if (this.schema === null) return []
    this.fieldCheck ??= new FieldCheck(this.schema.jsonSchema)
    event.issues = await this.fieldCheck.check(event.path, event.value)
    return event.issues
  }

  /** Prepares the checks of fields at these paths. Never rejects. */
  async prepare(patterns: readonly PathPattern[]): Promise<void> {
    if (this.schema === null) return
    this.fieldCheck ??= new FieldCheck(this.schema.jsonSchema)
    for (const path of patterns.flatMap(spelledOut)) await this.fieldCheck.prepareAt(path)
  }

  /**
   * Reads `source` to its end and yields each field at `path`, checked, as soon as it is done. Without a path it yields
   * all fields.
   */
  async *fields<P extends FieldPath<Raw>>(
    source: Iterable<string> | AsyncIterable<string>,
    path?: P,
  ): AsyncGenerator<FieldEvent<FieldValue<Raw, P>>> {
    const pattern = path === undefined ? undefined : readPath(path)
    for await (const text of source) yield* this.checked(this.push(text), pattern)
    yield* this.checked(this.end(), pattern)
  }

  /** The whole document, validated. Never rejects because of the model's text. */
  async result(): Promise<ParserResult<Read>> {
    const { state, problem, value: partial, notes } = this.parser
    if (state === 'searching' || state === 'reading') {
      throw new InputError('invalid_input', 'The text is not over: call end() before result().')
    }
    if (state !== 'complete') {
      return { ok: false, reason: state, issues: [{ path: [], message: problem }], partial, notes }
    }
    const checked =
      this.schema === null ? { ok: true as const, value: partial as Read } : await this.schema.validate(partial)
    if (checked.ok) return { ok: true, value: checked.value, notes }
    return { ok: false, reason: 'invalid', issues: checked.issues, partial, notes }
  }

  private async *checked<Value>(
    events: readonly FieldEvent[],
    pattern: PathPattern | undefined,
  ): AsyncGenerator<FieldEvent<Value>> {
    for (const event of events) {
      if (event.kind !== 'done' || (pattern !== undefined && !event.isAt(pattern))) continue
      await this.check(event)
      yield event as FieldEvent<Value>
    }
  }
}
