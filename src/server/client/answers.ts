// The answers of the server that no operation gives. OpenAPI, the reference page and the tests have their schemas from these types
// and those of operations: after a change run `node scripts/reference.mjs`.

import type { Json } from '../../core/base/json.ts'
import type { UiMessage } from '../../core/conversation/ui/ui-chunk.ts'
import type { Principal } from '../../core/grant/principal.ts'
import type { RunEvent } from '../../core/graph/event.ts'
import type { Outcome, OutcomeRecord } from '../../core/graph/outcome.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { RunEventPage, RunLook } from '../../core/operations/look/run-look.ts'
import type { OperationAnswers } from '../../core/operations/methods.ts'
import type { FeedItem } from './feed.ts'

/** Every answer of the API, by the name that OpenAPI has for its schema. */
export interface Answers extends OperationAnswers {
  readonly Problem: ProblemAnswer
  readonly Server: ServerInfo
  readonly RunStart: StartedRun | RunIds
  readonly RunEvent: RunEvent
  readonly RunEvents: RunEventPage
  readonly Result: ResultAnswer
  readonly FeedItem: FeedItem
  readonly Imported: { readonly conversationId: Id }
  readonly Capabilities: AgUiCapabilities
  readonly ChatMessages: readonly UiMessage[]
  readonly StoppedChat: StoppedChat
}

/** The answer to everything that goes wrong, by RFC 9457. */
export interface ProblemAnswer {
  /** A name of the problem: `urn:legate:problem:<code>`. */
  readonly type: string
  readonly title: string
  readonly status: number
  /** One line for people: what is wrong. */
  readonly detail: string
  /** An error code of the library, or one of HTTP, such as `unauthenticated`. */
  readonly code: string
  /** Advice: your next step. */
  readonly advice?: string
  /** More about the problem, such as who answered first. */
  readonly details?: Json
}

/** A run that was just started. */
export interface StartedRun extends Omit<RunLook, 'outcome'> {
  /** How it ended, with its text and its output for who waited for it; null while it goes on. */
  readonly outcome: (OutcomeRecord & Partial<Outcome>) | null
}

/** A run that was started by somebody who may not read it. */
export interface RunIds {
  readonly runId: Id
  readonly conversationId: Id
}

/** A chat that was asked to stop. */
export interface StoppedChat {
  /** How many runs were asked to stop. */
  readonly stopped: number
}

/** A server as a caller sees it. */
export interface ServerInfo {
  readonly version: string
  /** Who you are, and what you may do. */
  readonly principal: Principal
  /** The most that the server lets you ask for. */
  readonly limits: { readonly [name: string]: number }
}

/** A run that was asked for its outcome; null while it has not ended. */
export interface ResultAnswer {
  readonly runId: Id
  readonly outcome: Outcome | null
}

/** The abilities of an agent, as AG-UI says them. */
interface AgUiCapabilities {
  readonly identity: { readonly name: string; readonly description: string; readonly provider: string }
  readonly transport: { readonly streaming: boolean }
  readonly tools: { readonly supported: boolean }
  readonly output: { readonly structuredOutput: boolean }
  readonly state: { readonly snapshots: boolean; readonly deltas: boolean }
  readonly multiAgent: {
    readonly supported: boolean
    readonly delegation: boolean
    readonly subagents: readonly { readonly name: string }[]
  }
  readonly reasoning: { readonly supported: boolean; readonly streaming: boolean }
  readonly humanInTheLoop: {
    readonly supported: boolean
    readonly approvals: boolean
    readonly interrupts: boolean
    readonly approveWithEdits: boolean
  }
}
