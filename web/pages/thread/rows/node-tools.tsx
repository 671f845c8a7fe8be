import type { TreeNode } from 'legate/client'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { useMay } from '../../../data/server.ts'
import { useTreeSource } from '../../../data/tree.ts'
import { IconButton } from '../../../parts/button.tsx'
import { Menu, type MenuItem } from '../../../parts/menu.tsx'
import { copyNodeLink, type NodeActions, useNodeActions } from '../state/node-actions.ts'
import { useThread } from '../state/thread-state.ts'

const isTouch = matchMedia('(hover: none)').matches

/** The tools of a row. They are drawn when somebody comes near: most rows are only read. */
export function NodeTools({ node }: { readonly node: TreeNode }): ReactNode {
  const [isNear, setNear] = useState(isTouch)
  const place = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    const row = place.current?.parentElement
    const list = row?.closest<HTMLElement>('[data-nav]')
    if (isNear || row == null || list == null) return
    const come = () => setNear(true)
    row.addEventListener('pointerenter', come)
    list.addEventListener('focusin', come)
    return () => {
      row.removeEventListener('pointerenter', come)
      list.removeEventListener('focusin', come)
    }
  }, [isNear])
  return isNear ? <DrawnTools node={node} /> : <span className="tools" ref={place} />
}

/** A link to the row, and everything that can be done with it. */
function DrawnTools({ node }: { readonly node: TreeNode }): ReactNode {
  const actions = useNodeActions()
  const { conversationId } = useThread()
  const mayChange = useMay('history')
  const { isPast } = useTreeSource()
  return (
    <span className="tools">
      <IconButton
        icon="link"
        isSmall
        label="Copy a link to this"
        onClick={() => copyNodeLink(conversationId, node.nodeId)}
      />
      <Menu label="More for this node" items={() => itemsFor(node, { actions, mayChange: mayChange && !isPast })} />
    </span>
  )
}

interface Allowed {
  readonly actions: NodeActions
  readonly mayChange: boolean
}

function itemsFor(node: TreeNode, { actions, mayChange }: Allowed): MenuItem[] {
  const { can } = actions
  const history: MenuItem[] = [
    {
      icon: 'fork',
      label: 'Fork from here',
      hint: 'Keep what the children came to, or run them again',
      keyCap: 'F',
      isOff: !mayChange || !can.fork(node),
      onSelect: () => actions.fork(node),
    },
    {
      icon: 'retry',
      label: can.retry(node) || !can.rerun(node) ? 'Retry' : 'Ask for another answer',
      hint: 'All beside it keeps its result',
      keyCap: 'R',
      isOff: !mayChange || !(can.retry(node) || can.rerun(node)),
      onSelect: () => actions.retry(node),
    },
    {
      icon: 'edit',
      label: 'Edit and answer anew',
      keyCap: 'E',
      isOff: !mayChange || !can.edit(node),
      onSelect: () => actions.edit(node),
    },
    { icon: 'stack', label: 'Versions', onSelect: () => actions.versions(node) },
  ]
  return [
    ...history,
    {
      icon: 'eye',
      label: 'What the model saw',
      keyCap: 'M',
      isFirstOfPart: true,
      isOff: !can.see(node),
      onSelect: () => actions.see(node),
    },
    { icon: 'shield', label: 'Why allowed', keyCap: 'W', onSelect: () => actions.explain(node) },
    {
      icon: 'link',
      label: 'Copy a link to this',
      keyCap: 'C',
      isFirstOfPart: true,
      onSelect: () => actions.copyLink(node),
    },
  ]
}
