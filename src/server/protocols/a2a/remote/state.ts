// The state that an agent behind A2A keeps in its row, so that a process that comes later goes on with the same remote task.

import type { Json } from '../../../../index.ts'

/** A question that a person was asked, and whether the answer was sent. */
export interface RemoteQuestion {
  readonly text: string
  /** `open`: no answer yet. `sending`: it may have been sent. `sent`: it was. */
  readonly state: 'open' | 'sending' | 'sent'
}

export interface RemoteState {
  /** The hash of the card that it was used with. */
  readonly card: string | null
  /** The message was about to be sent: it may have been. */
  readonly isSending: boolean
  readonly taskId: string | null
  readonly contextId: string | null
  /** The answer of an agent that answered without a task. */
  readonly message: Json
  /** Questions in the order in which they were asked. */
  readonly asked: readonly RemoteQuestion[]
}

const NO_STATE: RemoteState = Object.freeze({
  card: null,
  isSending: false,
  taskId: null,
  contextId: null,
  message: null,
  asked: [],
})

/** Reads a kept value. What is no state of ours is none. */
export function readState(kept: Json): RemoteState {
  const { a2a } = Object(kept) as { readonly a2a?: Json }
  return typeof a2a === 'object' && a2a !== null ? { ...NO_STATE, ...(a2a as object) } : NO_STATE
}

export function stateJson(state: RemoteState): Json {
  return { a2a: { ...state, asked: state.asked.map((one) => ({ ...one })) } }
}
