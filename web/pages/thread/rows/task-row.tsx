import type { TreeNode } from 'legate/client'
import { Fragment, type ReactNode, useId } from 'react'
import { useOfTree, useRunTree } from '../../../data/tree.ts'
import type { RunTree } from '../../../data/types.ts'
import { Money, Span } from '../../../parts/figures.tsx'
import { Shape } from '../../../parts/state.tsx'
import { Chevron } from '../../../parts/states.tsx'
import { activityOf, argumentLine } from '../../../words/activity.ts'
import { answerOf, firstLine } from '../../../words/content.ts'
import { tokens, total } from '../../../words/format.ts'
import { usdOfRun } from '../../../words/money.ts'
import { shownDeep, shownNode } from '../../../words/shown.ts'
import { useFold, useThread } from '../state/thread-state.ts'
import { NodeAsks } from './node-asks.tsx'
import { NodeTools } from './node-tools.tsx'

interface TaskRowProps {
  readonly node: TreeNode
  readonly depth: number
  readonly isFew: boolean
}

/** Heads of open children stick, one below the other, to this depth. */
const MOST_STICKY = 4

export function TaskRow({ node, depth, isFew }: TaskRowProps): ReactNode {
  const runId = node.childIds.at(-1) ?? ''
  const run = useRunTree(runId)
  const [isOpen, toggle] = useFold(node.nodeId, isFew && run !== undefined && run.state !== 'ended')
  const host = useOfTree((state) => state.runs.get(node.runId)?.agent ?? '')
  const body = useId()
  const { renderRun } = useThread()
  if (run === undefined) return null
  const state = run.state === 'ended' ? shownNode(node) : shownDeep(run)
  return (
    <li
      className={`call task d${Math.min(depth, MOST_STICKY)}`}
      id={`n-${node.nodeId}`}
      data-nav
      data-node={node.nodeId}
    >
      <div className="sub-k">
        <div className="call-r">
          <button type="button" className="open" aria-expanded={isOpen} aria-controls={body} onClick={toggle}>
            <Chevron />
            <Shape state={state} />
            <span className="an">{run.agent}</span>
            <span className="said cut">
              <TaskWords node={node} runId={runId} />
            </span>
            {node.childIds.length > 1 ? <span className="tag">{node.childIds.length} attempts</span> : null}
          </button>
          <TaskFigures run={run} />
          <NodeTools node={node} />
        </div>
      </div>
      <NodeAsks node={node} />
      <div id={body}>
        {isOpen ? (
          <div className={`sub sub-${state}`} id={`r-${runId}`}>
            <ol aria-label={`Thread of ${run.agent}`}>
              {node.childIds.map((id) => (
                <Fragment key={id}>{renderRun({ runId: id, depth, asker: host })}</Fragment>
              ))}
            </ol>
          </div>
        ) : null}
      </div>
    </li>
  )
}

/** What became of it, what it does, or what it was asked: the newest that is known. */
function TaskWords({ node, runId }: { readonly node: TreeNode; readonly runId: string }): ReactNode {
  const does = useOfTree((state) => activityOf(state, runId))
  if (node.content !== null) return firstLine(answerOf(node.content))
  const asked = argumentLine(node.call?.input)
  return asked === '' ? does : asked
}

function TaskFigures({ run }: { readonly run: RunTree }): ReactNode {
  const { usage } = useThread()
  return (
    <span className="fig">
      <Span from={run.startedAt} to={run.endedAt} />
      <span>{tokens(total(run.usage))}</span>
      <Money usd={usdOfRun(run, usage)} />
    </span>
  )
}
