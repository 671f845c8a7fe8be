import type { ChatRecord } from '../../agent/request/chat-record.ts'
import { DefinitionError, messageOf } from '../../base/error.ts'
import { int, list, oneOf, type Rules, readOptions } from '../../base/options.ts'
import { readPath } from '../../output/path-pattern.ts'

/** A slot, or a place in it. */
export type ChatPlace = string | readonly [slot: string, path?: string]

export interface ChatOptions {
  /** What of a request is kept in the history: slots, or `[slot, path]`. Left out: the input. */
  readonly recordInputPaths?: readonly ChatPlace[]
  /** What of an answer that is data: paths, `reply`, `/items/0/name`, `items[*].name`. Left out: the whole text. */
  readonly recordOutputPaths?: readonly string[]
  /** `all` of them, as YAML, or the `first` that is there. Default `all`. */
  readonly recordInputMode?: ChatRecord['inputMode']
  readonly recordOutputMode?: ChatRecord['outputMode']
  /** The most characters of history that a request is shown: the newest messages that fit. */
  readonly maxLength?: number
}

const mode = oneOf('all', 'first')

const OPTIONS: Rules<ChatOptions> = {
  recordInputPaths: list,
  recordOutputPaths: list,
  recordInputMode: mode,
  recordOutputMode: mode,
  maxLength: int(0),
}

/** What a chat keeps, in one form. Paths that cannot be read are refused here. */
export function readRecord(options: ChatOptions): ChatRecord {
  readOptions('chatSession()', options, OPTIONS)
  const { recordInputMode = 'all', recordOutputMode = 'all', maxLength = null } = options
  return {
    input: readPlaces(options.recordInputPaths ?? []),
    inputMode: recordInputMode,
    output: readPaths(options.recordOutputPaths ?? []),
    outputMode: recordOutputMode,
    maxLength,
  }
}

export function readPlaces(places: readonly ChatPlace[]): ChatRecord['input'] {
  if (!Array.isArray(places)) refuse('recordInputPaths is a list of slots, or of [slot, path].')
  return places.map((place: unknown) => {
    const [slot, path = ''] = Array.isArray(place) ? (place as unknown[]) : [place]
    if (typeof slot !== 'string' || slot === '') refuse('a place in a request is a slot, or [slot, path].')
    return [slot, checkedPath(path)] as const
  })
}

export function readPaths(paths: readonly string[]): readonly string[] {
  if (!Array.isArray(paths)) refuse('recordOutputPaths is a list of paths.')
  return paths.map((path: unknown) => checkedPath(path))
}

function checkedPath(path: unknown): string {
  if (typeof path !== 'string') refuse(`a path is a text, not ${JSON.stringify(path)}.`)
  try {
    readPath(path)
    return path
  } catch (error) {
    return refuse(messageOf(error))
  }
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `chatSession(): ${message}`)
}
