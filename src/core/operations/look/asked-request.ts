// The requests that a principal may answer, on the rows as they are when the answer is checked.
//
// Owns:      whether the principal may say a word on what a node asks, and whether the node asks what the principal saw.
// Called by: operations of the inbox, before a word of a principal is said.
// Must stay true: the hash that is given back goes with the word. What was not checked here is not answered.

import { type ConflictError, DeniedError } from '../../base/error.ts'
import { askersIn } from '../../grant/ceiling.ts'
import { mayApprove, type Principal } from '../../grant/principal.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { askedAnother } from '../../rules/delegation/question.ts'
import { otherCall } from '../../rules/history/settle-call.ts'
import { approvalOf } from '../../rules/turn/approval-of.ts'
import { askedAnew } from '../../rules/turn/approve.ts'
import { questionOf } from '../../rules/turn/question-of.ts'
import { isSeen, requireSeen } from '../../rules/turn/seen.ts'
import { seenOf } from '../../rules/turn/seen-of.ts'

interface Answering {
  /** The owner of the tree. */
  readonly owner: string | null
  readonly principal: Principal
  /** The hash that the principal saw, if the principal names one. */
  readonly seen: string | undefined
  /** True: the word counts only for what was seen. */
  readonly isNeeded: boolean
}

/** The hash of nothing: a node that asks only later is not answered. */
const NOTHING = '0'.repeat(64)

/**
 * Throws a DeniedError where somebody else executes the call of a node (its owner, or whom its tool names), and a ConflictError
 * where it is another call than the principal saw. Gives the hash of the call.
 */
export function requireExecutor(tree: TreeReader, nodeId: Id, { owner, principal, ...shown }: Answering): string {
  const node = tree.node(nodeId)
  const question = node?.state === 'waiting' ? questionOf(node) : undefined
  if (node === undefined || question?.outside === undefined) return NOTHING
  if ((question.outside.by ?? owner) !== principal.id) {
    throw new DeniedError('denied', `${principal.id} does not execute this call.`)
  }
  return checked(node, shown, () => askedAnother(node, question))
}

/**
 * Throws a DeniedError where a principal may not say a word on what a node asks for now, or on its uncertain call, and a
 * ConflictError where that is not what the principal saw. Gives the hash of what was checked.
 */
export function requireApprover(tree: TreeReader, nodeId: Id, { owner, principal, ...shown }: Answering): string {
  const node = tree.node(nodeId)
  const request = node === undefined ? undefined : requestOf(node)
  if (node === undefined || request === undefined) return NOTHING
  const askers = askersIn(tree.turn(node.turnId)?.ceiling ?? [])
  if (!mayApprove(principal, request, [owner, ...askers])) {
    throw new DeniedError('denied', `${principal.id} may not answer ${request} in this conversation.`)
  }
  return checked(node, shown, (seen) => (node.state === 'uncertain' ? otherCall(node) : askedAnew(node, seen)))
}

/** The hash of what a node asks, where the principal saw that, or need not have seen it. */
function checked(
  node: Node,
  { seen, isNeeded }: Pick<Answering, 'seen' | 'isNeeded'>,
  other: (seen: string) => ConflictError,
): string {
  if (isNeeded) requireSeen(seen)
  const hash = seenOf(node) ?? NOTHING
  if (seen !== undefined && !isSeen(hash, seen)) throw other(seen)
  return hash
}

/** The request that a node asks a person for, or the call of a node that is uncertain. */
function requestOf(node: Node): string | undefined {
  if (node.state === 'awaiting_approval') return approvalOf(node).request
  return node.state === 'uncertain' ? `tool:${node.input.call?.name ?? ''}` : undefined
}
