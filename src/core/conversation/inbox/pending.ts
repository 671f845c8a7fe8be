import { InputError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { Later } from '../../base/maybe.ts'
import { flag, int, type OptionRules, readOptions, record, text } from '../../base/options.ts'
import { describeIssues, readSchema } from '../../base/schema/schema.ts'
import { type AwaitingQuery, idsUpward, type TreeReader, unlessTampered } from '../../graph/reader.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { approvalOf } from '../../rules/turn/approval-of.ts'
import { questionHash, questionOf } from '../../rules/turn/question-of.ts'
import { lookEach } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'

/** A request that waits for a person: `runtime.answer(nodeId, { allow, seen })` answers it. */
export interface PendingApproval {
  readonly nodeId: Id
  /** The run that asks, and the run at the root, whose end everybody waits for. */
  readonly runId: Id
  readonly rootRunId: Id
  readonly conversationId: Id
  /** Agent names from the root to the one that asks. */
  readonly path: readonly string[]
  /** `tool:deploy`, `agent:expert`, `file.write:/workspace/x`. */
  readonly request: string
  /** The tool of the call; null for a model, and for a server to start, which `input` names. */
  readonly tool: string | null
  readonly input: Json
  /** A hash of request and input. A node may ask several times, one after the other: this identifies the request. */
  readonly seen: string
  /** Who wants a person's approval, by which rule. */
  readonly reason: string
  readonly required: boolean
  readonly since: number
  readonly expiresAt: number
}

export interface ApprovalsQuery {
  /** Only requests of this run, or of one below it. */
  readonly runId?: Id
  /** Only requests of trees of this owner. */
  readonly owner?: string
  /** The most approvals to give. Default 100. */
  readonly limit?: number
  /** The last one of the page before. */
  readonly after?: Pick<PendingApproval, 'nodeId' | 'expiresAt'>
}

const QUERY: OptionRules<ApprovalsQuery> = { runId: text, owner: text, limit: int(0), after: record }

/**
 * The requests that wait for people, over all trees and depths: those that expire first come first. Skips trees that
 * were changed from outside.
 */
export async function pendingApprovals(store: Store, query: ApprovalsQuery): Promise<PendingApproval[]> {
  return approvalsIn(store, query, (_, approval) => approval)
}

/** Shows the requests that wait for people as something else, read from the same rows. */
export async function approvalsIn<Shown>(
  store: Store,
  query: ApprovalsQuery,
  shown: (tree: TreeReader, approval: PendingApproval) => Shown,
): Promise<Shown[]> {
  const { runId, ...page } = readOptions('approvals()', query, QUERY)
  const show = (tree: TreeReader, node: Node) => {
    const approval = askedIn(tree, node, runId)
    return approval === undefined ? undefined : shown(tree, approval)
  }
  return waitingIn(store, page, (after) => store.awaiting(after), show)
}

/** Shows nodes that wait for people, over all trees. Reads on until there are enough of them. */
async function waitingIn<Shown>(
  store: Store,
  {
    owner,
    limit = 100,
    after,
  }: {
    readonly owner?: string
    readonly limit?: number
    readonly after?: { readonly nodeId: Id; readonly expiresAt: number }
  },
  /** A page of nodes that wait, those that expire first in front. */
  read: (query: AwaitingQuery) => Later<readonly Node[]>,
  /** Shows a node to people; undefined where it is not wanted. */
  show: (tree: TreeReader, node: Node) => Shown | undefined,
): Promise<Shown[]> {
  const found: Shown[] = []
  let last = after === undefined ? undefined : { wakeAt: after.expiresAt, id: after.nodeId }
  // Mostly all of the first page are wanted. Where they are not, the next page is a large one.
  for (let size = Math.min(limit, PAGE); found.length < limit; size = PAGE) {
    const nodes = await read(pageOf(owner, last, size))
    const all = await lookEach(store, nodes, (tree, node) => unlessTampered(() => show(tree, node)))
    for (const shown of all) if (shown !== undefined) found.push(shown)
    const end = nodes.at(-1)
    if (end === undefined || nodes.length < size) break
    last = { wakeAt: end.wakeAt ?? 0, id: end.id }
  }
  return found.slice(0, limit)
}

const PAGE = 256

function pageOf(owner: string | undefined, after: AwaitingQuery['after'] | undefined, limit: number): AwaitingQuery {
  return { limit, ...(owner === undefined ? {} : { owner }), ...(after === undefined ? {} : { after }) }
}

/** The request of a node, if the node belongs to that run or to one below it. */
function askedIn(tree: TreeReader, node: Node, runId: Id | undefined): PendingApproval | undefined {
  const line = lineOf(tree, node)
  return isBelow(line, runId) ? toApproval(tree, node, line) : undefined
}

/** The run of a node and those above it. */
function lineOf(tree: TreeReader, node: Node): readonly Id[] {
  return [...idsUpward((id) => tree.link(id), node.turnId)]
}

function isBelow(line: readonly Id[], runId: Id | undefined): boolean {
  return runId === undefined || line.includes(runId)
}

function toApproval(tree: TreeReader, node: Node, line: readonly Id[]): PendingApproval {
  const { request, reason, required, input, digest, since } = approvalOf(node)
  return {
    nodeId: node.id,
    runId: node.turnId,
    rootRunId: line.at(-1) ?? node.turnId,
    conversationId: node.conversationId,
    path: tree.conversation(node.conversationId)?.path ?? [],
    request,
    tool: node.input.call?.name ?? null,
    input,
    seen: digest,
    reason,
    required,
    since,
    expiresAt: node.wakeAt ?? 0,
  }
}

/** A question that waits: `runtime.answer(nodeId, { text })` answers it. */
export interface PendingQuestion {
  readonly nodeId: Id
  readonly runId: Id
  readonly conversationId: Id
  /** Agent names from the root to the one that asks. */
  readonly path: readonly string[]
  readonly text: string
  /** A hash of the question: pass it with your answer, and it answers no other. */
  readonly seen: string
  /** `host`: the host receives it and may answer first; a person may too. `outside`: who executes the call of the node. */
  readonly to: 'host' | 'person' | 'outside'
  readonly since: number
  readonly expiresAt: number
}

export interface QuestionsQuery {
  /** Only questions of this run, or of one below it. */
  readonly runId?: Id
  /** Includes questions to a host. Default: only questions to people. */
  readonly toHosts?: boolean
  /** Includes calls that wait for who executes them: `answer(nodeId, { result })`. */
  readonly outside?: boolean
  /** Only questions of trees of this owner. */
  readonly owner?: string
  /** The most questions to give. Default 100. */
  readonly limit?: number
  /** The last one of the page before. */
  readonly after?: Pick<PendingQuestion, 'nodeId' | 'expiresAt'>
}

const QUESTIONS_QUERY: OptionRules<QuestionsQuery> = {
  runId: text,
  toHosts: flag,
  outside: flag,
  owner: text,
  limit: int(0),
  after: record,
}

/** The waiting questions, over all trees and depths: those that expire first come first. */
export async function pendingQuestions(store: Store, query: QuestionsQuery): Promise<PendingQuestion[]> {
  return questionsIn(store, query, (_, question) => question)
}

/** Shows the waiting questions as something else, read from the same rows. */
export async function questionsIn<Shown>(
  store: Store,
  query: QuestionsQuery,
  shown: (tree: TreeReader, question: PendingQuestion) => Shown,
): Promise<Shown[]> {
  const { runId, toHosts = false, outside = false, ...page } = readOptions('questions()', query, QUESTIONS_QUERY)
  const show = (tree: TreeReader, node: Node) => {
    const question = toQuestion(tree, node)
    if (question === undefined || !isBelow(lineOf(tree, node), runId)) return undefined
    return { host: toHosts, person: true, outside }[question.to] ? shown(tree, question) : undefined
  }
  return waitingIn(store, page, (after) => store.timed(after), show)
}

function toQuestion(tree: TreeReader, node: Node): PendingQuestion | undefined {
  const question = node.wait?.on === 'question' ? questionOf(node) : undefined
  if (question === undefined) return undefined
  return {
    nodeId: node.id,
    runId: node.turnId,
    conversationId: node.conversationId,
    path: tree.conversation(node.conversationId)?.path ?? [],
    text: question.text,
    seen: questionHash(question),
    to: question.to,
    since: question.since,
    expiresAt: node.wakeAt ?? 0,
  }
}

/**
 * Throws an InputError for changed arguments that do not fit the call which awaits approval; the approval stays open.
 */
export async function checkEdit(node: Node, edit: Json): Promise<void> {
  const { schema } = approvalOf(node)
  const { call } = node.input
  if (node.state !== 'awaiting_approval' || call === undefined) return
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return
  const checked = await readSchema(schema, `The arguments of ${call.name}`).validate(edit)
  if (checked.ok) return
  const issues = describeIssues(checked.issues)
  throw new InputError('invalid_input', `Nothing was answered: the new arguments of ${call.name} are wrong. ${issues}`)
}
