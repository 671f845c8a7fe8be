import { anything, readOptions } from '../base/options.ts'
import type { Usage } from '../graph/content.ts'
import { type WaitingOn, waitOf } from '../graph/kinds.ts'
import type { OutcomeRecord } from '../graph/outcome.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Link, Node, Turn, TurnState } from '../graph/rows.ts'
import { lookWith } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { turnsBackward } from './conversation-pages.ts'
import { positiveNumber } from './page-limits.ts'
import { usageOf } from './usage.ts'

export interface RunTree {
  readonly runId: Id
  readonly conversationId: Id
  readonly agent: string
  /** The tool that started it; null at the root. */
  readonly tool: string | null
  readonly state: TurnState
  readonly outcome: OutcomeRecord | null
  /** The usage of the run and everything below it. */
  readonly usage: Usage
  readonly cancelRequested: boolean
  /** The reasons why its open nodes wait; empty while a part of it runs, and when it is over. */
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

/** The tree of a conversation or lane, by its id. */
export async function readTreeOf(
  store: Store,
  conversationId: Id,
  options: { readonly limitTurns?: number },
): Promise<ConversationTree> {
  const { limitTurns = 50 } = readOptions('tree(conversationId, options)', options, { limitTurns: anything })
  const most = positiveNumber(limitTurns, 'limitTurns')
  const found = await lookWith(store, conversationId, (tree) => {
    const row = tree.conversation(conversationId)
    return row === undefined ? undefined : conversationTree(tree, row, most)
  })
  if (found === undefined) throw await notFound(store, 'conversation', conversationId)
  return found
}

/** Everything that started from a conversation or a lane: its latest runs, their delegations, its lanes. */
export function conversationTree(tree: TreeReader, row: Conversation, limitTurns: number): ConversationTree {
  const turns = turnsBackward(tree, row, { last: row.turnCount - 1, limit: limitTurns })
  return {
    conversationId: row.id,
    agent: row.agent.name,
    title: row.title,
    archivedAt: row.lane?.archivedAt ?? null,
    forkedAt: row.lane?.from?.nodeId ?? null,
    runs: turns.map((turn) => runTree(tree, turn, null)),
    lanes: lanesOf(tree, row.id).flatMap(({ id }) => {
      const lane = tree.conversation(id)
      return lane === undefined ? [] : [conversationTree(tree, lane, limitTurns)]
    }),
  }
}

/** One run of a tree with everything that it delegated. */
export function runTreeOf(tree: TreeReader, runId: Id): RunTree | undefined {
  const turn = tree.turn(runId)
  return turn === undefined ? undefined : runTree(tree, turn, tree.link(runId) ?? null)
}

function runTree(tree: TreeReader, turn: Turn, link: Link | null): RunTree {
  return {
    runId: turn.id,
    conversationId: turn.conversationId,
    agent: tree.conversation(turn.conversationId)?.agent.name ?? '',
    tool: link?.toolName ?? null,
    state: turn.state,
    outcome: turn.outcome,
    usage: usageOf(tree, turn.id)?.usage ?? turn.account.usage,
    cancelRequested: turn.cancel !== null,
    waitingOn: turn.state === 'ended' ? [] : waitingOn(tree, turn),
    startedAt: turn.startedAt,
    endedAt: turn.endedAt,
    children: tree.linksOf(turn.id).flatMap((below) => {
      const child = tree.turn(below.id)
      return child === undefined ? [] : [runTree(tree, child, below)]
    }),
  }
}

/** The reasons why the open nodes of a run wait; empty while one of them runs. */
export function waitingOn(tree: TreeReader, turn: Turn): WaitingOn[] {
  const open = tree.openNodes(turn.id)
  if (open.some(({ state }) => state === 'running')) return []
  return open.map((node) => waitOf(tree, node))
}

/** A lane in the list of the lane it was forked from. */
export interface LaneInfo {
  readonly id: Id
  readonly title: string | null
  /** The node it was forked at. */
  readonly forkedAt: Id
  readonly turns: number
  readonly isRunning: boolean
  readonly archivedAt: number | null
  readonly createdAt: number
}

const MOST_LANES = 1_000

/** The lanes that were forked from one, newest first. */
export function lanesOf(reader: Pick<TreeReader, 'conversation'>, laneId: Id): LaneInfo[] {
  const found: LaneInfo[] = []
  let at = reader.conversation(laneId)?.lane?.newest ?? null
  while (at !== null && found.length < MOST_LANES) {
    const row = reader.conversation(at)
    if (row?.lane == null) break
    const { from, before, archivedAt } = row.lane
    found.push({
      id: row.id,
      title: row.title,
      forkedAt: from?.nodeId ?? '',
      turns: row.turnCount,
      isRunning: row.activeTurnId !== null,
      archivedAt,
      createdAt: row.createdAt,
    })
    at = before
  }
  return found
}

const MOST_LOOKED_AT = 1_000

/** All versions of a node in its lane, oldest first: the inactive ones, and the active one. */
export function versionsOf(reader: TreeReader, laneId: Id, nodeId: Id): Node[] {
  const node = reader.node(nodeId)
  const row = reader.conversation(laneId)
  if (node === undefined || node.conversationId !== laneId || row === undefined) return []
  const turn = reader.turn(node.turnId)
  if (turn === undefined) return []
  const skips = row.lane?.skips ?? []
  const first = Math.min(turn.ordinal, skips[0]?.[0] ?? turn.ordinal)
  const last = Math.max(turn.ordinal, (skips.at(-1)?.[1] ?? 0) + 1)
  const turns = reader.turnsOf(laneId, { last, limit: Math.min(MOST_LOOKED_AT, last + 1 - first) })
  // An answer replaces the answers of the turns that its turn replaced.
  const answers = turn.outcome?.answerNodeId === nodeId ? answersLike(turns, turn) : NO_IDS
  const isVersion = ({ id, versionSet }: Node) => versionSet === node.versionSet || answers.has(id)
  return turns.flatMap(({ id }) => reader.nodesOf(id).filter(isVersion))
}

function answersLike(turns: readonly Turn[], turn: Turn): ReadonlySet<Id> {
  const byId = new Map(turns.map((one) => [one.id, one]))
  const firstOf = (one: Turn): Id => {
    const source = byId.get(one.history?.source ?? '')
    return source === undefined ? one.id : firstOf(source)
  }
  const first = firstOf(turn)
  return new Set(turns.flatMap((one) => (firstOf(one) === first ? (one.outcome?.answerNodeId ?? []) : [])))
}

const NO_IDS: ReadonlySet<Id> = new Set()
