// What a lane took over from where it was forked: no event of the lane tells of it, so it is read from the rows.

import type { TreeNode, TreeState } from 'legate/client'
import { useEffect } from 'react'
import { client } from './client.ts'
import type { TreeStore } from './tree-store.ts'
import type { ConversationAnswer, NodeAnswer, RunTree } from './types.ts'

const PAGE = 500
const ROLES: Readonly<Record<string, TreeNode['role']>> = {
  user_message: 'user',
  developer_message: 'developer',
  agent_message: 'agent',
  character_message: 'agent',
}

/** Adds what the runs of a lane began with to its tree. */
export function useKept(store: TreeStore, conversation: ConversationAnswer, runs: readonly RunTree[]): void {
  const ids = conversation.forkedAt === null ? '' : runs.map(({ runId }) => runId).join(' ')
  useEffect(() => {
    let isOver = false
    const read = async () => {
      for (const runId of ids.split(' ').filter(Boolean)) {
        const nodes = await nodesOfRun(runId)
        if (isOver) return
        store.change((state) => withKept(state, runId, nodes))
      }
    }
    read().catch(() => undefined)
    return () => {
      isOver = true
    }
  }, [store, ids])
}

async function nodesOfRun(runId: string): Promise<NodeAnswer[]> {
  const found: NodeAnswer[] = []
  for (let from: number | null = 0; from !== null; ) {
    const page: Awaited<ReturnType<typeof client.nodes>> = await client.nodes(runId, { from, limit: PAGE })
    found.push(...page.nodes)
    from = typeof page.next === 'number' ? page.next : null
  }
  return found
}

/** The tree with these nodes of a run before those that events told of. */
function withKept(state: TreeState, runId: string, nodes: readonly NodeAnswer[]): TreeState {
  const run = state.runs.get(runId)
  const unknown = nodes.filter(({ id, endedAt }) => endedAt !== null && !state.nodes.has(id))
  if (run === undefined || unknown.length === 0) return state
  const told: string[] = []
  for (let at = run.nodes; at !== null; at = at.rest) told.push(at.item)
  const ids = [...unknown.map(({ id }) => id), ...told.reverse()]
  const list = ids.reduce<typeof run.nodes>((rest, item) => ({ item, rest }), null)
  let known = state.nodes
  for (const node of unknown) known = known.with(node.id, toTreeNode(node))
  return { ...state, nodes: known, runs: state.runs.with(runId, { ...run, nodes: list }) }
}

function toTreeNode(node: NodeAnswer): TreeNode {
  const { id, runId, conversationId, kind, state, input, output } = node
  const isOpen = state === 'pending' || state === 'awaiting_approval'
  return {
    nodeId: id,
    runId,
    conversationId,
    what: input.call?.name ?? kind,
    state: isOpen ? 'waiting' : state,
    waits: null,
    attempt: node.attempt,
    text: '',
    reasoning: output.reasoning ?? '',
    writes: [],
    content: output.content ?? input.content ?? null,
    role: ROLES[kind] ?? null,
    calls: output.calls ?? [],
    call: input.call ?? null,
    isError: output.isError === true,
    progress: null,
    childIds: [],
    usage: node.usage,
    model: null,
    trouble: node.failure?.message ?? null,
    asked: [],
    startedAt: node.startedAt ?? node.createdAt,
    endedAt: node.endedAt,
  }
}
