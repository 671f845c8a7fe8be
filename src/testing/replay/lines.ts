import type { Json } from '../../base/json.ts'
import type { FinishReason, Part } from '../../model/model.ts'
import type { Given } from '../../tool/tape.ts'

/** One line of a recording, beside the first, which says what the file is. */
export type Line = RunLine | AnswerLine | CodeLine | SourceLine

/** A run at the root that was recorded. */
export interface RunLine {
  /** Its name in addresses: its agent's, with a number from the second on. */
  readonly run: string
  readonly agent: string
  readonly input: Json
  /** Of its conversation: a recording goes on with it in another process. */
  readonly id: string
}

/** What a model was asked and said. */
export interface AnswerLine extends Ids {
  readonly at: string
  readonly model: string
  readonly request: PackedRequest
  readonly answer: readonly Said[]
  readonly error?: { readonly message: string; readonly retryable: boolean }
  /** Nobody waited for the rest. */
  readonly stopped?: true
}

/** What code was given and gave. */
export interface CodeLine extends Ids {
  readonly at: string
  readonly tool: string
  readonly input: Json
  readonly progress?: readonly { readonly message: string; readonly data: Json }[]
  /** The agents it started, in order. */
  readonly children?: readonly StartedInside[]
  readonly result: Given
  /** Its own node, run and conversation, as its result names them. */
  readonly own?: readonly string[]
}

export interface StartedInside {
  readonly agent: string
  readonly input: Json
  readonly mode: 'called' | 'background'
  readonly wake?: 'auto' | 'passive'
  /** Which of them had ended before: their places in the list. */
  readonly after?: readonly number[]
}

/** The tools of a source that was started. */
export interface SourceLine {
  readonly source: string
  readonly tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: Json }[]
  readonly effects: readonly string[]
  readonly versions: readonly string[]
  readonly notes: string
  readonly warnings: readonly string[]
  readonly failed?: string
}

interface Ids {
  /** Ids of ours that are new in this line. */
  readonly ids?: { readonly [token: string]: string }
}

/** A request without what is the same as in the one of an earlier line: so many first messages, and all that is left out. */
export interface PackedRequest {
  readonly after?: string
  readonly keep?: number
  readonly messages: readonly Json[]
  readonly tools?: Json
  readonly settings?: Json
  readonly outputSchema?: Json
}

/**
 * A text is a delta as it came; `[text]` one of a reasoning. `after` says that what follows came when that other line was
 * already there.
 */
export type Said =
  | string
  | readonly [reasoning: string]
  | { readonly after: string }
  | { readonly finish: FinishReason; readonly usage: Json }
  | Exclude<Part, { readonly type: 'text-delta' | 'reasoning-delta' | 'finish' }>

/** The name of an agent at the end of an address: good enough to find a request that is much the same. */
export function lastAgent(at: string): string {
  return /^[^~+.@]*/.exec(at.slice(at.lastIndexOf('/') + 1))?.[0] ?? ''
}
