import type { TreeNode } from 'legate/client'
import type { ReactNode } from 'react'
import { useOfTree } from '../../../data/tree.ts'
import { Shape } from '../../../parts/state.tsx'
import { initials, listOf } from '../../../words/format.ts'

interface WaitingLineProps {
  readonly node: TreeNode
  readonly agent: string
  readonly depth: number
}

/** What an agent waits for before it speaks again. */
export function WaitingLine({ node, agent, depth }: WaitingLineProps): ReactNode {
  const words = useOfTree((state) => {
    if (node.waits?.on !== 'nodes')
      return node.trouble === null ? 'waits for a free worker.' : `tries again: ${node.trouble}`
    const open = node.waits.refs.flatMap((id) => {
      const one = state.nodes.get(id)
      if (one === undefined || (one.state !== 'running' && one.state !== 'waiting')) return []
      return state.runs.get(one.childIds.at(-1) ?? '')?.agent ?? one.what
    })
    return open.length === 0 ? 'goes on.' : `goes on when ${listOf(open)} ${open.length === 1 ? 'has' : 'have'} ended.`
  })
  return (
    <li className={`entry ${depth === 0 ? 'root' : ''}`}>
      {depth === 0 ? (
        <span className="av" aria-hidden="true">
          {initials(agent)}
        </span>
      ) : null}
      <div className="pend">
        <Shape state="waiting" isDecoration />
        <span>
          <b className="mid">{agent}</b> {words}
        </span>
      </div>
    </li>
  )
}
