import { deriveIds } from '../base/id.ts'
import { conclude } from './conclude.ts'
import { addUsage } from './content.ts'
import { changedAccount } from './copy.ts'
import type { Draft } from './draft.ts'
import { endNode } from './end-node.ts'
import { foldInto } from './fold-into.ts'
import type { OutcomeRecord } from './outcome.ts'
import type { Id, Link, Node, Turn } from './rows.ts'
import { startTurn } from './start-turn.ts'

/**
 * Ends every turn of the draft that is over: outcome, link, the host's task, the next queued turn, up to the root.
 * Rows only: any process may do it (I5, I6).
 */
export function settle(draft: Draft): void {
  for (let turnId = draft.untouch(); turnId !== undefined; turnId = draft.untouch()) {
    const turn = draft.turn(turnId)
    if (turn.state === 'ended') continue
    if (!isOver(draft, turn)) {
      draft.watchTurn(turn)
      continue
    }
    const nodes = endingNodes(draft, turn)
    if (growLeaf(draft, turn, nodes.at(-1))) continue
    endTurn(draft, turn, nodes)
  }
}

/** Starts what may now run of a host's queued delegations, in the order they were asked for. */
function releaseChildren(draft: Draft, hostTurnId: Id): void {
  const host = draft.turn(hostTurnId)
  if (host.cancel !== null) return
  let { live, nextRelease } = host.account
  while (live < host.limits.concurrency && nextRelease < host.account.children) {
    const link = draft.linkAt(hostTurnId, nextRelease)
    nextRelease++
    if (link === undefined || link.outcome !== null) continue
    live++
    draft.changeLink(link, { released: true })
    startIfIdle(draft, draft.turn(link.id))
  }
  if (nextRelease === host.account.nextRelease) return
  draft.changeTurn(draft.turn(hostTurnId), { account: changedAccount(host.account, { live, nextRelease }) })
}

function isOver(draft: Draft, turn: Turn): boolean {
  if (draft.openNodes(turn.id).length > 0) return false
  return !draft.openLinks(turn.id).some((link) => link.onParentClose === 'cancel')
}

/** A turn may end only in a kind that can be its last word: else it grows an answer, or a placeholder after a stop. */
function growLeaf(draft: Draft, turn: Turn, leaf: Node | undefined): boolean {
  if (turn.state === 'queued' || leaf === undefined || mayEndTurn(draft, leaf)) return false
  const [id = leaf.id] = deriveIds(leaf.id, 'leaf', 1)
  const stopped = leaf.state === 'stopped' || turn.cancel !== null
  const text = leaf.failure ? `Stopped: ${leaf.failure.message}` : 'Stopped'
  const added = draft.addNode(turn, {
    id,
    kind: 'agent_message',
    purpose: 'answer',
    effect: 'idempotent',
    metadata: { generatedBy: 'leaf_rule', ...(stopped ? { transcriptPreview: text, limit: 'cancelled' } : {}) },
    ...(stopped ? { state: 'finished', preview: text, failure: leaf.failure, endedAt: draft.now } : {}),
  })
  draft.addEdge(leaf, added, 'sequence')
  draft.event(turn, added.id, { type: 'graph-change', change: 'leaf', detail: { state: added.state } })
  if (stopped) draft.touch(added, true)
  if (!stopped) draft.claim(added)
  return true
}

/** What a user's kind may do is frozen in its row: another process may not know the kind. */
function mayEndTurn(draft: Draft, leaf: Node): boolean {
  return leaf.metadata['leaf'] === true || draft.kinds.get(leaf.kind)?.leaf === true
}

function endTurn(draft: Draft, turn: Turn, nodes: readonly Node[]): void {
  const outcome = conclude(turn, nodes, draft.now)
  draft.turnEnded = true
  draft.changeTurn(turn, { state: 'ended', outcome, endedAt: draft.now })
  draft.event(turn, null, { type: 'run-end', outcome })
  const conversation = draft.conversation(turn.conversationId)
  if (conversation.activeTurnId === turn.id) draft.changeConversation(conversation, { activeTurnId: null })
  if (conversation.type === 'sub_agent') {
    const link = draft.findLink(turn.id)
    if (link !== undefined) settleLink(draft, link, outcome)
  }
  const next = draft.queuedTurn(turn.laneId)
  if (next !== undefined) startIfIdle(draft, next)
}

/** The nodes that say how a turn ended, its leaf last. One that finished as the newest says it alone. */
function endingNodes(draft: Draft, turn: Turn): readonly Node[] {
  const last = draft.lastLeaf
  const isNewest = last !== undefined && last.turnId === turn.id && last.ordinal === turn.nodeCount - 1
  if (isNewest && last.state === 'finished' && turn.cancel === null) return [last]
  const nodes = draft.nodesOf(turn.id)
  const leaf = nodes.findLast((node) => draft.edgesFrom(node.id).every(({ type }) => type === 'branch'))
  return leaf === undefined ? nodes : [...nodes.filter((node) => node !== leaf), leaf]
}

function startIfIdle(draft: Draft, turn: Turn): void {
  if (turn.state !== 'queued') return
  const conversation = draft.conversation(turn.conversationId)
  if (conversation.activeTurnId !== null) return
  const link = conversation.type === 'sub_agent' ? draft.findLink(turn.id) : undefined
  if (link !== undefined && !link.released) return
  startTurn(draft, turn)
}

function settleLink(draft: Draft, link: Link, outcome: OutcomeRecord): void {
  const settled = draft.changeLink(link, { outcome })
  const host = draft.turn(link.hostTurnId)
  draft.event(host, link.taskId, {
    type: 'delegation-end',
    agent: link.agentName,
    tool: link.toolName,
    childConversationId: link.childConversationId,
    childRunId: link.id,
    status: outcome.status,
  })
  const { account } = host
  draft.changeTurn(host, {
    account: changedAccount(account, {
      live: link.released ? account.live - 1 : account.live,
      usage: addUsage(account.usage, outcome.usage),
      uncertain: outcome.uncertain.length === 0 ? account.uncertain : [...account.uncertain, ...outcome.uncertain],
    }),
  })
  releaseChildren(draft, host.id)
  if (host.cancel !== null || settled.mode === 'called') draft.touchTurn(host.id)
  if (settled.mode === 'parked') answerTask(draft, settled)
}

/** The waiting task gets the child's end as its result; one that was stopped keeps it as partial work. */
function answerTask(draft: Draft, link: Link): void {
  const task = draft.node(link.taskId)
  if (task.state === 'waiting') {
    draft.changeLink(link, { deliveredTo: task.id })
    endNode(draft, task, { state: 'finished', output: foldInto(draft, task, link) })
  } else if (task.state === 'stopped') draft.changeNode(task, { output: foldInto(draft, task, link) })
}
