import type { Json } from '../../base/json.ts'
import type { Draft } from '../../graph/draft.ts'
import { runsUpward } from '../../graph/reader.ts'
import type { Id, Link, Node, NodeOutput, Turn, Wait } from '../../graph/rows.ts'
import { endNode } from '../turn/end-node.ts'
import { hostQuestionOf, markReported, questionOf } from '../turn/question-of.ts'
import { keepInBackground } from './background.ts'
import { childName } from './child-report.ts'
import { endWait, endWaitIfOver, isJoin, jsonOutput, type WaitFacts } from './join.ts'

/**
 * Breaks a deadlock: all calls of a host wait for children that cannot begin, while a child of its own waits for its answer.
 * The host would wait for itself, because that child may hold the room the others wait for. So the calls continue in the
 * background and the host hears the question.
 */
export function breakDeadlock(draft: Draft, turn: Turn): void {
  const { background } = draft.conversation(turn.conversationId)
  if (background.length === 0 || turn.cancel !== null) return
  const asking = background.map((id) => draft.link(id)).filter((link) => isAsking(draft, link))
  if (asking.length === 0 || !isStuck(draft, turn.id)) return
  for (const { id } of draft.openNodes(turn.id)) {
    const node = draft.node(id)
    if (node.state === 'waiting') endWaitWithQuestions(draft, node, asking)
  }
}

/** Checks, after a node of this run ended or began to wait, whether it or the runs above it are now stuck. */
export function watchHosts(draft: Draft, turnId: Id): void {
  const turn = draft.turn(turnId)
  if (turn.tree === null) return watchHost(draft, turn)
  for (const above of runsUpward(draft, turnId)) watchHost(draft, above)
}

function watchHost(draft: Draft, { id, state, conversationId }: Turn): void {
  if (state === 'running' && draft.conversation(conversationId).background.length > 0) draft.touchTurn(id)
}

/** True where it waits for its host's answer, or for children that cannot begin. */
export function isBlocked(draft: Draft, link: Link): boolean {
  return isAsking(draft, link) || draft.turn(link.id).state === 'queued' || isStuck(draft, link.id)
}

function isAsking(draft: Draft, link: Link): boolean {
  return link.outcome === null && hostQuestionOf(draft, link) !== undefined
}

/** True where nothing in it works, and nothing that it waits for works. */
function isStuck(draft: Draft, turnId: Id): boolean {
  const open = draft.openNodes(turnId)
  return open.some(({ state }) => state === 'waiting') && open.every((node) => isNodeStuck(draft, node))
}

function isNodeStuck(draft: Draft, { state, blockers, wait }: Node): boolean {
  if (state === 'pending') return blockers > 0
  if (state !== 'waiting' || wait?.on !== 'children') return false
  return wait.refs.every((id) => {
    const link = draft.link(id)
    return link.outcome !== null || isBlocked(draft, link)
  })
}

function endWaitWithQuestions(draft: Draft, node: Node, asking: readonly Link[]): void {
  if (isJoin(node)) return endWait(draft, node, { status: 'question', others: asking })
  for (const id of node.wait?.refs ?? []) promoteWithQuestions(draft, draft.link(id), asking)
}

function promoteWithQuestions(draft: Draft, link: Link, asking: readonly Link[]): void {
  const questions = asking.map((one): Json => {
    const asked = hostQuestionOf(draft, one)
    if (asked !== undefined && questionOf(asked)?.told === null) markReported(draft, asked, link.taskId)
    const child = draft.conversation(one.childConversationId)
    const question = asked === undefined ? '' : (questionOf(asked)?.text ?? '')
    return { child_conversation_id: child.id, name: childName(child), question }
  })
  promote(
    draft,
    link,
    jsonOutput({
      ok: true,
      status: 'promoted',
      child_conversation_id: link.childConversationId,
      name: childName(draft.conversation(link.childConversationId)),
      questions,
      advice:
        'It cannot begin before those that ask you have their answer: answer each with subagent_send. It goes on in the background, and you will be told of its end.',
    }),
  )
}

export interface JoinRequest extends Pick<Wait, 'refs' | 'join' | 'until'>, WaitFacts {}

/** Parks a task as a row until its background children end; it has its result at once if none is open. */
export function parkJoin(draft: Draft, node: Node, { refs, join, until, losers, shows }: JoinRequest): void {
  const turn = draft.turn(node.turnId)
  if (turn.cancel !== null) {
    endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } })
    return
  }
  draft.watchTurn(turn)
  draft.watchConversation(draft.conversation(node.conversationId))
  const parked = draft.changeNode(node, {
    state: 'waiting',
    engineId: null,
    wait: { on: 'children', refs, join, until },
    wakeAt: until,
    metadata: { ...node.metadata, waits: shows === undefined ? { losers } : { losers, shows } },
  })
  if (until !== null) draft.noteDue(until)
  endWaitIfOver(draft, parked)
  watchHosts(draft, node.turnId)
}

/** Detaches a waiting call from its child: the call ends with these words, and the child's run continues in the background. */
export function promote(draft: Draft, link: Link, output: NodeOutput): void {
  const task = draft.node(link.taskId)
  if (link.mode !== 'parked' || link.outcome !== null || task.state !== 'waiting') return
  const promoted = draft.changeLink(link, { mode: 'background', wake: link.wake ?? 'auto' })
  keepInBackground(draft, promoted)
  const { subagent } = task.output
  endNode(draft, task, { state: 'finished', output: subagent === undefined ? output : { ...output, subagent } })
}
