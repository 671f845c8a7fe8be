import type { RunEvent } from '../graph/event.ts'
import type { Outcome } from '../graph/outcome.ts'
import type { Id } from '../graph/rows.ts'

/** An outcome whose `output` has the type of the agent's output schema. It is null unless the run completed. */
export type RunOutcome<Out = unknown> = Omit<Outcome, 'output'> & { readonly output: Out | null }

/** The outcome of a run that completed. */
export type CompletedOutcome<Out = unknown> = Omit<Outcome, 'output' | 'status'> & {
  readonly status: 'completed'
  readonly output: Out
}

/** A turn seen from outside. Iterate it for its events, await `result` for its outcome. */
export interface Run<Out = unknown> extends AsyncIterable<RunEvent> {
  readonly id: Id
  readonly conversationId: Id
  /** Resolves with any outcome; rejects only if nothing could be recorded. The process stays alive while it is awaited. */
  readonly result: Promise<RunOutcome<Out>>
  /** Events after a sequence number, as in `event.seq`: to go on where another reader stopped. */
  events(options?: { readonly after?: number }): AsyncIterable<RunEvent>
  /** Asks the run and everything it started to stop. Resolves when the request is recorded. */
  cancel(reason?: string): Promise<void>
}
