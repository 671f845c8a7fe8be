import type { TreeNode } from 'legate/client'
import { type FormEvent, type ReactNode, useState } from 'react'
import { client } from '../../../data/client.ts'
import { Button } from '../../../parts/button.tsx'
import { Sheet } from '../../../parts/dialog.tsx'
import { useTask } from '../../../parts/task.ts'
import { textOf } from '../../../words/content.ts'

interface EditDialogProps {
  readonly node: TreeNode
  readonly onClose: () => void
}

/** Says something else instead, and has it answered. */
export function EditDialog({ node, onClose }: EditDialogProps): ReactNode {
  const [text, setText] = useState(() => textOf(node.content))
  const task = useTask()
  const save = async (event: FormEvent) => {
    event.preventDefault()
    const talk = client.conversation(node.conversationId)
    if (await task.run(() => talk.edit(node.nodeId, text), 'Answered anew from here')) onClose()
  }
  return (
    <Sheet title="Edit and answer anew" onClose={onClose}>
      <form
        className="form"
        onSubmit={(event) => {
          void save(event)
        }}
      >
        <label className="field">
          <span className="name">What you say instead</span>
          <textarea className="in" rows={6} value={text} onChange={(event) => setText(event.target.value)} />
          <span className="hint">Later turns are set aside, and stay among the versions.</span>
        </label>
        <div className="row">
          <Button look="primary" type="submit" disabled={task.isBusy || text.trim() === ''}>
            Answer anew
          </Button>
          <Button look="quiet" onClick={onClose}>
            Not now
          </Button>
        </div>
      </form>
    </Sheet>
  )
}
