import type { Json } from '../base/json.ts'
import { int, type Rules, readOptions, record, text } from '../base/options.ts'
import { lineOfIds } from '../graph/line.ts'
import type { Id, Node } from '../graph/rows.ts'
import { approvalOf } from '../graph/turn/approve.ts'
import type { Store } from '../store/store.ts'
import { unlessTampered } from '../store/tampered.ts'

/** One thing a person is asked: `runtime.answer(nodeId, { allow })` answers it. */
export interface PendingApproval {
  readonly nodeId: Id
  /** The run that asks, and the root's at whose end everybody waits. */
  readonly runId: Id
  readonly rootRunId: Id
  readonly conversationId: Id
  /** Agent names from the root to the one that asks. */
  readonly path: readonly string[]
  /** `tool:deploy`, `agent:expert`, `file.write:/workspace/x`. */
  readonly request: string
  /** The tool it would call; null for a model, and for a server that would be started: `input` says which. */
  readonly tool: string | null
  readonly input: Json
  /** Of request and input. A node may ask for several things, one after the other: this says which one it is. */
  readonly digest: string
  /** Who wants a person to be asked, by which rule. */
  readonly reason: string
  readonly required: boolean
  readonly since: number
  readonly expiresAt: number
}

export interface ApprovalsQuery {
  /** Only what this run, or one below it, asks. */
  readonly runId?: Id
  readonly limit?: number
  /** The last one of the page before. */
  readonly after?: Pick<PendingApproval, 'nodeId' | 'expiresAt'>
}

const QUERY: Rules<ApprovalsQuery> = { runId: text, limit: int(0), after: record }

/**
 * What people are asked, over all trees and depths: those that expire first come first. A tree that was changed from outside asks
 * nothing.
 */
export function approvalsOf(store: Store, query: ApprovalsQuery): PendingApproval[] {
  const { runId, limit = 100, after } = readOptions('approvals()', query, QUERY)
  const found: PendingApproval[] = []
  let last = after === undefined ? undefined : { wakeAt: after.expiresAt, id: after.nodeId }
  while (found.length < limit) {
    const nodes = store.awaiting({ limit: PAGE, ...(last === undefined ? {} : { after: last }) })
    for (const node of nodes) {
      found.push(...(unlessTampered(() => askedIn(store, node, runId)) ?? []))
      last = { wakeAt: node.wakeAt ?? 0, id: node.id }
    }
    if (nodes.length < PAGE) break
  }
  return found.slice(0, limit)
}

const PAGE = 256

/** What a node asks, where it is of that run or of one below it. */
function askedIn(store: Store, node: Node, runId: Id | undefined): PendingApproval[] {
  const line = [...lineOfIds((id) => store.link(id), node.turnId)]
  return runId === undefined || line.includes(runId) ? [toApproval(store, node, line)] : []
}

function toApproval(store: Store, node: Node, line: readonly Id[]): PendingApproval {
  const { request, reason, required, input, digest, since } = approvalOf(node)
  return {
    nodeId: node.id,
    runId: node.turnId,
    rootRunId: line.at(-1) ?? node.turnId,
    conversationId: node.conversationId,
    path: store.conversation(node.conversationId)?.path ?? [],
    request,
    tool: node.input.call?.name ?? null,
    input,
    digest,
    reason,
    required,
    since,
    expiresAt: node.wakeAt ?? 0,
  }
}
