import { sha256 } from '../../base/hash.ts'
import { canonicalJson } from '../../base/json.ts'
import type { Node } from '../../graph/rows.ts'
import { approvalOf } from './approval-of.ts'
import { questionHash, questionOf } from './question-of.ts'

/**
 * The hash of what a node asks people now: its request, its question, or what became of its call. Whoever shows it shows the hash
 * too, and an answer names it as `seen`. Null for a node that asks nothing.
 */
export function seenOf(node: Node): string | null {
  if (node.state === 'awaiting_approval') return approvalOf(node).digest
  if (node.state === 'uncertain') return doubtHash(node)
  const question = node.state === 'waiting' && node.wait?.on === 'question' ? questionOf(node) : undefined
  return question === undefined ? null : questionHash(question)
}

/** The hash of a call whose effect may or may not have happened. */
export function doubtHash({ kind, input }: Pick<Node, 'kind' | 'input'>): string {
  const { name, input: given } = input.call ?? { name: kind, input: null }
  return sha256(canonicalJson(['uncertain', name, given]))
}
