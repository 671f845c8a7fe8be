import type { TreeNode } from 'legate/client'
import { type ReactNode, useMemo, useState } from 'react'
import { client } from '../../../data/client.ts'
import { useRequest } from '../../../data/request.ts'
import { Arguments } from '../../../panes/ask/arguments.tsx'
import { Button } from '../../../parts/button.tsx'
import { Pieces } from '../../../parts/long-text.tsx'
import { ProblemNote } from '../../../parts/states.tsx'
import { pretty, textOf } from '../../../words/content.ts'
import { calm, shortText } from '../../../words/exact.ts'
import { count, size } from '../../../words/format.ts'
import { changesOf } from '../state/file-changes.ts'
import { FileDiff } from './file-diff.tsx'

/** What is inside of a call: the change of a file, or arguments and result. */
export function CallBody({ node }: { readonly node: TreeNode }): ReactNode {
  const changes = changesOf(node)
  return (
    <div className="call-b">
      {changes.length === 0 ? (
        <Arguments input={node.call?.input} />
      ) : (
        changes.map((change) => <FileDiff key={change.path} change={change} />)
      )}
      {node.call?.invalid === undefined ? null : (
        <p className="note note-failed">
          The model wrote arguments that are not JSON: {shortText(node.call.invalid, MOST_SHOWN)}
        </p>
      )}
      <Result node={node} />
    </div>
  )
}

/** Longer results are cut until somebody wants all of it. */
const MOST_SHOWN = 4_000

function Result({ node }: { readonly node: TreeNode }): ReactNode {
  const [isAll, setAll] = useState(false)
  const short = useMemo(() => pretty(textOf(node.content)), [node.content])
  const whole = useRequest(isAll ? `body ${node.nodeId}` : null, () => client.body(node.nodeId))
  // A row keeps the beginning of a long result; the server has all of it.
  const facts = useRequest(node.content === null ? null : `node ${node.nodeId}`, () =>
    client.nodeInfo(node.nodeId),
  ).value
  const bytes = facts?.wholeBytes ?? short.length
  const all = useMemo(() => (whole.value === undefined ? undefined : pretty(whole.value)), [whole.value])
  const text = isAll ? (all ?? short) : short
  const isCut = !isAll && (text.length > MOST_SHOWN || bytes > short.length * 2)
  const shown = useMemo(() => calm(isCut ? text.slice(0, MOST_SHOWN) : text), [isCut, text])
  if (node.content === null)
    return node.trouble === null ? null : <p className="note note-plain">{shortText(node.trouble, MOST_SHOWN)}</p>
  return (
    <div className="out">
      <div className="out-h">
        {node.what} {node.isError ? 'failed' : 'gave'}
        <span className="grow" />
        <span className="meta">{count(text.split('\n').length, 'line')}</span>
      </div>
      {whole.error === null ? null : <ProblemNote error={whole.error} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys */}
      <pre tabIndex={0} className={node.isError ? 'fg-failed' : undefined}>
        <Pieces text={shown} />
      </pre>
      {isCut ? (
        <div className="out-f">
          <Button isSmall look="quiet" onClick={() => setAll(true)}>
            Show all, {size(Math.max(bytes, text.length))}
          </Button>
        </div>
      ) : null}
    </div>
  )
}
