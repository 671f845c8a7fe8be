import type { TreeNode } from 'legate/client'
import { type FormEvent, type ReactNode, useState } from 'react'
import { client } from '../../../data/client.ts'
import { useRunTree } from '../../../data/tree.ts'
import { Button } from '../../../parts/button.tsx'
import { Sheet } from '../../../parts/dialog.tsx'
import { useTask } from '../../../parts/task.ts'
import { navigate, pathOfRun } from '../../../window/router.ts'
import { count } from '../../../words/format.ts'

interface ForkDialogProps {
  readonly node: TreeNode
  readonly onClose: () => void
}

/** A new lane from a node: in the conversation itself, or inside of a child. */
export function ForkDialog({ node, onClose }: ForkDialogProps): ReactNode {
  const [children, setChildren] = useState<'reuse' | 'rerun'>('reuse')
  const [title, setTitle] = useState('')
  const task = useTask()
  const run = useRunTree(node.runId)
  const crew = run?.children.length ?? 0
  const fork = async (event: FormEvent) => {
    event.preventDefault()
    let laneId = ''
    const isMade = await task.run(async () => {
      const named = title.trim() === '' ? {} : { title: title.trim() }
      const made = await client.conversation(node.conversationId).fork(node.nodeId, { children, ...named })
      laneId = made.conversationId
    }, 'Lane made. It goes on from here.')
    if (!isMade) return
    onClose()
    navigate(pathOfRun(laneId))
  }
  return (
    <Sheet title="Fork from here" onClose={onClose}>
      <form
        className="form"
        onSubmit={(event) => {
          void fork(event)
        }}
      >
        <p className="mid">
          A new lane knows what was known at this node and goes its own way. Nothing of where it comes from changes.
        </p>
        <fieldset>
          <legend className="name">What the children came to</legend>
          <label className="opt">
            <input type="radio" name="children" checked={children === 'reuse'} onChange={() => setChildren('reuse')} />
            <span>
              <b>Keep it</b>
              <small>
                {crew === 0 ? 'There are none here' : `Copies of ${count(crew, 'result')}; costs nothing again`}
              </small>
            </span>
          </label>
          <label className="opt">
            <input type="radio" name="children" checked={children === 'rerun'} onChange={() => setChildren('rerun')} />
            <span>
              <b>Run them again</b>
              <small>From the first of them on. Costs money again</small>
            </span>
          </label>
        </fieldset>
        <label className="field">
          <span className="name">
            Title <span className="meta">optional</span>
          </span>
          <input
            className="in"
            placeholder="by invoice, shorter, with another model …"
            value={title}
            onChange={(event) => setTitle(event.target.value)}
          />
        </label>
        <div className="row">
          <Button look="primary" type="submit" keyCap="↵" disabled={task.isBusy}>
            Make the lane
          </Button>
          <Button look="quiet" onClick={onClose}>
            Not now
          </Button>
        </div>
      </form>
    </Sheet>
  )
}
