import { deriveIds } from '../../base/id.ts'
import { ceilingBelow } from '../../grant/ceiling.ts'
import { textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { type OutcomeRecord, subagentOf } from '../../graph/outcome.ts'
import type { TreeReader } from '../../graph/reader.ts'
import { copyOfLink } from '../../graph/rows.made.ts'
import type { Conversation, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { openTurn, type TurnBriefing } from '../turn/open-turn.ts'
import { newConversation } from '../turn/say.ts'
import { treeBelow } from './release.ts'
import { addDelegation } from './spawn.ts'

/** The longest delay between two tries. */
const MAX_RETRY_DELAY_MS = 30_000

/**
 * Retries a delegation whose child failed in a way that may pass: another child gets the same request. Needs rows only.
 * Undefined when the failure is final.
 */
export function retryChild(draft: Draft, link: Link): Link | undefined {
  const { retry, outcome } = link
  if (retry === null || outcome === null || link.attempt > retry.most || !mayPass(outcome)) return undefined
  const delayMs = Math.min(retry.delayMs * 2 ** (link.attempt - 1), MAX_RETRY_DELAY_MS)
  const host = draft.turn(link.hostTurnId)
  if (!isStillWanted(draft, link, host) || isTooLate(host, draft.now + delayMs)) return undefined
  return tryAgain(draft, link, { host, wakeAt: draft.now + delayMs, outcome })
}

/** The next try of an ended delegation; undefined when there is none. */
export function nextTryOf(reader: Pick<TreeReader, 'link'>, linkId: Id): Id | undefined {
  const retry = reader.link(linkId)?.retry ?? null
  return retry === null ? undefined : reader.link(idsOf(linkId).turn)?.id
}

/** False for a run that a person stopped, and for one that may have had an effect, which is never silently repeated (I4). */
function mayPass({ status, retryable, uncertain, error }: OutcomeRecord): boolean {
  return retryable && status !== 'cancelled' && uncertain.length === 0 && error?.code !== 'dead_letter'
}

function isStillWanted(draft: Draft, link: Link, host: Turn): boolean {
  if (host.state === 'ended' || host.cancel !== null) return false
  const { state } = draft.node(link.taskId)
  if (state !== (link.mode === 'parked' ? 'waiting' : 'running')) return false
  return link.mode !== 'background' && host.account.children < host.limits.children
}

function isTooLate(host: Turn, at: number): boolean {
  return host.deadline !== null && host.deadline <= at
}

function tryAgain(
  draft: Draft,
  link: Link,
  { host, wakeAt, outcome }: { readonly host: Turn; readonly wakeAt: number; readonly outcome: OutcomeRecord },
): Link {
  const ids = idsOf(link.id)
  const first = draft.turn(link.id)
  const attempt = link.attempt + 1
  const home = homeOf(draft, link)
  draft.changeLink(link, { deliveredTo: link.taskId })
  const next = copyOfLink(link, 1)
  next.id = ids.turn
  next.childConversationId = home?.id ?? ids.conversation
  next.attempt = attempt
  next.outcome = null
  next.deliveredTo = null
  addDelegation(draft, host, next)
  const error = outcome.error?.message ?? outcome.status
  draft.event(draft.turn(host.id), link.taskId, { type: 'retry', attempt, wakeAt, error })
  const [seed, ...others] = draft.nodesOf(first.id)
  const briefing = seed === undefined ? null : briefingOf(seed)
  openTurn(draft, home ?? freshHome(draft, link, ids.conversation), {
    turnId: ids.turn,
    nodeIds: briefing === null ? ids.nodes.slice(1) : ids.nodes,
    input: first.input,
    asked: draft.node(first.entryNodeId).metadata['asked'],
    content: (briefing === null ? seed : others[0])?.input.content ?? '',
    briefing,
    limits: first.limits,
    deadline: host.deadline,
    money: first.spend?.limit ?? null,
    tree: treeBelow(host, first.tree?.limit ?? null),
    mayStart: next.released,
    ceiling: ceilingBelow(host.ceiling),
    wakeAt,
  })
  if (link.mode === 'parked') waitFor(draft, draft.node(link.taskId), next)
  return next
}

/** The briefing of the failed child, made or not: it is not made twice. */
function briefingOf({ kind, purpose, state, input, output }: Node): TurnBriefing | null {
  if (kind === 'user_message') return null
  const content = textOf(input.content ?? '')
  const isHostData = purpose === 'brief'
  if (kind === 'developer_message')
    return { content, isHostData, ...(input.messages === undefined ? {} : { messages: input.messages }) }
  if (state === 'finished') return { content: `${content}\n${textOf(output.content ?? '')}`, isHostData }
  const { tokens } = input.value as { readonly tokens: number }
  return { summarize: content, tokens }
}

interface RetryIds {
  readonly turn: Id
  readonly conversation: Id
  readonly nodes: readonly Id[]
}

function idsOf(linkId: Id): RetryIds {
  const [turn = '', conversation = '', ...nodes] = deriveIds(linkId, 'retry', 5)
  return { turn, conversation, nodes }
}

/** The conversation of the failed child, where others may continue it; undefined where each call has a child of its own. */
function homeOf(draft: Draft, link: Link): Conversation | undefined {
  const home = draft.conversation(link.childConversationId)
  const isOwn = home.parentTaskId === link.taskId && (link.contract === 'typed' || link.contract === 'open')
  const { sessions } = draft.conversation(link.hostConversationId).metadata as { sessions?: { [tool: string]: Id } }
  return isOwn && sessions?.[link.toolName] !== home.id ? undefined : home
}

function freshHome(draft: Draft, link: Link, id: Id): Conversation {
  const home = draft.conversation(link.childConversationId)
  const fresh = newConversation({ ...home, id, groups: null, background: [] }, home.rootId, draft.now)
  draft.addConversation(fresh)
  return fresh
}

/** Makes the task of the failed child wait for the next one. */
function waitFor(draft: Draft, task: Node, link: Link): void {
  const child = subagentOf(link.childConversationId)
  draft.changeNode(task, {
    wait: task.wait === null ? null : { ...task.wait, refs: [link.id] },
    metadata: { ...task.metadata, subagent: child },
    output: { subagent: child },
  })
}
