import type { NodeState } from 'legate/rows'
import { memoryStore } from 'legate/store/memory'
import { Draft } from '../../../src/core/graph/draft.ts'
import { type ChildState, childState } from '../../../src/core/rules/delegation/child-report.ts'
import { nodeRow, placeIn, treeCommit } from '../../../src/testing/conformance/store-rows.ts'

/** What a poll says of a child whose nodes are in these states, the last one its leaf. */
export function state(...states: readonly NodeState[]): ChildState {
  const store = memoryStore()
  const place = placeIn('child')
  const nodes = states.map((one, ordinal) =>
    nodeRow(place, `node-${ordinal}`, { state: one, ordinal, endedAt: isOpen(one) ? null : 1 }),
  )
  const done = store.commit(treeCommit('child', { nodes }))
  if (done instanceof Promise) throw new Error('memory answers at once')
  const draft = new Draft(store, 1)
  return childState(draft, draft.conversation('child'))
}

function isOpen(one: NodeState): boolean {
  return ['pending', 'running', 'waiting', 'awaiting_approval'].includes(one)
}
