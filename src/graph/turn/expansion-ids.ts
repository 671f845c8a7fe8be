import { deriveIds } from '../../base/id.ts'
import type { Id, Node } from '../rows.ts'

/** Of the tasks of a message and of the message that reads their results. Derived, so that the same answer makes the same. */
export function expansionIds(nodeId: Id, tasks: number): Id[] {
  return deriveIds(nodeId, 'expand', tasks + 1)
}

/** The tasks that a message's calls made. */
export function taskIdsOf({ id, output }: Pick<Node, 'id' | 'output'>): readonly Id[] {
  const count = output.calls?.length ?? 0
  return count === 0 ? NONE : expansionIds(id, count).slice(0, count)
}

const NONE: readonly Id[] = []

/** Which of them a task stands for: its own id, or that of the one whose place it took in its turn. */
export function slotOf({ id, metadata }: Pick<Node, 'id' | 'metadata'>): Id {
  const slot = metadata['slot']
  return typeof slot === 'string' ? slot : id
}
