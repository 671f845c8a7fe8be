import { isoOf } from './task.ts'
import type { A2aPlace, A2aState, A2aUpdate } from './wire.ts'

/** A push notification that a peer asked for. */
export interface PushConfig {
  /** The peer's name for it. */
  readonly id: string
  readonly url: string
  /** Goes back with each message. One that begins with `whsec_` is the secret that messages are signed with, and does not. */
  readonly token: string
  /** Goes back in the header `Authorization`; null: no such header. */
  readonly authentication: { readonly scheme: string; readonly credentials: string } | null
}

/** The push notifications of one principal's runs. */
export interface PushStore {
  /** Throws where one could not be made: before the run that it is about begins. */
  check(config: PushConfig): Promise<void>
  /**
   * Makes one, or replaces the one of this id. The answer has the secret, which is not shown again. `since`: also what happened
   * in the run after this moment is told.
   */
  make(runId: string, config: PushConfig, since?: number): Promise<PushConfig>
  list(runId: string): Promise<readonly PushConfig[]>
  remove(runId: string, id: string): Promise<void>
}

/** The body of a push notification: the new state, without anything that anybody said. */
export function pushBody(place: A2aPlace, state: A2aState, at: number): A2aUpdate {
  return { statusUpdate: { ...place, status: { state, timestamp: isoOf(at) } } }
}
