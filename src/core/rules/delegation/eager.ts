import type { Json } from '../../base/json.ts'
import { refusedOutcome } from '../../graph/conclude.ts'
import type { Draft } from '../../graph/draft.ts'
import { type OutcomeRecord, withWords } from '../../graph/outcome.ts'
import type { Id, Node, Turn } from '../../graph/rows.ts'
import type { ApprovalRequest } from '../turn/approval-of.ts'
import { planAsk } from '../turn/approve.ts'
import { heldNode } from '../turn/claim.ts'
import { endNode } from '../turn/end-node.ts'
import { fold } from './fold.ts'
import { type SpawnOutcome, type SpawnRequest, spawnRefusal, startChild } from './spawn.ts'

/** One complete item of a plan that is still being written. */
export interface EagerItem {
  /** Derived from the turn and the item, so that an equal item finds its child: see `delegation/eager`. */
  readonly taskId: Id
  /** Its place in the plan: `tasks[0]`. */
  readonly field: string
  readonly item: Json
}

/**
 * Adds the item, its child, the link and the waiting task in one commit, under the claim of the message that is being written.
 * An item that cannot start becomes a task that has ended with the reason.
 */
export function planEager(draft: Draft, eager: EagerItem, request: SpawnRequest): SpawnOutcome {
  const plan = heldNode(draft, request.claim)
  if (plan === undefined) return { lost: true }
  const known = draft.findLink(request.ids.turn)
  if (known !== undefined) return { link: known }
  const host = draft.turn(plan.turnId)
  if (draft.findNode(eager.taskId) !== undefined || host.cancel !== null) return { lost: true }
  const refused = spawnRefusal(draft, host, request)
  if (refused !== undefined) {
    endRefused(draft, plan, { eager, request, outcome: refusedOutcome('unavailable', `${refused.reason}.`) })
    return refused
  }
  const task = addTask(draft, host, { plan, eager, toolName: request.toolName })
  return { link: startChild(draft, task, request) }
}

/** Adds an item that is refused before it has a child. */
export function planRefusedItem(draft: Draft, refused: RefusedItem): void {
  const plan = heldNode(draft, refused.request.claim)
  if (plan === undefined || draft.findNode(refused.eager.taskId) !== undefined) return
  if (draft.turn(plan.turnId).cancel === null) endRefused(draft, plan, refused)
}

/** Adds an item whose child a person must allow: its task waits as a row, and starts the child after the approval. */
export function planAskedItem(
  draft: Draft,
  {
    eager,
    request,
    ask,
  }: {
    readonly eager: EagerItem
    readonly request: Pick<SpawnRequest, 'claim' | 'toolName'>
    readonly ask: ApprovalRequest
  },
): void {
  const plan = heldNode(draft, request.claim)
  if (plan === undefined || draft.findNode(eager.taskId) !== undefined) return
  const turn = draft.turn(plan.turnId)
  if (turn.cancel !== null) return
  const { id, epoch } = addTask(draft, turn, { plan, eager, toolName: request.toolName })
  planAsk(draft, { ...request.claim, nodeId: id, epoch }, ask)
}

export interface RefusedItem {
  readonly eager: EagerItem
  readonly request: Pick<SpawnRequest, 'claim' | 'toolName' | 'hostName' | 'contract'> & {
    readonly agent: { readonly name: string }
  }
  readonly outcome: OutcomeRecord
}

function addTask(
  draft: Draft,
  turn: Turn,
  { plan, eager, toolName }: { readonly plan: Node; readonly eager: EagerItem; readonly toolName: string },
): Node {
  const { taskId: id, field, item } = eager
  const call = { id, name: toolName, input: item }
  const effect = 'idempotent'
  draft.watchNode(plan)
  const task = draft.addNode(turn, {
    id,
    kind: 'task',
    state: 'running',
    engineId: plan.engineId,
    epoch: 1,
    startedAt: draft.now,
    input: { call, delegates: true },
    effect,
    metadata: { eager: { field, plan: plan.id } },
  })
  draft.addEdge(plan, task, 'branch')
  draft.event(draft.turn(turn.id), id, { type: 'tool-call', call, effect, delegates: true })
  return task
}

function endRefused(draft: Draft, plan: Node, { eager, request, outcome }: RefusedItem): void {
  const { toolName, hostName, contract } = request
  const task = addTask(draft, draft.turn(plan.turnId), { plan, eager, toolName })
  const facts = {
    contract,
    agentName: request.agent.name,
    hostName,
    delegationContext: { input_payload: eager.item },
    childConversationId: '',
  }
  const { content, metadata } = fold(facts, withWords(outcome, {}))
  endNode(draft, task, { state: 'finished', output: { content, isError: true, metadata } })
}
