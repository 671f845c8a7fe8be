import type { Draft } from '../graph/draft.ts'
import { isOpen } from '../graph/kinds.ts'
import { changedAccount } from '../graph/limits.ts'
import type { TreeRows } from '../graph/reader.ts'
import type { Id, Turn } from '../graph/rows.ts'
import { endWaitIfOver } from '../rules/delegation/join.ts'
import { answerTask, deliverEnd } from '../rules/settle/end-turns.ts'
import { stopRuns } from '../rules/turn/cancel.ts'
import { endNode, stopNode } from '../rules/turn/end-node.ts'
import { planRecover } from '../rules/turn/result.ts'
import type { Finding, FindingType } from '../store/archive.ts'
import { dueLinks } from './conversation-checks.ts'
import { unsatisfied } from './node-checks.ts'
import { rightAccount, rightAsks } from './turn-checks.ts'

/**
 * Repairs one finding if nothing is lost by it, and records an event. `tree` holds the rows of the finding; rows that have
 * changed since make the commit fail. False when nothing can be repaired.
 */
export function planRepair(draft: Draft, tree: TreeRows, finding: Finding): boolean {
  const mend = REPAIRS[finding.type]
  if (mend === undefined) return false
  const turn = turnOf(tree, finding)
  mend({ draft, tree, id: finding.id })
  if (turn !== undefined) {
    const detail = { finding: finding.type, subject: finding.subject, id: finding.id }
    draft.event(draft.turn(turn.id), finding.subject === 'node' ? finding.id : null, {
      type: 'graph-change',
      change: 'repair',
      detail,
    })
  }
  return true
}

const REPAIRS: {
  readonly [Type in FindingType]?: (target: { readonly draft: Draft; readonly tree: TreeRows; readonly id: Id }) => void
} = {
  wrong_end_time: ({ draft, id }) => {
    const node = draft.node(id)
    const endedAt = isOpen(node.state) ? null : (node.startedAt ?? node.createdAt)
    draft.changeNode(node, { endedAt })
  },
  running_without_claim: ({ draft, id }) => {
    planRecover(draft, id, { engineId: null, reason: 'It was running, but no process had claimed it.' })
  },
  leftover_claim: ({ draft, id }) => {
    draft.changeNode(draft.node(id), { engineId: null })
  },
  lost_claim: ({ draft, id }) => {
    planRecover(draft, id, { engineId: draft.node(id).engineId, reason: 'The process that ran it is gone.' })
  },
  wrong_blockers: ({ draft, tree, id }) => {
    const node = draft.node(id)
    const blockers = isOpen(node.state) ? unsatisfied(tree, node) : 0
    const freed = draft.changeNode(node, { blockers })
    if (freed.state === 'pending' && blockers === 0) draft.claim(freed)
  },
  never_runs: ({ draft, id }) => {
    const message = 'What it needs has ended without a result.'
    endNode(draft, draft.node(id), { state: 'skipped', failure: { code: 'blocked_by_failed_dependencies', message } })
  },
  open_in_ended_turn: ({ draft, id }) => {
    stopNode(draft, draft.node(id), 'Its turn had ended.')
  },
  nothing_open: ({ draft, id }) => draft.touchTurn(id),
  wrong_account: ({ draft, tree, id }) => {
    const turn = draft.turn(id)
    draft.changeTurn(turn, { account: changedAccount(turn.account, rightAccount(tree, id)) })
  },
  wrong_lane: ({ draft, tree, id }) => {
    const running = (tree.turnsOf.get(id) ?? []).find(({ state }) => state === 'running')
    draft.changeConversation(draft.conversation(id), { activeTurnId: running?.id ?? null })
  },
  wrong_turn_count: ({ draft, tree, id }) => {
    draft.changeConversation(draft.conversation(id), { turnCount: tree.turnsOf.get(id)?.length ?? 0 })
  },
  wrong_node_count: ({ draft, tree, id }) => {
    draft.changeTurn(draft.turn(id), { nodeCount: tree.nodesOf.get(id)?.length ?? 0 })
  },
  wrong_pause: ({ draft, tree, id }) => putPause(draft, draft.turn(id), rightAsks(tree).get(id) ?? 0),
  leftover_hold: ({ draft, id }) => {
    const turn = draft.turn(id)
    if (turn.spend !== null) draft.changeTurn(turn, { spend: { ...turn.spend, held: { tokens: 0, usd: 0 } } })
  },
  waits_for_ended: ({ draft, id }) => {
    const link = draft.findLink(id)
    if (link === undefined) return endWaitIfOver(draft, draft.node(id))
    const outcome = draft.turn(link.id).outcome
    if (link.outcome === null && outcome !== null) deliverEnd(draft, link, outcome)
    else answerTask(draft, link)
  },
  undelivered: ({ draft, id }) => {
    const link = draft.link(id)
    draft.changeLink(link, { deliveredTo: link.taskId })
  },
  child_of_ended_parent: ({ draft, id }) => {
    stopRuns(draft, id, { cause: 'parent', reason: 'The run it worked for has ended.' })
  },
  leftover_block: ({ draft, id }) => draft.dropBlock(id),
  wrong_background: ({ draft, tree, id }) => {
    draft.changeConversation(draft.conversation(id), { background: dueLinks(tree.links).get(id) ?? [] })
  },
}

function putPause(draft: Draft, turn: Turn, asks: number): void {
  const leftMs = turn.paused?.leftMs ?? (turn.deadline === null ? null : turn.deadline - draft.now)
  const deadline = leftMs === null ? null : draft.now + leftMs
  draft.changeTurn(turn, asks === 0 ? { paused: null, deadline } : { paused: { asks, leftMs }, deadline: null })
}

/** The turn that gets the event of a repair: that of its subject, or the newest one of its conversation. */
function turnOf(tree: TreeRows, { subject, id, conversationId }: Finding): Turn | undefined {
  if (subject === 'turn') return tree.turns.get(id)
  if (subject === 'node') return tree.turns.get(tree.nodes.get(id)?.turnId ?? '')
  if (subject === 'link') return tree.turns.get(tree.links.get(id)?.hostTurnId ?? '')
  return tree.turnsOf.get(conversationId ?? tree.rootId)?.at(-1)
}
