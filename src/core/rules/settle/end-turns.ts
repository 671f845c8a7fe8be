// The end of turns: what follows when all nodes of a turn have ended, up to the root.
//
// Owns:      when a turn is over, its outcome, the delivery of a child's end to its host, and the start of the next queued turn.
// Called by: the ledger, once after each plan, for the turns that the plan touched. No rule calls it. `audit/repair` uses two
//            parts of it to deliver an end that was lost.
// Must stay true:
//   - It needs rows only, so any process can end a turn (I5).
//   - Every run ends in one outcome, written once, and its host hears it exactly once (I6).
//   - A child's usage is added to its host's account in the commit that ends the child (I7).

import { deriveIds } from '../../base/id.ts'
import { conclude } from '../../graph/conclude.ts'
import { addUsage } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { isBeside } from '../../graph/kinds.ts'
import { changedAccount } from '../../graph/limits.ts'
import type { OutcomeRecord } from '../../graph/outcome.ts'
import type { Link, Node, Turn } from '../../graph/rows.ts'
import { foldInto, remarksOf } from '../delegation/fold.ts'
import { giveUpQuestions } from '../delegation/question.ts'
import { leavePlace } from '../delegation/release.ts'
import { retryChild } from '../delegation/retry-child.ts'
import { breakDeadlock, watchHosts } from '../delegation/wait.ts'
import { endBackgroundChild, openReportTurn, passQuestions, reportInTurn } from '../delegation/wake.ts'
import { endNode, findBlockingDenial } from '../turn/end-node.ts'
import { startIfIdle } from '../turn/open-turn.ts'

/**
 * Ends every turn of the draft that is over: outcome, link, the host's task, the next queued turn, up to the root.
 * Rows only: any process may do it (I5, I6). The ledger calls it once, after the plan; no rule calls it.
 */
export function endTurns(draft: Draft): void {
  for (let turnId = draft.takeTouchedTurn(); turnId !== undefined; turnId = draft.takeTouchedTurn()) {
    const turn = draft.turn(turnId)
    if (turn.state === 'ended') continue
    const isQuiet = !draft.hasOpenNodes(turn.id)
    const { background } = draft.conversation(turn.conversationId)
    if (isQuiet && background.length > 0 && reportInTurn(draft, turn)) continue
    if (isQuiet ? isHeld(draft, turn) : keepOpen(draft, turn)) continue
    const nodes = endingNodes(draft, turn)
    if (growLeaf(draft, turn, nodes.at(-1))) continue
    endTurn(draft, turn, nodes)
  }
}

/** Some node is open, so the turn stays open; a host that is stuck is freed. Always true. */
function keepOpen(draft: Draft, turn: Turn): true {
  draft.watchTurn(turn)
  breakDeadlock(draft, turn)
  return true
}

/** All nodes have ended: true where the turn still waits for children it started. */
function isHeld(draft: Draft, turn: Turn): boolean {
  const held = draft.openLinks(turn.id).filter((link) => isHeldBy(turn, link))
  if (held.length === 0) return false
  draft.watchTurn(turn)
  giveUpQuestions(draft, held)
  return true
}

/** A root does not wait for background children, unless it has to stop; a child answers after its background children. */
function isHeldBy(turn: Turn, { mode, onParentClose, wake, depth }: Link): boolean {
  if (onParentClose !== 'cancel') return false
  return mode !== 'background' || turn.cancel !== null || (depth > 1 && wake === 'auto')
}

/**
 * A turn may end only in a kind that can be its last word: else it grows an answer, or a placeholder after a stop or a denial.
 */
function growLeaf(draft: Draft, turn: Turn, leaf: Node | undefined): boolean {
  if (turn.state === 'queued' || leaf === undefined || mayEndTurn(draft, leaf)) return false
  const [id = leaf.id] = deriveIds(leaf.id, 'leaf', 1)
  const held = findBlockingDenial(leaf)
  const stopped = leaf.state === 'stopped' || turn.cancel !== null || held !== undefined
  const failure = held ?? leaf.failure
  const text = failure ? `Stopped: ${failure.message}` : 'Stopped'
  const limit = held === undefined ? 'cancelled' : 'denied'
  const added = draft.addNode(turn, {
    id,
    kind: 'agent_message',
    purpose: 'answer',
    effect: 'idempotent',
    metadata: { generatedBy: 'leaf_rule', ...(stopped ? { transcriptPreview: text, limit } : {}) },
    ...(stopped ? { state: 'finished', preview: text, failure, endedAt: draft.now } : {}),
  })
  draft.addEdge(leaf, added, 'sequence')
  draft.event(turn, added.id, { type: 'graph-change', change: 'leaf', detail: { state: added.state } })
  if (stopped) draft.touch(added, true)
  if (!stopped) draft.claim(added)
  return true
}

/** The row of a user's kind holds its flag, because another process may not know the kind. */
function mayEndTurn(draft: Draft, leaf: Node): boolean {
  return leaf.metadata['leaf'] === true || draft.kinds.get(leaf.kind)?.leaf === true
}

function endTurn(draft: Draft, turn: Turn, nodes: readonly Node[]): void {
  const conversation = draft.conversation(turn.conversationId)
  const outcome = withOpen(draft, turn, conclude(turn, nodes, draft.now))
  draft.turnEnded = true
  const ended = draft.ownTurn(turn)
  ended.state = 'ended'
  ended.outcome = outcome
  ended.endedAt = draft.now
  draft.event(turn, null, { type: 'run-end', status: outcome.status, outcome })
  if (conversation.activeTurnId === turn.id) draft.ownConversation(conversation).activeTurnId = null
  if (conversation.type === 'sub_agent') {
    const link = draft.findLink(turn.id)
    if (link !== undefined) deliverEnd(draft, link, outcome)
  }
  const next = draft.queuedTurn(turn.laneId)
  if (next !== undefined) startIfIdle(draft, next)
  const after = draft.conversation(turn.conversationId)
  if (after.background.length === 0 || after.type !== 'user') return
  openReportTurn(draft, after)
  passQuestions(draft, draft.conversation(after.id))
}

/** Adds the background delegations that the turn leaves open. */
function withOpen(draft: Draft, turn: Turn, outcome: OutcomeRecord): OutcomeRecord {
  if (draft.conversation(turn.conversationId).background.length === 0) return outcome
  const open = draft.openLinks(turn.id).filter(({ mode }) => mode === 'background')
  return open.length === 0 ? outcome : { ...outcome, open: open.map(({ id }) => id) }
}

/** The nodes that decide how a turn ended, its leaf last. A newest node that finished decides alone. */
function endingNodes(draft: Draft, turn: Turn): readonly Node[] {
  const last = draft.lastLeaf
  const isNewest = last !== undefined && last.turnId === turn.id && last.ordinal === turn.nodeCount - 1
  if (isNewest && last.state === 'finished' && turn.cancel === null && !isBeside(last)) return [last]
  const nodes = draft.nodesOf(turn.id).filter(({ marks }) => marks?.replacedBy == null)
  const leaf = nodes.findLast((node) => {
    return (
      !isBeside(node) && node.purpose !== 'summarize' && draft.edgesFrom(node.id).every(({ type }) => type === 'branch')
    )
  })
  return leaf === undefined ? nodes : [...nodes.filter((node) => node !== leaf), leaf]
}

/** Delivers the end of a child to its host. */
export function deliverEnd(draft: Draft, link: Link, outcome: OutcomeRecord): void {
  const settled = draft.changeLink(link, { outcome })
  const host = draft.turn(link.hostTurnId)
  const told = {
    type: 'delegation-end',
    agent: link.agentName,
    tool: link.toolName,
    childConversationId: link.childConversationId,
    childRunId: link.id,
    status: outcome.status,
  } as const
  const metadata = remarksOf(draft, link, outcome)
  draft.event(host, link.taskId, metadata === undefined ? told : { ...told, metadata })
  const { account } = host
  draft.changeTurn(host, {
    account: changedAccount(account, {
      live: link.released ? account.live - 1 : account.live,
      usage: addUsage(account.usage, outcome.usage),
      uncertain: outcome.uncertain.length === 0 ? account.uncertain : [...account.uncertain, ...outcome.uncertain],
    }),
  })
  if (host.state === 'ended') countLate(draft, host, outcome)
  leavePlace(draft, settled)
  if (settled.retry !== null && retryChild(draft, settled) !== undefined) return
  if (host.cancel !== null || settled.mode === 'called') draft.touchTurn(host.id)
  if (settled.mode === 'parked') answerTask(draft, settled)
  if (settled.mode === 'background') endBackgroundChild(draft, settled)
  watchHosts(draft, host.id)
}

/** Adds the usage of a child that outlived its host to all runs above: the host's own outcome did not include it. */
function countLate(draft: Draft, host: Turn, outcome: OutcomeRecord): void {
  for (let ended = host; ended.state === 'ended'; ) {
    const above = draft.findLink(ended.id)
    if (above === undefined) return
    ended = draft.turn(above.hostTurnId)
    const { account } = ended
    draft.changeTurn(ended, { account: changedAccount(account, { usage: addUsage(account.usage, outcome.usage) }) })
  }
}

/** Gives the waiting task its child's end as a result; a stopped task keeps it as partial work. */
export function answerTask(draft: Draft, link: Link): void {
  const task = draft.node(link.taskId)
  if (task.state === 'waiting') {
    draft.changeLink(link, { deliveredTo: task.id })
    endNode(draft, task, { state: 'finished', output: foldInto(draft, task, link) })
  } else if (task.state === 'stopped') {
    draft.changeNode(task, { output: foldInto(draft, task, link) })
    draft.touchTurn(task.turnId)
  }
}
