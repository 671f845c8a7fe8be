import { DefinitionError } from '../base/error.ts'
import { NO_USAGE, type Usage } from '../graph/content.ts'
import type { Part } from './model.ts'

/** The parts of an answer. An untyped model may return a promise of them, or anything else. */
export function partsOf(stream: unknown, modelId: string): AsyncIterator<Part> {
  if (stream instanceof Promise) return openingIterator(stream.then((given: unknown) => iteratorOf(given, modelId)))
  return iteratorOf(stream, modelId)
}

function iteratorOf(stream: unknown, modelId: string): AsyncIterator<Part> {
  const isStream = typeof stream === 'object' && stream !== null && Symbol.asyncIterator in stream
  if (isStream) return (stream as AsyncIterable<Part>)[Symbol.asyncIterator]()
  const message = `The model "${modelId}" has a stream(request, { signal }) that gives no async iterable of parts.`
  throw new DefinitionError('definition', message)
}

/** Reads a stream that is still being opened. It is no generator, because nobody can leave a generator that waits. */
export function openingIterator(opening: Promise<AsyncIterator<Part>>): AsyncIterator<Part> {
  let opened: AsyncIterator<Part> | undefined
  let isOver = false
  const leave = async () => {
    isOver = true
    await opened?.return?.()
    return END
  }
  return {
    next: async () => {
      opened ??= await opening
      return isOver ? leave() : opened.next()
    },
    return: leave,
  }
}

const END: IteratorReturnResult<undefined> = { value: undefined, done: true }

/** The usage that a model reports, after our check. */
export interface ReportedUsage {
  readonly usage: Usage
  /** Why the usage was refused; null where it was accepted. */
  readonly fault: string | null
}

/**
 * The one place that reads a model's usage: whole numbers, 0 or more. It counts nothing else, because the sum would be
 * wrong for ever; a budget then counts the amount that was reserved for the call.
 */
export function readModelUsage(told: unknown): ReportedUsage {
  if (told === undefined || told === null) return refused('nothing')
  if (typeof told !== 'object') return refused(wordsFor(told))
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = told as Usage
  const usage = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }
  for (const key in usage) {
    const count = usage[key as keyof Usage]
    if (!Number.isSafeInteger(count) || count < 0) return refused(`${key} ${wordsFor(count)}`)
  }
  return { usage, fault: null }
}

function refused(what: string): ReportedUsage {
  return { usage: NO_USAGE, fault: what }
}

function wordsFor(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value).slice(0, 40)
}

/** True for a page or a value where a stream of events belongs: another server, a proxy or a login answered. */
export function isDocument(contentType: string): boolean {
  return /\b(?:html|json|xml)\b/i.test(contentType)
}

/** The error for an answer that is no stream. It is never retried: the provider did not answer, or does not stream. */
export function notAStream(contentType: string, beginning?: string): Error {
  const said = beginning === undefined ? '' : `: ${beginning === '' ? 'nothing' : beginning}`
  return new Error(
    `the server answered with ${contentType} where a stream of events (text/event-stream) belongs${said} -- Is the address that of its API, with the path, such as /v1?`,
  )
}
