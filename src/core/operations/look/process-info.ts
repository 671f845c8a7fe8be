import { flag, type OptionRules, readOptions } from '../../base/options.ts'
import { isDead } from '../../engine/lease.ts'
import type { EngineRow, SourceHealth } from '../../graph/commit.ts'
import { unlessTampered } from '../../graph/reader.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { look } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'

/** A process that runs nodes of a store. */
export interface ProcessInfo {
  readonly id: Id
  readonly pid: number
  /** False where it is proven gone, or silent for longer than its lease. */
  readonly isAlive: boolean
  /** True while it ends: it takes no more nodes, and those that run have a grace. */
  readonly isDraining: boolean
  /** The name of its machine; null where it does not say. */
  readonly host: string | null
  /** When it began to run nodes; null where it does not say. */
  readonly startedAt: number | null
  /** When it last renewed its lease, by the time of leases; null where it does not say. */
  readonly heardAt: number | null
  /** Names of the agents that it has code for, the empty one for those that need none; null where it does not say. */
  readonly agents: readonly string[] | null
  /** The hash of its newest definition of each agent, by name, of at most 100; null where it does not say. */
  readonly definitions: Readonly<Record<string, string>> | null
  /** The queue that brings it work; null where it looks for work itself. */
  readonly queue: string | null
  /** The hashes of the only definitions that it goes on with; null where it goes on with any. */
  readonly versions: readonly string[] | null
  /** The sources of tools that it has used, those that fail first. */
  readonly sources: readonly SourceHealth[]
  /** The nodes that it has claimed, at most 100; null where the query does not ask for them. */
  readonly running: readonly ClaimedNode[] | null
}

export interface ProcessesQuery {
  /** Also gives the nodes that each process has claimed. Default false. */
  readonly running?: boolean
}

const QUERY: OptionRules<ProcessesQuery> = { running: flag }

/** A node that a process has claimed. */
export interface ClaimedNode {
  readonly nodeId: Id
  readonly runId: Id
  /** Agent names from the root. */
  readonly path: readonly string[]
  /** The tool that is called; null where a model is. */
  readonly tool: string | null
  readonly since: number | null
}

const MOST_RUNNING = 100

/** Describes the processes of a store by their rows and claims. */
export async function processInfos(store: Store, query: ProcessesQuery, now: number): Promise<ProcessInfo[]> {
  const { running = false } = readOptions('processes()', query, QUERY)
  const infos: ProcessInfo[] = []
  for (const engine of await store.engines()) {
    const claimed = running ? await store.claimedBy(engine.id, MOST_RUNNING) : null
    const nodes = claimed === null ? null : await Promise.all(claimed.map((node) => claimedNode(store, node)))
    infos.push(infoOf(engine, nodes, now))
  }
  return infos
}

function infoOf(engine: EngineRow, running: ProcessInfo['running'], now: number): ProcessInfo {
  const { id, pid, host = null, startedAt = null, heardAt = null, agents, versions = null, sources = [] } = engine
  const { definitions = null, queue = null, draining: isDraining = false } = engine
  const isAlive = !isDead(engine, now)
  const told = { host, startedAt, heardAt, agents: agents ?? null, definitions, queue, versions, sources }
  return { id, pid, isAlive, isDraining, ...told, running }
}

async function claimedNode(store: Store, node: Node): Promise<ClaimedNode> {
  const { id: nodeId, turnId: runId, rootId, conversationId, input, startedAt: since } = node
  const row = await look(store, rootId, (tree) => unlessTampered(() => tree.conversation(conversationId)))
  const path = row?.path ?? []
  return { nodeId, runId, path, tool: input.call?.name ?? null, since }
}
