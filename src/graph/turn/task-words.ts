import { openContent, openFactsOf, saidAndFound, withAbsent } from '../child/fold-open.ts'
import { textOf } from '../content.ts'
import type { Draft } from '../draft.ts'
import { withWords } from '../outcome.ts'
import type { Conversation, Link, Node } from '../rows.ts'

/** Below a minute in tens of seconds, else in whole minutes. */
function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  return seconds < 60 ? `${Math.floor(seconds / 10) * 10}s` : `${Math.floor(seconds / 60)}m`
}

/** A task that has ended, as its host reads it. */
export function endedTask(draft: Draft, link: Link): string {
  const { outcome } = link
  if (outcome === null) return runningTask(draft, link)
  const said = outcome.answerNodeId === null ? undefined : draft.findNode(outcome.answerNodeId)
  const whole = withWords(outcome, said?.output ?? {})
  const facts = openFactsOf(link)
  const isDone = outcome.status === 'completed'
  const partial = whole.text === '' ? '' : `\n\n${whole.text}`
  const shown =
    facts === undefined || !isDone
      ? `Error: ${outcome.error?.message ?? outcome.status}${partial}`
      : textOf(openContent(withAbsent(facts, link), whole, () => saidAndFound(draft, link)))
  const status = isDone ? '✓ Completed' : outcome.status === 'cancelled' ? '⊘ Cancelled' : '✗ Failed'
  return `# Background Task Result: ${link.childConversationId}

**Task:** ${facts?.label ?? ''}
**Status:** ${status}
**Duration:** ${durationText(outcome.durationMs)} (${turnsText(outcome.modelCalls)})

## Output

${shown}`
}

/** It has ended so long ago that its result is no longer given. A host that was not told of it still is, once, in full. */
export function isExpired(draft: Draft, link: Link): boolean {
  const { keepMs } = openFactsOf(link) ?? {}
  return keepMs !== undefined && link.outcome !== null && sinceEnd(draft, link) > keepMs
}

/** What stands in the place of a result that is no longer given. */
export function expiredTask(draft: Draft, link: Link): string {
  const { label = '', keepMs = 0 } = openFactsOf(link) ?? {}
  return `# Background Task Result: ${link.childConversationId}

**Task:** ${label}
**Status:** Expired

It ended (${link.outcome?.status ?? ''}) ${longText(sinceEnd(draft, link))} ago, and results are kept for ${longText(keepMs)}. Start it again if you need it.`
}

const HOUR_MS = 3_600_000

function longText(ms: number): string {
  return ms < 2 * HOUR_MS ? durationText(ms) : `${Math.floor(ms / HOUR_MS)}h`
}

function sinceEnd(draft: Draft, { id }: Link): number {
  return draft.now - (draft.turn(id).endedAt ?? draft.now)
}

/** A task that is at work: what it does now. Nothing is consumed by looking. */
export function runningTask(draft: Draft, link: Link): string {
  const { elapsed, turns, idle } = progressOf(draft, link)
  const calls = draft.nodesOf(link.id).flatMap(({ kind, input }) => (kind === 'task' ? [input.call?.name ?? ''] : []))
  const recent = calls.slice(-MOST_CALLS)
  return `# Background Task: ${link.childConversationId}

**Task:** ${openFactsOf(link)?.label ?? ''}
**Status:** ${draft.turn(link.id).state === 'queued' ? 'Waiting for its turn' : 'Running'}
**Elapsed:** ${elapsed} (${turnsText(turns)}), idle ${idle}
**Tool calls:** ${recent.length === 0 ? 'none' : recent.join(', ')}${calls.length > recent.length ? ` (the last ${recent.length} of ${calls.length})` : ''}`
}

const MOST_CALLS = 20

/** One line of a list. */
export function taskLine(draft: Draft, link: Link): string {
  const label = `"${openFactsOf(link)?.label ?? ''}"`
  const id = link.childConversationId
  const { outcome } = link
  if (outcome !== null) {
    const how = outcome.status === 'completed' ? 'completed' : outcome.status
    return `${id}: ${label} - ${how} after ${durationText(outcome.durationMs)}; read it with load(source: "${id}")`
  }
  const { elapsed, turns, idle } = progressOf(draft, link)
  return `${id}: ${label} - running for ${elapsed}, ${turnsText(turns)}, idle ${idle}`
}

/** What a host is reminded of at each of its steps; null when it has nothing in the background. */
export function reminderOf(draft: Draft, { background }: Conversation): string | null {
  const links = background.map((id) => draft.link(id)).filter(({ contract }) => contract === 'open')
  const shown = links.filter((link) => !isExpired(draft, link))
  if (shown.length === 0) return null
  return `Background tasks:\n${shown.map((link) => `• ${taskLine(draft, link)}`).join('\n')}`
}

interface Progress {
  readonly elapsed: string
  readonly turns: number
  readonly idle: string
}

function progressOf(draft: Draft, link: Link): Progress {
  const turn = draft.turn(link.id)
  const last = draft.nodesOf(link.id).reduce((latest, node) => Math.max(latest, lastOf(node)), turn.createdAt)
  return {
    elapsed: durationText(draft.now - (turn.startedAt ?? turn.createdAt)),
    turns: turn.account.modelCalls,
    idle: durationText(draft.now - last),
  }
}

function lastOf({ createdAt, startedAt, endedAt }: Node): number {
  return Math.max(createdAt, startedAt ?? 0, endedAt ?? 0)
}

function turnsText(turns: number): string {
  return `${turns} ${turns === 1 ? 'turn' : 'turns'}`
}
