// The messages of webhooks: made from the events of a tree, without anything that anybody said.

import { sha256 } from '../../core/base/hash.ts'
import { HOOK_TYPES } from '../../core/operations/form/webhook-info.ts'
import type { TreeChange } from '../../doors/rows.ts'
import type { Json, Principal, Runtime } from '../../index.ts'
import type { WebhookType } from '../client/index.ts'
import type { DeliveryData } from './deliveries.ts'

type StoredEvent = Awaited<ReturnType<Runtime['store']['events']>>[number]

/** A message of one type about one event. */
export interface HookMessage {
  readonly type: WebhookType
  readonly seq: number
  /** When it happened. */
  readonly at: number
  readonly runId: string
  readonly data: { readonly [key: string]: Json }
}

type ChangedTree = Pick<TreeChange, 'rootId' | 'agent' | 'owner'>

const WINDOW = 64

/** The messages of a change, in the order of its events. */
export async function webhookMessages(store: Runtime['store'], change: TreeChange): Promise<readonly HookMessage[]> {
  const events = await eventsOf(store, change)
  return events.flatMap((event) => messagesAbout(event, change))
}

/**
 * The events of the commit that made the change. Those of another commit in the same millisecond may come with them: their
 * messages have the same ids as before.
 */
async function eventsOf(store: Runtime['store'], { rootId, seq, at, types }: TreeChange): Promise<StoredEvent[]> {
  for (let size = WINDOW; ; size *= 4) {
    const after = Math.max(0, seq - size)
    const events = await store.events(rootId, after, seq - after)
    if (after > 0 && events[0]?.at === at) continue
    return events.filter((event) => event.at === at && types.includes(event.body.type))
  }
}

/** The messages about one event of a tree. */
export function messagesAbout(event: StoredEvent, change: ChangedTree): HookMessage[] {
  const { seq, at, runId, conversationId, nodeId } = event
  const place = { rootId: change.rootId, conversationId, runId, nodeId, agent: change.agent, owner: change.owner }
  return factsOf(event).map(([type, facts]) => ({ type, seq, at, runId, data: { ...place, seq, ...facts } }))
}

/** A delivery of a message, before its first try. */
export function newDelivery(hookId: string, { rootId, agent }: ChangedTree, { type, seq }: HookMessage): DeliveryData {
  return { hookId, type, rootId, seq, agent, attempts: 0, nextAt: 0, last: null, state: 'waiting' }
}

/** Makes the message of a delivery again; undefined where its event is gone. */
export async function messageOfDelivery(
  store: Runtime['store'],
  change: ChangedTree,
  { seq, type }: Pick<DeliveryData, 'seq' | 'type'>,
): Promise<HookMessage | undefined> {
  const [event] = await store.events(change.rootId, seq - 1, 1)
  return event === undefined ? undefined : messagesAbout(event, change).find((one) => one.type === type)
}

type Facts = { readonly [key: string]: Json }

function factsOf({ body, parentId }: StoredEvent): (readonly [WebhookType, Facts])[] {
  switch (body.type) {
    case 'run-end': {
      if (parentId !== null) return []
      const { status, error, durationMs, usage } = body.outcome
      return [['run.ended', { status, why: error?.code ?? null, durationMs, usage: { ...usage } }]]
    }
    case 'approval-request': {
      const facts = { status: 'waiting', tool: body.call?.name ?? null, seen: body.seen, expiresAt: body.expiresAt }
      return waiting('approval.requested', 'approval', facts)
    }
    case 'question': {
      if (body.to !== 'person') return []
      return waiting('question.asked', 'question', { status: 'waiting', seen: body.seen, expiresAt: body.expiresAt })
    }
    case 'stalled': {
      const { agent, childConversationId, childRunId, lastActivityAt } = body
      const child = { childAgent: agent, childConversationId, childRunId, lastActivityAt }
      return [['run.stalled', { status: 'running', why: 'stalled', ...child }]]
    }
    case 'budget':
      return [['budget.reached', { status: 'running', why: 'budget', limit: body.limit }]]
    default:
      return []
  }
}

function waiting(type: WebhookType, why: string, facts: Facts): (readonly [WebhookType, Facts])[] {
  return [
    ['run.waiting', { ...facts, why }],
    [type, { ...facts, why }],
  ]
}

/** Begins with time and place, so that a list by id is in order. The same event gives the same id. */
export function messageIdOf({ rootId }: Pick<TreeChange, 'rootId'>, { type, seq, at }: HookMessage): string {
  const place = `${at.toString(36).padStart(9, '0')}${String(seq).padStart(9, '0')}${HOOK_TYPES.indexOf(type)}`
  return `msg_${place}${sha256(`${rootId} ${seq} ${type}`).slice(0, 16)}`
}

/** The text that is sent. */
export function webhookBody({ type, at, data }: HookMessage, outcome: Json | undefined): string {
  const more = outcome === undefined ? {} : { outcome }
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data: { ...data, ...more } })
}

const MAX_OUTCOME = 200_000

/** The answer of a run, for webhooks that ask for it; null where it is too long to send. */
export async function outcomeFor(
  runtime: Runtime,
  principal: Principal,
  message: HookMessage,
): Promise<Json | undefined> {
  if (message.type !== 'run.ended') return undefined
  const run = await runtime.as(principal).attach(message.runId)
  const { status, text, output, error } = await run.result
  if (text.length > MAX_OUTCOME) return null
  const outcome: Json = { status, text, output: output as Json, error: error === null ? null : { ...error } }
  return JSON.stringify(outcome).length > MAX_OUTCOME ? null : outcome
}
