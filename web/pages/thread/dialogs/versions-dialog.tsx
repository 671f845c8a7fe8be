import type { TreeNode } from 'legate/client'
import { type ReactNode, useState } from 'react'
import { client } from '../../../data/client.ts'
import { useRequest } from '../../../data/request.ts'
import { useMay } from '../../../data/server.ts'
import type { NodeAnswer } from '../../../data/types.ts'
import { Button, IconButton } from '../../../parts/button.tsx'
import { Sheet } from '../../../parts/dialog.tsx'
import { Prose } from '../../../parts/prose.tsx'
import { ProblemNote } from '../../../parts/states.tsx'
import { useTask } from '../../../parts/task.ts'
import { textOf } from '../../../words/content.ts'
import { clock } from '../../../words/format.ts'
import { jsonText } from '../../../words/json-text.ts'

interface VersionsDialogProps {
  readonly node: TreeNode
  readonly onClose: () => void
}

/** All versions of a node: what it was before it was retried, edited or answered anew. */
export function VersionsDialog({ node, onClose }: VersionsDialogProps): ReactNode {
  const { value, error } = useRequest(`versions ${node.nodeId}`, async () => (await client.versions(node.nodeId)).nodes)
  return (
    <Sheet title="Versions" onClose={onClose}>
      {error === null ? null : <ProblemNote error={error} />}
      {value === undefined ? (
        <p className="dim">Reading them.</p>
      ) : (
        <Versions all={value} node={node} onClose={onClose} />
      )}
    </Sheet>
  )
}

interface VersionsProps extends VersionsDialogProps {
  readonly all: readonly NodeAnswer[]
}

function Versions({ all, node, onClose }: VersionsProps): ReactNode {
  const now = Math.max(
    0,
    all.findIndex(({ id }) => id === node.nodeId),
  )
  const [at, setAt] = useState(now)
  const task = useTask()
  const mayAdopt = useMay('history')
  const shown = all[at]
  if (shown === undefined) return <p className="dim">There is one version.</p>
  const adopt = async () => {
    const talk = client.conversation(node.conversationId)
    if (await task.run(() => talk.adopt(shown.id), 'This version counts again')) onClose()
  }
  const text = textOf(shown.output.content ?? shown.input.content ?? null) || jsonText(shown.input.call ?? null)
  return (
    <div className="stack">
      <div className="row">
        <IconButton icon="earlier" label="Earlier version" disabled={at === 0} onClick={() => setAt(at - 1)} />
        <span className="meta">
          version {at + 1} of {all.length} · {clock(shown.createdAt)}
        </span>
        <IconButton icon="later" label="Later version" disabled={at === all.length - 1} onClick={() => setAt(at + 1)} />
        <span className="grow" />
        {at === now || !mayAdopt ? null : (
          <Button
            isSmall
            disabled={task.isBusy}
            onClick={() => {
              void adopt()
            }}
          >
            Adopt
          </Button>
        )}
      </div>
      <Prose text={text} />
    </div>
  )
}
