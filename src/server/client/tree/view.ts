import type { ConversationTree, RunTree } from '../../../core/conversation/tree.ts'
import type { WaitingOn } from '../../../core/graph/kinds.ts'
import type { Id } from '../../../core/graph/rows.ts'
import { isOpen } from './reduce.ts'
import type {
  ConversationState,
  ModelUsage,
  RunState,
  TreeApproval,
  TreeNode,
  TreeQuestion,
  TreeState,
} from './tree-state.ts'
import { inOrder } from './trie.ts'
import { sumOf } from './values.ts'

const MOST_LANES = 1_000

/** Trees that were shown before: a part that did not change is the same object in every state. */
const shownRuns = new WeakMap<RunState, RunTree>()
const shownTrees = new WeakMap<ConversationState, Map<number, ConversationTree>>()

/**
 * Everything that started from a conversation or a lane, as `runtime.tree` gives it; undefined when no event has named it.
 * Parts that are the same in two states are the same objects.
 */
export function treeOf(
  state: TreeState,
  conversationId: Id,
  { limitTurns = 50 }: { readonly limitTurns?: number } = {},
): ConversationTree | undefined {
  const row = state.conversations.get(conversationId)
  return row === undefined ? undefined : conversationTree(state, row, limitTurns)
}

function conversationTree(state: TreeState, row: ConversationState, limitTurns: number): ConversationTree {
  const known = shownTrees.get(row) ?? new Map<number, ConversationTree>()
  const shown = known.get(limitTurns)
  if (shown !== undefined) return shown
  const tree: ConversationTree = {
    conversationId: row.id,
    agent: row.agent,
    title: row.title,
    archivedAt: row.archivedAt,
    forkedAt: row.from?.nodeId ?? null,
    runs: latestRuns(row, limitTurns).flatMap((id) => {
      const run = state.runs.get(id)
      return run === undefined ? [] : [ofConversation(runTree(state, run))]
    }),
    lanes: newest(row.lanes, MOST_LANES).flatMap((id) => {
      const lane = state.conversations.get(id)
      return lane === undefined ? [] : [conversationTree(state, lane, limitTurns)]
    }),
  }
  shownTrees.set(row, known.set(limitTurns, tree))
  return tree
}

/** A run as one of its conversation: no tool started it. */
function ofConversation(run: RunTree): RunTree {
  return run.tool === null ? run : { ...run, tool: null }
}

/** The newest runs that count, oldest first. */
function latestRuns({ runs, runCount, skips }: ConversationState, limit: number): Id[] {
  const found: Id[] = []
  let ordinal = runCount - 1
  for (let at = runs; at !== null && found.length < limit; at = at.rest, ordinal--) {
    const here = ordinal
    if (!skips.some(([from, to]) => from <= here && here <= to)) found.push(at.item)
  }
  return found.reverse()
}

function newest(list: ConversationState['lanes'], limit: number): Id[] {
  const found: Id[] = []
  for (let at = list; at !== null && found.length < limit; at = at.rest) found.push(at.item)
  return found
}

function runTree(state: TreeState, run: RunState): RunTree {
  const shown = shownRuns.get(run)
  if (shown !== undefined) return shown
  const children = inOrder(run.children).flatMap((id) => {
    const child = state.runs.get(id)
    return child === undefined ? [] : [runTree(state, child)]
  })
  const tree: RunTree = {
    runId: run.id,
    conversationId: run.conversationId,
    agent: run.agent,
    tool: run.tool,
    state: run.state,
    outcome: run.outcome,
    usage: children.reduce((sum, { usage }) => sumOf(sum, usage), run.own),
    cancelRequested: run.cancelRequested,
    waitingOn: run.state === 'ended' || run.running > 0 ? [] : waitingOn(state, run),
    startedAt: run.startedAt,
    endedAt: run.endedAt,
    children,
  }
  shownRuns.set(run, tree)
  return tree
}

function waitingOn(state: TreeState, run: RunState): WaitingOn[] {
  return inOrder(run.open).flatMap((nodeId) => {
    const node = state.nodes.get(nodeId)
    if (node === undefined || !isOpen(node) || node.waits === null) return []
    const { on, refs, until } = node.waits
    const open = on === 'nodes' ? refs.filter((id) => isOpen(state.nodes.get(id))) : refs
    return [{ nodeId, on, what: node.what, refs: open, until }]
  })
}

/** A run with everything that it delegated, as `runtime.tree` gives it; undefined when no event has named it. */
export function runOf(state: TreeState, runId: Id): RunTree | undefined {
  const run = state.runs.get(runId)
  return run === undefined ? undefined : runTree(state, run)
}

/** The usage of each model call of a run itself, oldest first. */
export function usagesOf(state: TreeState, runId: Id): ModelUsage[] {
  return inOrder(state.runs.get(runId)?.usages ?? null)
}

/** A node by its id; undefined when no event has named it. */
export function nodeOf(state: TreeState, nodeId: Id): TreeNode | undefined {
  return state.nodes.get(nodeId)
}

/** The nodes of a run that events have named, in the order of their beginning. */
export function nodesOf(state: TreeState, runId: Id): TreeNode[] {
  return inOrder(state.runs.get(runId)?.nodes ?? null).flatMap((id) => state.nodes.get(id) ?? [])
}

/** The requests that wait for a person, those that expire first before the others. */
export function approvalsOf(state: TreeState): TreeApproval[] {
  return state.approvals.values().sort(byExpiry)
}

/** The questions that wait for an answer, those that expire first before the others. */
export function questionsOf(state: TreeState): TreeQuestion[] {
  return state.questions.values().sort(byExpiry)
}

interface Expiring {
  readonly nodeId: Id
  readonly expiresAt: number
}

function byExpiry(a: Expiring, b: Expiring): number {
  return a.expiresAt - b.expiresAt || (a.nodeId < b.nodeId ? -1 : 1)
}
