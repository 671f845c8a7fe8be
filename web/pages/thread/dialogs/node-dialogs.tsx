import type { ReactNode } from 'react'
import { useNode, useOfTree } from '../../../data/tree.ts'
import { ExplainDrawer } from '../../../panes/drawers/explain-drawer.tsx'
import { SawDrawer } from '../../../panes/drawers/saw-drawer.tsx'
import { useCell } from '../../../window/cell.ts'
import { type NodeDialog, useThread } from '../state/thread-state.ts'
import { EditDialog } from './edit-dialog.tsx'
import { ForkDialog } from './fork-dialog.tsx'
import { VersionsDialog } from './versions-dialog.tsx'

/** The dialog that somebody has opened about a node. */
export function NodeDialogs(): ReactNode {
  const { thread } = useThread()
  const dialog = useCell(thread.dialog)
  return dialog === null ? null : (
    <OpenDialog key={dialog.nodeId} dialog={dialog} onClose={() => thread.dialog.set(null)} />
  )
}

interface OpenDialogProps {
  readonly dialog: NodeDialog
  readonly onClose: () => void
}

function OpenDialog({ dialog: { kind, nodeId }, onClose }: OpenDialogProps): ReactNode {
  const node = useNode(nodeId)
  const path = usePathOf(node?.runId ?? '')
  if (node === undefined) return null
  switch (kind) {
    case 'fork':
      return <ForkDialog node={node} onClose={onClose} />
    case 'edit':
      return <EditDialog node={node} onClose={onClose} />
    case 'versions':
      return <VersionsDialog node={node} onClose={onClose} />
    case 'saw':
      return <SawDrawer nodeId={nodeId} path={path} onClose={onClose} />
    default: {
      const request = node.call === null ? `model:${node.model ?? '*'}` : requestOf(node.what, node.childIds.length > 0)
      return <ExplainDrawer nodeId={nodeId} path={path} request={request} onClose={onClose} />
    }
  }
}

function requestOf(what: string, isAgent: boolean): string {
  return `${isAgent ? 'agent' : 'tool'}:${what}`
}

/** Agent names from the root to the run; the same array while they are the same. */
function usePathOf(runId: string): readonly string[] {
  const text = useOfTree((state) => {
    const names: string[] = []
    for (let run = state.runs.get(runId); run !== undefined; run = state.runs.get(run.hostId ?? ''))
      names.unshift(run.agent)
    return names.join('\n')
  })
  return text.split('\n')
}
