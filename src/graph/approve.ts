import { ConflictError, NotFoundError } from '../base/error.ts'
import type { Draft } from './draft.ts'
import { endNode } from './end-node.ts'
import type { Id, Node } from './rows.ts'
import { settle } from './settle.ts'

/** Has a person allowed this node to do just this? */
export function isApproved(node: Node, domain: string, name: string): boolean {
  return node.metadata['approvedBy'] !== undefined && node.metadata['approvalFor'] === `${domain}:${name}`
}

export interface ApprovalAnswer {
  readonly allowed: boolean
  readonly by: string
  readonly reason: string | null
}

/** A person's word on a call that awaits it: it runs, or it is rejected and the model reads why. */
export function planApproval(draft: Draft, nodeId: Id, answer: ApprovalAnswer): void {
  const node = draft.findNode(nodeId)
  if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId}.`)
  if (node.state !== 'awaiting_approval') {
    throw new ConflictError('conflict', `The node ${nodeId} does not await approval: it is ${node.state}.`, {
      details: { state: node.state },
    })
  }
  draft.event(draft.turn(node.turnId), node.id, { type: 'approval-answer', ...answer })
  if (answer.allowed) {
    const ready = draft.changeNode(node, { state: 'pending', metadata: { ...node.metadata, approvedBy: answer.by } })
    if (ready.blockers === 0) draft.claim(ready)
    return
  }
  endNode(draft, node, {
    state: 'rejected',
    failure: { code: 'approval_denied', message: answer.reason ?? 'No reason was given.' },
  })
  settle(draft)
}
