import type { Clock } from '../../base/clock.ts'
import { FieldError, type FieldFailure, messageOf } from '../../base/error.ts'
import { describeIssues, type Issue } from '../../base/schema/schema.ts'
import type { FieldEvent } from '../../fields/field-event.ts'
import type { PathPattern } from '../../fields/path-pattern.ts'
import type { RunEvent } from '../../graph/event.ts'
import type { Status } from '../../graph/outcome.ts'
import { readFields } from './read-fields.ts'
import type { FieldBatch, FieldSource } from './run-field.ts'

export interface FieldOptions<Default = never> {
  /** Rejects when the field has not come by then; the run continues. */
  readonly timeoutMs?: number
  /** Resolves with this instead of rejecting, where the answer has no such field. */
  readonly default?: Default
}

export interface WantedField {
  readonly text: string
  readonly pattern: PathPattern
  readonly options: FieldOptions<unknown>
  readonly clock: Clock
  /** The outcome of the run. */
  readonly result: () => Promise<{ readonly status: Status; readonly error: { readonly message: string } | null }>
}

/** The first value at the path that fits, as soon as it is complete. */
export async function waitForField(source: FieldSource, wanted: WantedField): Promise<unknown> {
  const { timeoutMs } = wanted.options
  const batches = closable(source, readFields)
  const found = find(batches, wanted)
  if (timeoutMs === undefined) return found
  return withinTime(found, wanted, timeoutMs).finally(() => batches.return?.())
}

interface SearchState {
  issues: readonly Issue[]
  partial: unknown
  /** True when the last answer ended in the middle of its document. */
  isCut: boolean
}

async function find(batches: AsyncIterable<FieldBatch>, wanted: WantedField): Promise<unknown> {
  const seen: SearchState = { issues: [], partial: undefined, isCut: false }
  for await (const batch of batches) {
    if (batch.isReset) seen.isCut = false
    const found = await findIn(batch, wanted.pattern, seen)
    if (found !== undefined) return found.value
  }
  return without(wanted, seen)
}

async function findIn(
  { events, parser }: FieldBatch,
  pattern: PathPattern,
  seen: SearchState,
): Promise<FieldEvent | undefined> {
  for (const event of events) {
    if (event.kind === 'truncated') seen.isCut = true
    if (!event.isAt(pattern)) continue
    seen.partial = event.value
    if (event.kind !== 'done') continue
    seen.issues = await parser.check(event)
    if (seen.issues.length === 0) return event
  }
  return undefined
}

/** Called when the run is over and the field never came. */
async function without(wanted: WantedField, seen: SearchState): Promise<unknown> {
  const ended = await wanted
    .result()
    .catch((error: unknown) => ({ status: 'cancelled' as const, error: { message: messageOf(error) } }))
  const reason = reasonOf(ended.status, seen)
  if (reason === 'absent' && 'default' in wanted.options) return wanted.options.default
  const why = ended.error === null ? '' : ` The run ended ${ended.status}: ${ended.error.message}`
  throw failure(wanted, reason, { ...seen, message: `${WORDS[reason]}${why}` })
}

function reasonOf(status: Status, { issues, isCut }: SearchState): FieldFailure {
  if (status === 'cancelled' || status === 'timed_out') return 'aborted'
  if (issues.length > 0) return 'invalid'
  return isCut ? 'truncated' : 'absent'
}

const WORDS: Readonly<Record<FieldFailure, string>> = {
  absent: 'is not in the answer.',
  truncated: 'is not complete: the answer ends before it does.',
  invalid: 'does not fit the schema.',
  aborted: 'did not come: the run was stopped first.',
  timeout: 'has not come yet. The run goes on.',
}

function failure(
  { text }: WantedField,
  reason: FieldFailure,
  { message, issues = [], partial }: Partial<SearchState> & { readonly message: string },
): FieldError {
  const lines = issues.length === 0 ? '' : `\n${describeIssues(issues)}`
  const field = text === '' ? 'The answer' : `The field ${text}`
  return new FieldError(`${field} ${message}${lines}`, { details: { reason, partial, field: text, issues } })
}

function withinTime(found: Promise<unknown>, wanted: WantedField, timeoutMs: number): Promise<unknown> {
  const { clock } = wanted
  return new Promise((resolve, reject) => {
    const late = () => reject(failure(wanted, 'timeout', { message: WORDS.timeout }))
    const stop = clock.at(clock.now() + timeoutMs, late)
    found.then(resolve, reject).finally(stop)
  })
}

/** Runs `read` on the source as an iterator that closes at once: a generator alone would wait for the next event. */
export function closable<T>(
  source: FieldSource,
  read: (source: FieldSource) => AsyncGenerator<T, void>,
): AsyncIterableIterator<T> {
  const open: AsyncIterator<RunEvent>[] = []
  const events = () => {
    const iterator = source.events()[Symbol.asyncIterator]()
    open.push(iterator)
    return { [Symbol.asyncIterator]: () => iterator }
  }
  const inner = read({ ...source, events })
  return {
    next: () => inner.next(),
    return: async () => {
      for (const iterator of open) await iterator.return?.()
      return inner.return()
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
