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
 * What stands between a node and what it calls while runs are recorded or played back: see `record` and `replay` of
 * `legate/testing`. It is asked at the one door to a model and at the one where code runs (I8).
 */
export interface Tape {
  /** Nothing is really called: it takes no time, and no time limit of a call counts. */
  readonly isPlayed: boolean
  /** The answer of the model, or what was recorded of it. */
  ask(asking: Asking): AsyncIterable<Part>
  /** What the node's code gave, or what was recorded of it. */
  run(running: Running, code: TapedCode): Promise<Given>
  /** Tools from elsewhere, started; or what was recorded of them. */
  source(name: string, start: () => Promise<OpenSource>): Promise<OpenSource>
  /** The node is over as far as this process goes: what it came to is in the rows. */
  left(nodeId: Id): void
  close(): void | Promise<void>
}

export interface Asking {
  readonly node: Node
  /** `provider/model`. */
  readonly model: string
  readonly request: ModelRequest
  /** Of the call, which may be stopped although its node goes on. */
  readonly signal: AbortSignal
  readonly work: Work
  /** Really asks. */
  answer(): AsyncIterable<Part>
  /** What the model was given that no recording may keep. */
  secrets(): Promise<readonly string[]>
}

export interface Running {
  readonly node: Node
  /** What is run: the name of a tool, or of a kind of node. */
  readonly name: string
  readonly input: Json
  /** Null for what cannot start agents. */
  readonly current: CurrentCall | null
  readonly work: Work
  /** The agents that are declared where the code is, by name: it may have started them. */
  agentNamed?(name: string): object | undefined
}

/** Runs the code; `watch` hears what it says of its progress. */
export type TapedCode = (watch?: Watch) => Promise<Given>
export type Watch = (message: string, data: Json) => void

/** What code came to. */
export type Given =
  /** `shown` is what a model reads of it; left out: the value itself. */
  | { readonly value: Json; readonly shown?: Content }
  /** It failed. `code` where it was not the code itself that did. */
  | { readonly error: string | readonly Block[]; readonly code?: string }
  /** It was stopped before its end; what its effect may have been is not known. */
  | { readonly stopped: 'cancel' | 'timeout' | 'lost' }
  /** It was lost with its process, and recovered with this reason. */
  | { readonly interrupted: string }

/** The tape of a runtime that has had none. */
export function only(tape: Tape, known: Tape | null): Tape {
  if (known === null) return tape
  throw new DefinitionError('definition', 'This runtime is recorded or played back already. Make one for each file.')
}

/** Tells that a node is over, when it is. */
export function leave(tape: Tape, nodeId: Id, ended: void | Promise<void>): void | Promise<void> {
  if (ended instanceof Promise) return ended.finally(() => tape.left(nodeId))
  tape.left(nodeId)
}

/** The same context, and what is shown of progress is heard. */
export function watchedContext(context: ToolContext, watch: Watch | undefined): ToolContext {
  if (watch === undefined) return context
  const progress = (message: string, data: Json = null) => {
    const isShown = context.progress(message, data)
    if (isShown) watch(message, data)
    return isShown
  }
  return Object.create(context, { progress: { value: progress, enumerable: true } }) as ToolContext
}
