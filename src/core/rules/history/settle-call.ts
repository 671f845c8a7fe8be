// An uncertain call is settled by a person: its effect happened, it did not, or nobody will find out.
//
// Owns:      the person's word in the node's row, and what follows from it: a result, another try, or nothing.
// Called by: `runtime.settle`, from any process: it needs rows only.
// Must stay true:
//   - The node stays `uncertain` and is never run again (I4). Another try is a new version of it, made by the rules of `retry`.
//   - An outcome is not rewritten: `Turn.account.uncertain` says what is unsettled now, the outcome what was when it ended.
//   - The first word counts. Only what was left may be settled once more.

import { ConflictError, NotFoundError } from '../../base/error.ts'
import { type Content, textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { isBeside, previewOf } from '../../graph/kinds.ts'
import { headOf, isSkipped, laneOf } from '../../graph/lane.ts'
import { changedAccount } from '../../graph/limits.ts'
import { runsUpward } from '../../graph/reader.ts'
import { type HistoryRefusal, refused } from '../../graph/refused.ts'
import type { Body, Id, Node, NodeOutput, Settlement, Turn } from '../../graph/rows.ts'
import type { Asked } from '../turn/open-turn.ts'
import { isSeen } from '../turn/seen.ts'
import { doubtHash } from '../turn/seen-of.ts'
import { newestVersion, replaceTurn } from './remake-turn.ts'
import { NO_MARKS, planRetryNode, split } from './retry-node.ts'

/** A person's word on an uncertain call. */
export interface CallSettlement {
  readonly how: Settlement['how']
  readonly by: string
  /** The result that the person entered, as the tool would have given it; null where they know none. */
  readonly result: { readonly output: NodeOutput; readonly body: Body | null } | null
  /** The hash of the call that the person saw, or its beginning: the word is refused for any other call. */
  readonly seen?: string
}

export interface SettledCall {
  readonly how: Settlement['how']
  /** The run that goes on from there; null where the word was only recorded. */
  readonly runId: Id | null
  /** Why no run goes on from there, where one was wanted; else null. */
  readonly obstacle: HistoryRefusal | null
}

/**
 * Records what a person says about an uncertain call, and goes on from there: an ended turn is made anew with the result, or
 * with another try; in a running turn models read the result from their next call on.
 */
export function planSettle(draft: Draft, nodeId: Id, word: CallSettlement & Asked): SettledCall {
  const node = draft.findNode(nodeId)
  if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId}.`)
  requireUnsettled(draft, node)
  if (word.seen !== undefined && !isSeen(doubtHash(node), word.seen)) throw otherCall(node)
  const turn = draft.turn(node.turnId)
  const obstacle = word.how === 'left' ? null : obstacleOf(draft, node, turn)
  const settled = record(draft, node, word)
  const runId = word.how === 'left' || obstacle !== null ? null : goOn(draft, settled, word)
  const tool = node.input.call?.name ?? node.kind
  const content = word.how === 'left' ? null : (settled.output.content ?? null)
  const { how, by } = word
  draft.event(turn, nodeId, { type: 'call-settled', tool, how, by, content, nextRunId: runId })
  return { how, runId, obstacle }
}

function requireUnsettled(draft: Draft, node: Node): void {
  const { id, state, marks } = node
  if (state !== 'uncertain') {
    const message = `The node ${id} is ${state}: only a call whose effect is uncertain is settled.`
    throw refused('wrong_state', message, { nodeId: id, state })
  }
  const known = marks?.settled
  if (known !== undefined && known.how !== 'left') {
    const message = `The call ${id} is settled: ${known.by} has said that it ${SAID[known.how]}.`
    throw new ConflictError('conflict', message, { details: { nodeId: id, ...known } })
  }
  const newer = newerOf(draft, node)
  if (newer === undefined) return
  throw refused('replaced', `The turn of ${id} was made anew: settle ${newer}.`, { nodeId: id, by: newer })
}

/** Refuses a word on another call than the node has, and gives that one. */
export function otherCall(node: Node): ConflictError {
  const { name: tool, input } = node.input.call ?? { name: node.kind, input: null }
  const message = `Nothing was answered: the call ${node.id} is another one, ${tool}.`
  return new ConflictError('conflict', message, {
    details: { state: node.state, request: { tool, input, seen: doubtHash(node) } },
  })
}

const SAID: Readonly<Record<Settlement['how'], string>> = {
  happened: 'happened',
  not_happened: 'did not happen',
  left: 'is left as it is',
}

/** The copy of it that counts now, where that one is unsettled. */
function newerOf(draft: Draft, node: Node): Id | undefined {
  const turn = draft.turn(node.turnId)
  if (!isSkipped(draft.conversation(turn.laneId), turn.ordinal)) return undefined
  const id = newestVersion(draft, node)
  const newest = id === undefined ? undefined : draft.node(id)
  return newest?.state === 'uncertain' && newest.marks?.settled === undefined ? newest.id : undefined
}

/** Why no turn can go on from the node; null for an open turn, which goes on by itself. */
function obstacleOf(draft: Draft, node: Node, turn: Turn): HistoryRefusal | null {
  if (turn.state !== 'ended') return null
  const lane = draft.conversation(turn.laneId)
  if (isSkipped(lane, turn.ordinal) || node.marks?.replacedBy != null) return 'replaced'
  if (draft.findLink(turn.id) !== undefined) return 'delegated'
  if (laneOf(lane).archivedAt !== null) return 'archived'
  if (turn.ordinal !== headOf(lane)) return 'later_turns'
  return isBeside(node) || draft.kinds.get(node.kind)?.retriable !== true ? 'wrong_kind' : null
}

/** Writes the word into the node's row. It no longer counts as uncertain, in its run and in those above. */
function record(draft: Draft, node: Node, word: CallSettlement): Node {
  for (const turn of runsUpward(draft, node.turnId)) {
    const { account } = turn
    if (!account.uncertain.includes(node.id)) continue
    const uncertain = account.uncertain.filter((id) => id !== node.id)
    draft.changeTurn(turn, { account: changedAccount(account, { uncertain }) })
  }
  const { how, by, result } = word
  if (result?.body != null) draft.addBody(result.body)
  const marks = { ...NO_MARKS, ...node.marks, settled: { how, by, at: draft.now } }
  if (how === 'left') return draft.changeNode(node, { marks })
  const output = result?.output ?? { content: wordsFor(word), ...(how === 'happened' ? {} : { isError: true }) }
  const preview = previewOf(textOf(output.content ?? ''), node.kind, draft.kinds)
  return draft.changeNode(node, { marks, output, preview })
}

/** The result of a call that a person has settled without one. */
function wordsFor({ how, by }: CallSettlement): Content {
  return how === 'happened'
    ? `It took effect: ${by} has checked. Its result is not known. Do not call it again for this.`
    : `It did not take effect: ${by} has checked. Call it again if it is still wanted.`
}

/** Gives the run in which the call runs again, or which goes on from its result; null where none does. */
function goOn(draft: Draft, node: Node, { how, result, caller, boundsUnder }: CallSettlement & Asked): Id | null {
  const turn = draft.turn(node.turnId)
  const scope = { conversationId: node.conversationId, caller, boundsUnder }
  if (how === 'not_happened') return planRetryNode(draft, node.id, scope).turn.id
  if (turn.state !== 'ended') return turn.cancel === null ? turn.id : null
  // A run that a person stopped stays stopped, and an answer needs words.
  const isAnswer = node.kind !== 'task'
  if (turn.cancel !== null || (isAnswer && result === null)) return null
  const { kept, again, next } = split(draft, node)
  const done: Node = { ...node, state: 'finished', failure: null }
  const remade = replaceTurn(draft, {
    change: 'settle',
    source: turn,
    about: node,
    edited: null,
    kept: [...kept, done],
    again: again.filter(({ id }) => id !== node.id),
    next,
    caller,
    boundsUnder,
  })
  return remade.turn.id
}
