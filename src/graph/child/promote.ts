import type { Draft } from '../draft.ts'
import type { Link, NodeOutput } from '../rows.ts'
import { endNode } from '../turn/end-node.ts'
import { keepInBackground } from './background.ts'

/** A call that waits for its child no longer does: it ends with these words, and the same run goes on in the background. */
export function promote(draft: Draft, link: Link, output: NodeOutput): void {
  const task = draft.node(link.taskId)
  if (link.mode !== 'parked' || link.outcome !== null || task.state !== 'waiting') return
  const promoted = draft.changeLink(link, { mode: 'background', wake: link.wake ?? 'auto' })
  keepInBackground(draft, promoted)
  const { subagent } = task.output
  endNode(draft, task, { state: 'finished', output: subagent === undefined ? output : { ...output, subagent } })
}
