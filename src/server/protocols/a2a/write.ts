// Writes runs as tasks of A2A, and their events as updates. A task is a run, and nothing is kept beside the rows.

import type { Block, RunTree } from '../../../doors/rows.ts'
import type { Content, Json, RunEvent, RunOutcome } from '../../../index.ts'
import { type A2aPending, pendingParts, pendingSince } from './pending.ts'
import { named } from './read.ts'
import type { A2aArtifact, A2aMessage, A2aMetadata, A2aPart, A2aPlace, A2aState, A2aStatus, A2aUpdate } from './wire.ts'

/** The outcome of a run, as far as states need it. */
type EndedRun = Pick<RunOutcome, 'status' | 'modelCalls' | 'toolCalls' | 'error'>

/** The state of a task whose run has ended. */
export function endState({ status, modelCalls, toolCalls }: Omit<EndedRun, 'error'>): A2aState {
  if (status === 'completed') return 'TASK_STATE_COMPLETED'
  if (status === 'cancelled') return 'TASK_STATE_CANCELED'
  const isRefused = status === 'invalid_input' || status === 'denied'
  return isRefused && modelCalls === 0 && toolCalls === 0 ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED'
}

/** The status of a run, with what of it waits for the peer. */
export function statusOf(run: RunTree, pending: readonly A2aPending[]): A2aStatus {
  const place = { taskId: run.runId, contextId: run.conversationId }
  if (run.outcome !== null) return endStatus(place, run.outcome, run.endedAt ?? 0)
  if (pending.length > 0) return pendingStatus(place, pending)
  const state = run.state === 'queued' ? 'TASK_STATE_SUBMITTED' : 'TASK_STATE_WORKING'
  return { state, timestamp: isoOf(run.startedAt ?? Date.now()) }
}

function endStatus(place: A2aPlace, outcome: EndedRun, endedAt: number): A2aStatus {
  const status = { state: endState(outcome), timestamp: isoOf(endedAt) }
  const why = outcome.error?.message ?? ''
  return why === '' ? status : { ...status, message: agentMessage(place, 'end', [{ text: why }]) }
}

/** A run that waits for the peer. */
export function pendingStatus(place: A2aPlace, pending: readonly A2aPending[]): A2aStatus {
  const key = pending.map(({ of }) => of.seen).join()
  const message = agentMessage(place, `ask-${key.slice(0, 32)}`, pendingParts(pending))
  return { state: 'TASK_STATE_INPUT_REQUIRED', timestamp: isoOf(pendingSince(pending)), message }
}

function agentMessage({ taskId, contextId }: A2aPlace, name: string, parts: readonly A2aPart[]): A2aMessage {
  return { messageId: `${taskId}-${name}`, role: 'ROLE_AGENT', parts, taskId, contextId }
}

/** The answer of a run: its words, and its value where it has one. */
export function artifactsOf(outcome: Pick<RunOutcome, 'content' | 'output' | 'status'>): A2aArtifact[] {
  const said = a2aParts(outcome.content)
  const value = outcome.status === 'completed' ? (outcome.output as Json) : null
  return [
    ...(said.length === 0 ? [] : [{ artifactId: 'answer', name: 'answer', parts: said }]),
    ...(value === null
      ? []
      : [{ artifactId: 'output', name: 'output', parts: [{ data: value, mediaType: 'application/json' }] }]),
  ]
}

/** Figures of a run, for those who know us. */
export function metadataOf({ agent, outcome, usage, cancelRequested }: RunTree): A2aMetadata {
  return {
    'legate.agent': agent,
    'legate.usage': { ...usage },
    ...(outcome === null ? {} : { 'legate.status': outcome.status }),
    ...(outcome?.advice == null ? {} : { 'legate.advice': outcome.advice }),
    ...(cancelRequested ? { 'legate.cancelRequested': true } : {}),
  }
}

/** A line of the conversation. */
export interface SaidLine {
  /** The id that its sender gave it, or that of its node. */
  readonly messageId: string
  readonly isPeer: boolean
  readonly content: Content
}

export function historyOf({ taskId, contextId }: A2aPlace, lines: readonly SaidLine[]): A2aMessage[] {
  return lines.flatMap(({ messageId, isPeer, content }) => {
    const parts = a2aParts(content)
    const role = isPeer ? ('ROLE_USER' as const) : ('ROLE_AGENT' as const)
    return parts.length === 0 ? [] : [{ messageId, role, parts, taskId, contextId }]
  })
}

/** An event of the task's own run as an update; undefined where the peer is not told. What is delegated stays inside. */
export function updateOf(event: RunEvent, place: A2aPlace): A2aUpdate | undefined {
  if (event.runId !== place.taskId) return undefined
  if (event.type === 'run-start') return working(event, place, '')
  const text = saidIn(event)
  return text === '' ? undefined : working(event, place, text)
}

function saidIn(event: RunEvent): string {
  if (event.type === 'progress' || event.type === 'warning' || event.type === 'budget') return event.message
  const isBeside = event.type === 'message' && event.role === 'agent' && event.calls.length > 0
  if (!isBeside) return ''
  const { content } = event
  return typeof content === 'string'
    ? content
    : content.flatMap((one) => (one.type === 'text' ? [one.text] : [])).join('\n')
}

function working({ at, path, seq }: RunEvent, place: A2aPlace, text: string): A2aUpdate {
  const said = text === '' ? {} : { message: agentMessage(place, String(seq), [{ text }]) }
  const status = { state: 'TASK_STATE_WORKING' as const, timestamp: isoOf(at), ...said }
  return { statusUpdate: { ...place, status, metadata: { 'legate.path': [...path] } } }
}

/** The last updates of a task: its artifacts, then its end. */
export function endUpdates(place: A2aPlace, outcome: RunOutcome, endedAt: number): A2aUpdate[] {
  const artifacts = artifactsOf(outcome).map((artifact) => {
    return { artifactUpdate: { ...place, artifact, lastChunk: true } }
  })
  const metadata = { 'legate.status': outcome.status }
  return [...artifacts, { statusUpdate: { ...place, status: endStatus(place, outcome, endedAt), metadata } }]
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}

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

/** The pieces of an answer. Thoughts of the model stay here. */
function a2aParts(content: Content): A2aPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }]
  return content.flatMap(partOf)
}

function partOf(block: Block): A2aPart[] {
  if (block.type === 'reasoning') return []
  if (block.type === 'text') return [{ text: block.text }]
  if (block.type === 'json') return [{ data: block.value, mediaType: 'application/json' }]
  const { data, mediaType, filename = '' } = block
  return [{ ...(/^https?:/i.test(data) ? { url: data } : { raw: data }), mediaType, ...named(filename) }]
}
