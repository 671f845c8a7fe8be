// The port for recording and replaying runs: a tape stands at the doors to models, code and sources. `testing/replay`
// implements it; `agent/step/call`, `tool/invoke`, `delegation/run` and `runtime` ask it where there is one. Mostly
// there is none, and nothing of this file runs.
//
// Stays true:
// - A tape is inside of hooks and permissions: both work on replay as they do live.
// - A tape sees the results of code, never its secrets: those are named to it, so that it can leave them out.
// - A runtime has one tape, for its whole life.

import { DefinitionError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import type { Work } from '../engine/engine.ts'
import type { Block, Content } from '../graph/content.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { ModelRequest, Part } from '../model/model.ts'
import type { CurrentCall } from './current.ts'
import type { OpenSource } from './source.ts'
import type { ToolContext } from './tool.ts'

/**
 * Stands between a node and its calls while runs are recorded or replayed: see `record` and `replay` of
 * `legate/testing`. The one door to a model and the one where code runs ask it (I8).
 */
export interface Tape {
  /** True on replay: calls take no time, and no time limit counts. */
  readonly isPlayed: boolean
  /** The answer of the model, live or recorded. */
  ask(asking: TapedModelCall): AsyncIterable<Part>
  /** The result of the node's code, live or recorded. */
  run(running: TapedNode, code: TapedCode): Promise<CodeResult>
  /** A started source of tools, live or recorded. */
  source(name: string, start: () => Promise<OpenSource>): Promise<OpenSource>
  /** Called when this process has finished the node: its result is in the rows. */
  left(nodeId: Id): void
  close(): void | Promise<void>
}

export interface TapedModelCall {
  readonly node: Node
  /** `provider/model`. */
  readonly model: string
  readonly request: ModelRequest
  /** The signal of the call, which may be stopped although its node continues. */
  readonly signal: AbortSignal
  readonly work: Work
  /** Calls the model. */
  answer(): AsyncIterable<Part>
  /** The model's secrets, which no recording may keep. */
  secrets(): Promise<readonly string[]>
}

export interface TapedNode {
  readonly node: Node
  /** The name of the tool, or of the kind of node. */
  readonly name: string
  readonly input: Json
  /** Null for code that cannot start agents. */
  readonly current: CurrentCall | null
  readonly work: Work
  /** Finds an agent that is declared beside the code, which may have started it. */
  agentNamed?(name: string): object | undefined
}

/** Runs the code; `watch` receives its progress. */
export type TapedCode = (watch?: Watch) => Promise<CodeResult>
export type Watch = (message: string, data: Json) => void

/** The result of code. */
export type CodeResult =
  /** `shown` is the content for the model. Default: the value itself. */
  | { readonly value: Json; readonly shown?: Content }
  /** It failed. `code` is set where something else than the code itself failed. */
  | { readonly error: string | readonly Block[]; readonly code?: string }
  /** It was stopped before its end; nobody knows whether it had its effect. */
  | { readonly stopped: 'cancel' | 'timeout' | 'lost' }
  /** Its process died, and the node was recovered for this reason. */
  | { readonly interrupted: string }

/** Returns the tape of a runtime that has no other one yet. */
export function asOnlyTape(tape: Tape, known: Tape | null): Tape {
  if (known === null) return tape
  throw new DefinitionError('definition', 'This runtime is recorded or played back already. Make one for each file.')
}

/** Tells the tape when a node has ended. */
export function leaveTape(tape: Tape, nodeId: Id, ended: void | Promise<void>): void | Promise<void> {
  if (ended instanceof Promise) return ended.finally(() => tape.left(nodeId))
  tape.left(nodeId)
}

/** Wraps a context so that `watch` also receives its progress. */
export function watchedContext(context: ToolContext, watch: Watch | undefined): ToolContext {
  if (watch === undefined) return context
  const progress = (message: string, data: Json = null) => {
    const isShown = context.progress(message, data)
    if (isShown) watch(message, data)
    return isShown
  }
  return Object.create(context, { progress: { value: progress, enumerable: true } }) as ToolContext
}
