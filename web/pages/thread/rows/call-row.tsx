// A call is one row that opens to its arguments and its result; a call that delegates opens to the child's thread in place.

import type { TreeNode } from 'legate/client'
import { memo, type ReactNode } from 'react'
import { useNode } from '../../../data/tree.ts'
import { Boundary } from '../../../parts/boundary.tsx'
import { Span } from '../../../parts/figures.tsx'
import { Shape } from '../../../parts/state.tsx'
import { Chevron } from '../../../parts/states.tsx'
import { argumentLine } from '../../../words/activity.ts'
import { firstLine, textOf } from '../../../words/content.ts'
import { ranSince, type Shown, shownNode } from '../../../words/shown.ts'
import { useFold } from '../state/thread-state.ts'
import { CallBody } from './call-body.tsx'
import { NodeAsks } from './node-asks.tsx'
import { NodeTools } from './node-tools.tsx'
import { TaskRow } from './task-row.tsx'

interface CallRowProps {
  readonly nodeId: string
  readonly depth: number
  readonly isFew: boolean
}

export const CallRow = memo(function CallRow({ nodeId, depth, isFew }: CallRowProps): ReactNode {
  const node = useNode(nodeId)
  if (node === undefined) return null
  return (
    <Boundary what="This call">
      {node.childIds.length > 0 ? <TaskRow node={node} depth={depth} isFew={isFew} /> : <PlainRow node={node} />}
    </Boundary>
  )
})

function PlainRow({ node }: { readonly node: TreeNode }): ReactNode {
  const [isOpen, toggle] = useFold(node.nodeId, false)
  const id = `c-${node.nodeId}`
  const state = shownNode(node)
  return (
    <li className="call" id={`n-${node.nodeId}`} data-nav data-node={node.nodeId}>
      <div className="call-r">
        <button type="button" className="open" aria-expanded={isOpen} aria-controls={id} onClick={toggle}>
          <Chevron />
          <Shape state={state} />
          <span className="tn">{node.what}</span>
          <span className="arg cut">{lineOf(node)}</span>
          <CallTag node={node} state={state} />
        </button>
        <span className="fig">
          <Span from={ranSince(node)} to={node.endedAt} />
        </span>
        <NodeTools node={node} />
      </div>
      <NodeAsks node={node} />
      <div id={id}>{isOpen ? <CallBody node={node} /> : null}</div>
    </li>
  )
}

function lineOf({ call, content, progress }: TreeNode): string {
  if (progress !== null) return firstLine(progress)
  const line = argumentLine(call?.input)
  return line === '' ? firstLine(textOf(content)) : line
}

const TAGS: Partial<Readonly<Record<TreeNode['state'], string>>> = {
  rejected: 'denied',
  skipped: 'skipped',
  stopped: 'stopped',
  uncertain: 'uncertain',
}

function CallTag({ node, state }: { readonly node: TreeNode; readonly state: Shown }): ReactNode {
  const word = TAGS[node.state] ?? (node.attempt > 1 ? `${node.attempt} attempts` : null)
  return word === null ? null : <span className={`tag ${state === 'failed' ? 'tag-failed' : ''}`}>{word}</span>
}
