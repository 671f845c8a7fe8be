import type { Clock } from '../../base/clock.ts'
import { DefinitionError, InputError } from '../../base/error.ts'
import { anything, flag, number, type OptionRules, readOptions, text } from '../../base/options.ts'
import { hasField } from '../../fields/locate.ts'
import { type PathPattern, readPath } from '../../fields/path-pattern.ts'
import type { LiveEvent, RunEvent } from '../../graph/event.ts'
import { onceLoaded } from '../../store/look.ts'
import { FieldHandlers, type FieldResult } from './field-handlers.ts'
import { doneFields, readFields, wantedBy } from './read-fields.ts'
import { type FieldBatch, type FieldSource, RunField } from './run-field.ts'
import { EventView } from './view.ts'
import { closable, type FieldOptions, type WantedField, waitForField } from './wait-for-field.ts'

export interface RunFieldsParts {
  readonly source: FieldSource
  readonly clock: Clock
  readonly result: WantedField['result']
  readonly report: (error: unknown) => void
}

export interface KeyOptions {
  /** True: refuses a key that the output schema does not know. */
  readonly mustInPrompt?: boolean
}

const KEY: OptionRules<KeyOptions> = { mustInPrompt: flag }
const FIELD: OptionRules<FieldOptions> = { timeoutMs: number(0), default: anything }
const FIELDS: OptionRules<FieldsOptions> = { partial: flag, agent: text, tool: text }

/** The methods of a run's handle that read fields. */
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

  /** Yields each key once, in the order in which they are complete. */
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

  /** Reads the answer without a schema where this process does not have the run's code. */
  private checkOutput(method: string) {
    const { source } = this.parts
    const schema = source.output
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

/**
 * The events of a run as its readers see them, with a `field` event behind the one that completes a field. `events`
 * yields everything of the run and below it; this leaves out what hosts do not forward.
 */
export async function* eventsWithFields(source: FieldSource, after: number): AsyncGenerator<RunEvent, void> {
  const { runId } = source
  const tree = await source.tree()
  const view = new EventView(tree, runId)
  const fields = new EventView(tree, runId, 'fields')
  const { AnswerReader } = await import('./answers.ts')
  const answers = new AnswerReader(source, tree)
  for await (const event of source.events()) {
    const seen = onceLoaded(() => {
      view.prepare([event])
      const batch = fields.show(event) === undefined ? undefined : answers.take(event)
      return { shown: view.show(event), batch }
    })
    const { shown, batch } = seen instanceof Promise ? await seen : seen
    if (event.seq <= after) continue
    if (shown !== undefined) yield shown
    if (batch !== undefined) yield* fieldEvents(batch)
  }
}

async function* fieldEvents({ event, events, parser, place }: FieldBatch): AsyncGenerator<LiveEvent, void> {
  const { seq, at, conversationId, runId, nodeId, path, parentId } = event
  for (const done of events) {
    if (done.kind !== 'done') continue
    const issues = await parser.check(done)
    const { dot: field, value } = done
    const { attempt } = place
    yield { seq, at, conversationId, runId, nodeId, path, parentId, type: 'field', field, value, issues, attempt }
  }
}

export interface FieldsOptions {
  /** True: also yields incomplete fields, `open`, `delta` and `truncated`, and `reset` before the next attempt. */
  readonly partial?: boolean
  /** Reads the answers of agents of this name in the run and below it, instead of the run's own; `*`: of all. */
  readonly agent?: string
  /**
   * Reads the arguments of calls of this tool (`*`: of all) while they are written, instead of the answer: see `call`.
   */
  readonly tool?: string
}

/**
 * Yields the fields at a path as they become complete, checked against their part of the schema. Without a path it
 * yields all.
 */
async function* matchingFields(
  source: FieldSource,
  pattern: PathPattern | null,
  { partial = false, agent, tool }: FieldsOptions,
): AsyncGenerator<RunField, void> {
  const batches = tool === undefined ? readFields(source, agent) : await callFields(source, tool, agent)
  for await (const batch of batches) {
    if (batch.isReset && partial) yield new RunField(null, batch.place)
    for (const event of batch.events) {
      if (!isShown(event.kind, partial) || (pattern !== null && !event.isAt(pattern))) continue
      if (event.kind === 'done') await batch.parser.check(event)
      yield new RunField(event, batch.place)
    }
  }
}

async function callFields(source: FieldSource, tool: string, agent?: string): Promise<AsyncIterable<FieldBatch>> {
  const { readCallFields } = await import('./call-fields.ts')
  return readCallFields(source, tool, wantedBy(source, agent))
}

function isShown(kind: FieldBatch['events'][number]['kind'], partial: boolean): boolean {
  return partial || kind === 'done'
}
