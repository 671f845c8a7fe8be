// Everything that can be done with a node of a thread, from its menu or by a key.

import type { TreeNode } from 'legate/client'
import { client } from '../../../data/client.ts'
import { useMay } from '../../../data/server.ts'
import { useTreeSource } from '../../../data/tree.ts'
import { copy } from '../../../parts/button.tsx'
import { useTask } from '../../../parts/task.ts'
import { say } from '../../../parts/toast.tsx'
import { useKeys } from '../../../window/keys.ts'
import { addressOf, pathOfRun } from '../../../window/router.ts'
import { focusRow } from '../../../window/rows.ts'
import { isMessage } from './entries.ts'
import { type NodeDialog, useThread } from './thread-state.ts'

type Act = (node: TreeNode) => void

export interface NodeActions {
  readonly fork: Act
  readonly retry: Act
  readonly edit: Act
  readonly versions: Act
  readonly see: Act
  readonly explain: Act
  readonly copyLink: Act
  /** Whether it makes sense for a node. */
  readonly can: Readonly<Record<'fork' | 'retry' | 'rerun' | 'edit' | 'see', (node: TreeNode) => boolean>>
}

const FAILED: ReadonlySet<string> = new Set(['errored', 'rejected', 'uncertain'])

const CAN: NodeActions['can'] = {
  fork: ({ endedAt }) => endedAt !== null,
  retry: ({ state, isError, childIds }) => FAILED.has(state) || (isError && childIds.length > 0),
  rerun: ({ role, state, calls }) => role === 'agent' && state === 'finished' && calls.length === 0,
  edit: ({ role }) => role === 'user',
  see: ({ what }) => isMessage(what) && what !== 'user_message' && what !== 'developer_message',
}

export function useNodeActions(): NodeActions {
  const { thread, conversationId } = useThread()
  const task = useTask()
  const show =
    (kind: NodeDialog['kind']): Act =>
    ({ nodeId }) =>
      thread.dialog.set({ kind, nodeId })
  const retry: Act = (node) => {
    const talk = client.conversation(node.conversationId)
    const isFailed = CAN.retry(node)
    const work = () => (isFailed ? talk.retry(node.nodeId) : talk.rerun(node.nodeId))
    void task.run(work, isFailed ? 'Only this is done again' : 'The model is asked for another answer')
  }
  return {
    fork: show('fork'),
    edit: show('edit'),
    versions: show('versions'),
    see: show('saw'),
    explain: show('explain'),
    retry,
    copyLink: ({ nodeId }) => copyNodeLink(conversationId, nodeId),
    can: CAN,
  }
}

export function copyNodeLink(conversationId: string, nodeId: string): void {
  copy(addressOf(pathOfRun(conversationId, '', nodeId)), 'Link copied')
}

/** The keys of a thread act on the row that has the focus. */
export function useNodeKeys(): void {
  const actions = useNodeActions()
  const { get, isPast } = useTreeSource()
  const mayChange = useMay('history') && !isPast
  const at =
    (act: Act, can: (node: TreeNode) => boolean = () => true): (() => void) =>
    () => {
      const id = document.activeElement?.closest<HTMLElement>('[data-node]')?.dataset['node']
      const node = id === undefined ? undefined : get().nodes.get(id)
      if (node === undefined) say('Choose a row first: j and k lead from one to the next.')
      else if (can(node)) act(node)
      else say('That does not apply to this row.')
    }
  useKeys({
    f: at(actions.fork, (node) => mayChange && CAN.fork(node)),
    r: at(actions.retry, (node) => mayChange && (CAN.retry(node) || CAN.rerun(node))),
    e: at(actions.edit, (node) => mayChange && CAN.edit(node)),
    m: at(actions.see, CAN.see),
    w: at(actions.explain),
    c: at(actions.copyLink),
    u: goUp,
  })
}

/** From a row of a child to the row of its host that started it. */
function goUp(): void {
  const here = document.activeElement?.closest<HTMLElement>('[data-nav]')
  const above = here?.parentElement?.closest<HTMLElement>('[data-nav]')
  if (above == null) return
  focusRow(above)
  above.scrollIntoView({ block: 'nearest' })
}
