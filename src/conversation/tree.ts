import type { Usage } from '../graph/content.ts'
import type { OutcomeRecord } from '../graph/outcome.ts'
import type { Conversation, Id, Link, Node, Turn, TurnState } from '../graph/rows.ts'
import type { Store } from '../store/store.ts'
import { turnsBackward } from './lane-turns.ts'
import { lanesOf } from './lanes.ts'
import { usageOf } from './usage.ts'

/** Why a node does not go on by itself. */
export interface WaitingOn {
  readonly nodeId: Id
  readonly on: 'approval' | 'question' | 'children' | 'timer' | 'claim' | 'nodes'
  /** The tool, or the kind of node, that waits. */
  readonly what: string
  /** Runs or nodes that are waited for. */
  readonly refs: readonly Id[]
  /** When it goes on by itself; null for never. */
  readonly until: number | null
}

export interface RunTree {
  readonly runId: Id
  readonly conversationId: Id
  readonly agent: string
  /** The tool that started it; null at the root. */
  readonly tool: string | null
  readonly state: TurnState
  readonly outcome: OutcomeRecord | null
  /** Of the run and all below it. */
  readonly usage: Usage
  readonly cancelRequested: boolean
  /** What its open nodes wait for; empty while something of it runs by itself, and when it is over. */
  readonly waitingOn: readonly WaitingOn[]
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly children: readonly RunTree[]
}

export interface ConversationTree {
  readonly conversationId: Id
  readonly agent: string
  readonly title: string | null
  readonly archivedAt: number | null
  /** The node it was forked at; null for a first lane. */
  readonly forkedAt: Id | null
  /** The latest runs, oldest first. */
  readonly runs: readonly RunTree[]
  readonly lanes: readonly ConversationTree[]
}

/** Everything that was started from a conversation or a lane: its latest runs, what they delegated, its lanes. */
export function treeOf(store: Store, row: Conversation, limitTurns: number): ConversationTree {
  const turns = turnsBackward(store, row, { last: row.turnCount - 1, limit: limitTurns })
  return {
    conversationId: row.id,
    agent: row.agent.name,
    title: row.title,
    archivedAt: row.lane?.archivedAt ?? null,
    forkedAt: row.lane?.from?.nodeId ?? null,
    runs: turns.map((turn) => runTree(store, turn, null)),
    lanes: lanesOf(store, row.id).flatMap(({ id }) => {
      const lane = store.conversation(id)
      return lane === undefined ? [] : [treeOf(store, lane, limitTurns)]
    }),
  }
}

function runTree(store: Store, turn: Turn, link: Link | null): RunTree {
  return {
    runId: turn.id,
    conversationId: turn.conversationId,
    agent: store.conversation(turn.conversationId)?.agent.name ?? '',
    tool: link?.toolName ?? null,
    state: turn.state,
    outcome: turn.outcome,
    usage: usageOf(store, turn.id)?.usage ?? turn.account.usage,
    cancelRequested: turn.cancel !== null,
    waitingOn: turn.state === 'ended' ? [] : waitingOn(store, turn),
    startedAt: turn.startedAt,
    endedAt: turn.endedAt,
    children: store.linksOf(turn.id).flatMap((below) => {
      const child = store.turn(below.id)
      return child === undefined ? [] : [runTree(store, child, below)]
    }),
  }
}

function waitingOn(store: Store, turn: Turn): WaitingOn[] {
  const open = store.openNodes(turn.id)
  if (open.some(({ state }) => state === 'running')) return []
  return open.flatMap((node) => waitOf(store, node) ?? [])
}

function waitOf(store: Store, node: Node): WaitingOn | undefined {
  const what = node.input.call?.name ?? node.kind
  const { id: nodeId, wakeAt: until } = node
  if (node.state === 'awaiting_approval') return { nodeId, on: 'approval', what, refs: [], until }
  if (node.wait !== null) return { nodeId, on: node.wait.on, what, refs: node.wait.refs, until: node.wait.until }
  if (node.blockers > 0) return { nodeId, on: 'nodes', what, refs: blockersOf(store, node), until: null }
  return { nodeId, on: until === null ? 'claim' : 'timer', what, refs: [], until }
}

function blockersOf(store: Store, node: Node): Id[] {
  return store.edgesTo(node.id).flatMap(({ from, type }) => {
    return type !== 'branch' && store.node(from)?.endedAt === null ? [from] : []
  })
}
