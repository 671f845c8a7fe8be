import { DeniedError } from '../../base/error.ts'
import { askersIn } from '../../grant/ceiling.ts'
import { mayApprove, type Principal } from '../../grant/principal.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'
import { approvalOf } from '../../rules/turn/approve.ts'
import { questionOf } from '../../rules/turn/question-of.ts'

/** A request that a person may say a word on. */
export interface AskedRequest {
  /** `tool:deploy`. */
  readonly request: string
  /** The hash of what is asked; undefined for a call that is uncertain. */
  readonly seen: string | undefined
  /** The principals that asked for its run, or made it anew. */
  readonly askers: readonly string[]
}

/** Throws a DeniedError where somebody else executes the call of a node: its owner, or whom its tool names. */
export function requireExecutor(tree: TreeReader, nodeId: Id, { owner, by }: Executing): void {
  const node = tree.node(nodeId)
  const outside = node === undefined ? undefined : questionOf(node)?.outside
  if (outside === undefined || (outside.by ?? owner) === by) return
  throw new DeniedError('denied', `${by} does not execute this call.`)
}

interface Executing {
  /** The owner of the tree. */
  readonly owner: string | null
  /** The principal that says what came of it. */
  readonly by: string
}

/** Throws a DeniedError where a principal may not say a word on what a node asks for now. Gives what was checked. */
export function requireApprover(
  tree: TreeReader,
  nodeId: Id,
  { owner, principal }: Approving,
): AskedRequest | undefined {
  const asked = requestAt(tree, nodeId)
  if (asked === undefined || mayApprove(principal, asked.request, [owner, ...asked.askers])) return asked
  throw new DeniedError('denied', `${principal.id} may not answer ${asked.request} in this conversation.`)
}

interface Approving {
  /** The owner of the tree. */
  readonly owner: string | null
  readonly principal: Principal
}

/** The request that a node asks a person for, or the call of a node that is uncertain. */
function requestAt(tree: TreeReader, nodeId: Id): AskedRequest | undefined {
  const node = tree.node(nodeId)
  if (node === undefined) return undefined
  const askers = askersIn(tree.turn(node.turnId)?.ceiling ?? [])
  if (node.state === 'awaiting_approval') {
    const { request, digest: seen } = approvalOf(node)
    return { request, seen, askers }
  }
  return node.state === 'uncertain'
    ? { request: `tool:${node.input.call?.name ?? ''}`, seen: undefined, askers }
    : undefined
}
