import type { Clock } from '../../base/clock.ts'
import { DefinitionError, InputError } from '../../base/error.ts'
import { anything, flag, number, type Rules, readOptions, text } from '../../base/options.ts'
import { hasField } from '../../output/has-field.ts'
import { type PathPattern, readPath } from '../../output/path-pattern.ts'
import { closable } from './closable.ts'
import { FieldHandlers, type FieldResult } from './field-handlers.ts'
import type { FieldSource } from './field-source.ts'
import { type FieldsOptions, matchingFields } from './matching-fields.ts'
import { doneFields } from './read-fields.ts'
import type { RunField } from './run-field.ts'
import { type FieldOptions, type WantedField, waitForField } from './wait-for-field.ts'

export interface RunFieldsParts {
  readonly source: FieldSource
  readonly clock: Clock
  readonly result: WantedField['result']
  readonly report: (error: unknown) => void
}

export interface KeyOptions {
  /** The key must be one that the output schema knows. */
  readonly mustInPrompt?: boolean
}

const KEY: Rules<KeyOptions> = { mustInPrompt: flag }
const FIELD: Rules<FieldOptions> = { timeoutMs: number(0), default: anything }
const FIELDS: Rules<FieldsOptions> = { partial: flag, agent: text, tool: text }

/** What a handle of a run offers its holder to read fields by. */
export class RunFields {
  private readonly parts: RunFieldsParts
  private handlers: FieldHandlers | undefined

  constructor(parts: RunFieldsParts) {
    this.parts = parts
  }

  fields(path: string | undefined, options: FieldsOptions = {}): AsyncIterableIterator<RunField> {
    readOptions('fields(path, options)', options, FIELDS)
    const pattern = path === undefined ? null : readPath(path)
    if (options.agent === undefined && options.tool === undefined) this.checkOutput('fields')
    return closable(this.parts.source, (source) => matchingFields(source, pattern, options))
  }

  async field(path: string, options: FieldOptions<unknown> = {}): Promise<unknown> {
    readOptions('field(path, options)', options, FIELD)
    const pattern = readPath(path)
    this.checkOutput('field')
    const { source, clock, result } = this.parts
    return waitForField(source, { text: path, pattern, options, clock, result })
  }

  onField(path: string, handler: (value: never, field: RunField<never>) => unknown): void {
    const pattern = readPath(path)
    if (typeof handler !== 'function') {
      throw new InputError('invalid_input', 'onField(path, handler): the handler is a function of the value.')
    }
    this.checkOutput('onField')
    this.handlers ??= new FieldHandlers(this.parts.source, this.parts.report)
    this.handlers.add(pattern, handler)
  }

  async settled(): Promise<FieldResult[]> {
    return this.handlers?.settled() ?? []
  }

  async getKeyResult(key: string, options: KeyOptions & FieldOptions<unknown>): Promise<unknown> {
    const { mustInPrompt, ...others } = readOptions('getKeyResult(key, options)', options, { ...FIELD, ...KEY })
    this.checkKeys([key], 'getKeyResult', { mustInPrompt: mustInPrompt ?? false })
    return this.field(key, others)
  }

  /** Each key once, in the order in which they are complete. */
  waitKeys(keys: readonly string[], options: KeyOptions): AsyncIterableIterator<[path: string, value: unknown]> {
    const patterns = this.checkKeys(keys, 'waitKeys', options)
    return closable(this.parts.source, (source) => firstOf(source, patterns))
  }

  async startWaiter(): Promise<FieldResult[]> {
    if (this.handlers === undefined) {
      throw new InputError(
        'invalid_input',
        'startWaiter(): there are no handlers. Give some with whenKey(key, handler).',
      )
    }
    return this.handlers.settled()
  }

  checkKeys(keys: readonly string[], method: string, options: KeyOptions): PathPattern[] {
    const { mustInPrompt = false } = readOptions(`${method}()`, options, KEY)
    const schema = this.checkOutput(method)
    return keys.map((key) => {
      const pattern = readPath(key)
      if (!mustInPrompt || schema === undefined || hasField(schema.jsonSchema, pattern)) return pattern
      const message = `${method}(${JSON.stringify(key)}, { mustInPrompt: true }): the output schema has no such key.`
      throw new InputError('invalid_input', message)
    })
  }

  /** Where the run's code is not known here, its answer is read without a schema. */
  private checkOutput(method: string) {
    const { source } = this.parts
    const schema = source.schemaOf(source.runId)
    if (schema !== null) return schema
    const message = `${method}(): the agent of this run has no output. Define one: agent({ output: schema }).`
    throw new DefinitionError('definition', message)
  }
}

async function* firstOf(
  source: FieldSource,
  patterns: readonly PathPattern[],
): AsyncGenerator<[path: string, value: unknown], void> {
  const open = new Set(patterns)
  if (open.size === 0) return
  for await (const { event, parser } of doneFields(source)) {
    const found = [...open].filter((pattern) => event.isAt(pattern))
    if (found.length === 0 || (await parser.check(event)).length > 0) continue
    for (const pattern of found) {
      open.delete(pattern)
      yield [event.dot, event.value]
    }
    if (open.size === 0) return
  }
}
