import type { Id, Node } from '../rows.ts'
import { slotOf, taskIdsOf } from '../turn/expansion-ids.ts'

/** Does another version of it count instead? */
export function isReplaced({ marks }: Node): boolean {
  return marks !== null && marks.replacedBy !== null
}

export function isDeleted({ marks }: Node): boolean {
  return marks !== null && marks.deletedAt !== null
}

/** Is it kept from models? */
function isHidden({ marks }: Node): boolean {
  return marks !== null && (marks.excludedAt !== null || marks.deletedAt !== null)
}

/** A summary is shown where it stands for something, not where it was made. */
function isAside({ kind, purpose, metadata }: Node): boolean {
  if (purpose !== 'summarize' && (kind !== 'summary' || metadata['folds'] === undefined)) return false
  return metadata['standsFor'] !== true
}

const LEFT_OUT = 'This result was left out of the conversation.'

/**
 * What a model is shown of a context. A call and its result belong together: what is hidden of a result leaves a word in
 * its place, and a hidden message takes the results of its calls with it.
 */
export function withoutHidden(nodes: Node[]): Node[] {
  if (nodes.every((node) => node.marks === null && node.purpose !== 'summarize' && node.kind !== 'summary')) {
    return nodes
  }
  const gone = new Set<Id>()
  for (const node of nodes) if (isHidden(node)) for (const id of taskIdsOf(node)) gone.add(id)
  return nodes.flatMap((node) => {
    if (gone.has(slotOf(node)) || isReplaced(node) || isAside(node)) return []
    if (!isHidden(node)) return [node]
    return node.kind === 'task' && node.input.call !== undefined ? [leftOut(node)] : []
  })
}

function leftOut(task: Node): Node {
  return { ...task, state: 'finished', output: { content: LEFT_OUT } }
}
