import { DefinitionError } from '../base/error.ts'
import { lateIterator } from './late-iterator.ts'
import type { Part } from './model.ts'

/** The parts of an answer. A model that no compiler has checked may promise them, or give something else. */
export function partsOf(stream: unknown, modelId: string): AsyncIterator<Part> {
  if (stream instanceof Promise) return lateIterator(stream.then((given: unknown) => iteratorOf(given, modelId)))
  return iteratorOf(stream, modelId)
}

function iteratorOf(stream: unknown, modelId: string): AsyncIterator<Part> {
  const isStream = typeof stream === 'object' && stream !== null && Symbol.asyncIterator in stream
  if (isStream) return (stream as AsyncIterable<Part>)[Symbol.asyncIterator]()
  const message = `The model "${modelId}" has a stream(request, { signal }) that gives no async iterable of parts.`
  throw new DefinitionError('definition', message)
}
