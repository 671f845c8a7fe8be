// A runtime as one principal may use it: `runtime.as(principal)`. The only thing that a surface ever holds (I12).
//
// Owns:      the check before every door: the scope, then the owner of the tree that an id leads to.
// Called by: `Runtime.as`; servers, protocols and pages through it.
// Must stay true:
//   - Every id is taken to the root of its tree first. The id of another owner and an id that does not exist give the same
//     answer after the same reads (I9).
//   - What it starts is bound by the principal's layers: the conversation by its creator's for good, a run by those of who
//     starts it (I1).
//   - `by` is the principal's id, and never comes from a caller.

import type { AnyAgent } from '../agent/definition/agent.ts'
import type { DayRequest } from '../agent/step/within-day.ts'
import type { ForgottenOwner, Importing } from '../audit/archive.ts'
import type { AuditOptions, AuditReport } from '../audit/audit.ts'
import type { RunDiff } from '../audit/diff.ts'
import type { PictureOptions } from '../audit/picture.ts'
import type { PruneOptions } from '../audit/prune.ts'
import type { Why } from '../audit/why.ts'
import { DefinitionError, DeniedError, NotFoundError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { PAGE_BYTES } from '../base/page/room.ts'
import type { ConversationHandle } from '../conversation/conversation.ts'
import type { GraphData, GraphQuery } from '../conversation/data/graph-data.ts'
import type { ConversationInfo, ListQuery, RunInfo, RunsQuery } from '../conversation/data/lists.ts'
import type { NodeInfo, WholeResult } from '../conversation/data/node-info.ts'
import type { TimelineRun } from '../conversation/data/timeline.ts'
import type { DaysQuery, PricedDay } from '../conversation/data/usage-by-day.ts'
import type { InboxItem, InboxQuery } from '../conversation/inbox/inbox.ts'
import type { ApprovalsQuery, PendingApproval, PendingQuestion, QuestionsQuery } from '../conversation/inbox/pending.ts'
import type { SaidWord, SettleWord } from '../conversation/inbox/settle.ts'
import type { Run, TreeEventsOptions } from '../conversation/run.ts'
import type { ConversationTree } from '../conversation/tree.ts'
import type { UsageShare } from '../conversation/usage.ts'
import type { Explanation } from '../grant/decide.ts'
import {
  checkPrincipal,
  hasScope,
  isOperator,
  looksAfter,
  maySee,
  mayStart,
  ownersSeenBy,
  type Principal,
  principalCeiling,
  requireEdit,
  type Scope,
  seesEverything,
} from '../grant/principal.ts'
import type { RunEvent } from '../graph/event.ts'
import type { Conversation, Id, Node } from '../graph/rows.ts'
import type { SettledCall } from '../rules/history/settle-call.ts'
import type { Tombstone } from '../store/archive.ts'
import type { ChangePage } from '../store/feed.ts'
import { look } from '../store/look.ts'
import { missingError } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { AgentInfo } from './look/agent-info.ts'
import type { FoundIds, TreeEvents, TreesPage, TreesQuery } from './look/find.ts'
import type { ImportOptions } from './look/import-as.ts'
import type { ProcessesQuery, ProcessInfo } from './look/process-info.ts'
import type { ShownRequest } from './look/request-of.ts'
import type { NodePage, RunEventPage, RunEventQuery, RunLook } from './look/run-look.ts'
import { byCreation, byDay, byExpiry, bySince, byStart, SeenLists } from './look/seen-lists.ts'
import type { TreeData, TreeQuery } from './look/tree-data.ts'
import type { ResultWord, ScopedSettleWord, ScopedStart, ScopedStartOptions, ScopedWord } from './options.ts'
import { type ConversationOptions, narrowedLayers, type OnBehalf, ScopedConversation } from './scoped-conversation.ts'
import type { StoreOperations } from './store-operations.ts'

/** The parts of a runtime that a scoped one works with. */
export interface ScopedParts {
  readonly store: Store
  /** An id that this runtime has found before; empty for none. */
  readonly known: { id: Id }
  readonly operations: StoreOperations
  /** Settles a call under the layers of whoever says it. */
  readonly settle: (nodeId: Id, word: SettleWord, who: Pick<SaidWord, 'by' | 'caller'>) => Promise<SettledCall>
  readonly start: (agent: AnyAgent, input: unknown, start: ScopedStart) => Run
  readonly attach: (runId: Id, mayCancel: () => void) => Promise<Run>
  readonly conversation: (id: Id, on: OnBehalf) => Promise<ConversationHandle>
  /** Throws where the day of somebody whose limit is among these layers is used up, or nobody owns the conversation. */
  readonly requireDay: (layers: readonly Json[], owner: string | null, request?: DayRequest) => Promise<void>
  readonly importOf: (lines: Iterable<string> | AsyncIterable<string>, how: Importing) => Promise<Id>
  /** May what the principal starts start programs? */
  readonly trusted: () => boolean
  /** Cancels and deletes everything of an owner, but for the usage of today where it says so. */
  readonly forgetOwner: (owner: string, reason: string, keepsDay: boolean) => Promise<ForgottenOwner>
  /** Deletes trees without an open run, of agents that `maySee`. */
  readonly prune: (options: PruneOptions, maySee: (agent: string) => boolean) => Promise<Tombstone[]>
  readonly explain: (of: Id | AnyAgent, request: string) => Promise<Explanation>
  /** The names of the agents that this principal starts by name but for the programs that these start. */
  readonly untrusted: (principal: Principal, layers: readonly Json[]) => Promise<readonly string[]>
  /** The agent of that name, if the program offers it. */
  readonly findAgent: (name: string) => AnyAgent | undefined
  readonly agents: () => Promise<readonly AgentInfo[]>
  readonly events: (conversationId: Id, options: TreeEventsOptions) => AsyncIterable<RunEvent>
  readonly requestOf: (nodeId: Id) => Promise<ShownRequest>
  /** `mayRead`: with `content` the requests of models are in it, which hold instructions too. */
  readonly otlp: (
    id: Id,
    options: Parameters<StoreOperations['otlp']>[1],
    mayRead: boolean,
  ) => ReturnType<StoreOperations['otlp']>
}

type Named = 'run' | 'conversation' | 'node'
const NOWHERE = '00000000-0000-7000-8000-000000000000'

/** The runtime as one principal may use it. Foreign ids answer like unknown ones. */
export class ScopedRuntime {
  readonly principal: Principal
  private readonly parts: ScopedParts
  /** Lists as the principal sees them. */
  private readonly seen: SeenLists
  /** The principal's layers, frozen. */
  private readonly layers: readonly Json[]

  constructor(parts: ScopedParts, principal: Principal) {
    this.parts = parts
    this.principal = checkPrincipal(principal, 'runtime.as(principal)')
    this.layers = principalCeiling(this.principal)
    this.seen = new SeenLists(this.principal)
  }

  /** True where the principal may do this at all. */
  may(scope: Scope): boolean {
    return hasScope(this.principal, scope)
  }

  /** Starts an agent, by its name or itself, and returns at once. The principal owns the conversation. */
  run(agent: AnyAgent | string, input?: unknown, options: ScopedStartOptions = {}): Run {
    this.require('start')
    if ('createConversation' in options) throw new DefinitionError('definition', NO_CHOICE)
    return this.parts.start(this.agentToStart(agent), input, { options, by: this.principal, layers: this.layers })
  }

  private agentToStart(agent: AnyAgent | string): AnyAgent {
    const name = typeof agent === 'string' ? agent : agent.name
    const found = typeof agent === 'string' ? this.parts.findAgent(agent) : agent
    if (found !== undefined && mayStart(this.principal, name)) return found
    throw new NotFoundError('not_found', `There is no agent ${JSON.stringify(name)} here.`)
  }

  /** The agents that the principal may start, by name. */
  async agents(): Promise<readonly AgentInfo[]> {
    this.require('read')
    const known = await this.parts.agents()
    return known.filter(({ name }) => this.parts.findAgent(name) !== undefined && mayStart(this.principal, name))
  }

  /** The names of the agents that the principal could start if the runtime trusted its programs: see `trustPrograms`. */
  async untrustedAgents(): Promise<readonly string[]> {
    if (!this.may('start')) return []
    const names = await this.parts.untrusted(this.principal, this.layers)
    return names.filter((name) => mayStart(this.principal, name))
  }

  /** The id of the principal's conversation with an agent that it knows by a text of its own: see `conversationKey`. */
  async conversationIdFor(agent: string, key: string): Promise<Id> {
    this.require('read')
    return this.parts.operations.conversationIdFor({ name: agent }, key, { owner: this.principal.id })
  }

  /** The latest run of each conversation that the principal sees, newest conversation first. */
  async runs(query: RunsQuery = {}): Promise<RunInfo[]> {
    this.require('read')
    return this.seen.listed(await this.placed(query), (owned) => this.parts.operations.runs(owned), byStart)
  }

  /** The conversations that the principal sees, newest first. */
  async conversations(query: ListQuery = {}): Promise<ConversationInfo[]> {
    this.require('read')
    return this.seen.listed(await this.placed(query), (owned) => this.parts.operations.conversations(owned), byCreation)
  }

  /** Everything that needs a person, in what the principal sees. */
  async inbox(query: InboxQuery = {}): Promise<InboxItem[]> {
    this.require('read')
    return this.seen.filtered(query, (owned) => this.parts.operations.inbox(owned), bySince)
  }

  /** The events of a whole tree, by the id of a conversation of it. */
  async events(conversationId: Id, options: TreeEventsOptions = {}): Promise<AsyncIterable<RunEvent>> {
    await this.enter('read', 'conversation', conversationId)
    return this.parts.events(conversationId, options)
  }

  /** The graph of a conversation or lane as data, page by page. */
  async graph(conversationId: Id, options: GraphQuery = {}): Promise<GraphData> {
    await this.enter('read', 'conversation', conversationId)
    return this.parts.operations.graph(conversationId, { ...options, maxBytes: PAGE_BYTES })
  }

  /** A run and all below it in time. */
  async timeline(runId: Id): Promise<TimelineRun> {
    await this.enter('read', 'run', runId)
    return this.parts.operations.timeline(runId)
  }

  /** The trace of a run and everything below it, or of all runs of a conversation, as OTLP/JSON. */
  async otlp(id: Id, options?: Parameters<StoreOperations['otlp']>[1]): ReturnType<StoreOperations['otlp']> {
    await this.enter('export', 'run', id)
    return this.parts.otlp(id, options, this.may('read'))
  }

  /** A node with its contents; with the beginnings of texts that would fill a page. */
  async nodeInfo(nodeId: Id): Promise<NodeInfo> {
    await this.enter('read', 'node', nodeId)
    const { shortInfo } = await import('../conversation/data/by-reference.ts')
    return shortInfo(await this.parts.operations.nodeInfo(nodeId))
  }

  /** All of a node's result, or of its message, as text. */
  async result(nodeId: Id): Promise<WholeResult> {
    await this.enter('read', 'node', nodeId)
    return this.parts.operations.result(nodeId)
  }

  /** The request that the model of a node got, made again from its rows. */
  async requestOf(nodeId: Id): Promise<ShownRequest> {
    await this.enter('read', 'node', nodeId)
    return this.parts.requestOf(nodeId)
  }

  /** Which trees that the principal sees went on after a cursor. `changes(null, 0)` gives the cursor of now. */
  async changes(after: string | null, limit: number): Promise<ChangePage> {
    this.require('read')
    const page = await this.parts.operations.changes(after, limit)
    const seen = page.changes.filter(({ owner }) => maySee(this.principal, owner))
    return { ...page, changes: this.seen.ofItsAgents(seen) }
  }

  /** The usage of owners and agents that the principal sees, by day, agent and model. Both days are included. */
  async usageByDay(query: DaysQuery): Promise<PricedDay[]> {
    this.require('read')
    const { from, to } = query
    const read = ({ owner }: ListQuery) =>
      this.parts.operations.usageByDay(owner === undefined ? { from, to } : { from, to, owner })
    return this.seen.ofItsAgents(await this.seen.overOwners({ ...query, limit: EVERY_DAY }, read, byDay))
  }

  /** A run in short, with what it delegated. */
  async look(runId: Id): Promise<RunLook> {
    const { id } = await this.enter('read', 'run', runId)
    const { lookAtRun } = await import('./look/run-look.ts')
    const look = await lookAtRun(this.parts.store, id, runId)
    if (look === undefined) throw missingError('run', runId, undefined)
    return look
  }

  /** Recorded events of a run and of what it delegated, page by page. */
  async eventPage(runId: Id, query: RunEventQuery = {}): Promise<RunEventPage> {
    const { id } = await this.enter('read', 'run', runId)
    const { runEventPage } = await import('./look/run-look.ts')
    return runEventPage(this.parts.store, { rootId: id, runId }, query)
  }

  /** The nodes of a run, by their place in it, as many as fit into 8 MB. */
  async nodes(runId: Id, page: { readonly from: number; readonly limit: number }): Promise<readonly Node[]> {
    return (await this.nodePage(runId, page)).nodes
  }

  /** The nodes of a run, by their place in it, and where the next page begins. */
  async nodePage(runId: Id, page: { readonly from: number; readonly limit: number }): Promise<NodePage> {
    const { id } = await this.enter('read', 'run', runId)
    const { nodesOfRun } = await import('./look/run-look.ts')
    return nodesOfRun(this.parts.store, { rootId: id, runId }, page)
  }

  /** One node, as its row. */
  async node(nodeId: Id): Promise<Node> {
    const { id } = await this.enter('read', 'node', nodeId)
    const node = await look(this.parts.store, id, (tree) => tree.node(nodeId))
    if (node === undefined) throw missingError('node', nodeId, undefined)
    return node
  }

  /** The `seq` of the last event of the tree that has this conversation. */
  async lastSeq(conversationId: Id): Promise<number> {
    const { id } = await this.enter('read', 'conversation', conversationId)
    return look(this.parts.store, id, (tree) => tree.lastSeq(id))
  }

  /** The rows of a tree as data, by the id of anything in it, page by page. */
  async treeData(id: Id, query: TreeQuery = {}): Promise<TreeData> {
    const root = await this.enter('read', 'conversation', id)
    const { readTreeData } = await import('./look/tree-data.ts')
    return readTreeData(this.parts.store, root.id, query)
  }

  /** The newest trees that the principal sees, or those with an open run, with their open nodes. */
  async trees(query: TreesQuery): Promise<TreesPage> {
    this.require('read')
    const { listTrees } = await import('./look/find.ts')
    return listTrees(this.parts.store, await this.placed(query), this.seen)
  }

  /** Recorded events of a tree, and what its running nodes have said so far. */
  async treeEvents(id: Id, query: { readonly after: number; readonly limit: number }): Promise<TreeEvents> {
    const root = await this.enter('read', 'conversation', id)
    const { treeEventPage } = await import('./look/find.ts')
    return treeEventPage(this.parts.store, root.id, query)
  }

  /** Finds ids by their ending: in all trees for a principal that sees everything, else in the newest 200 that it sees. */
  async find(ending: string): Promise<FoundIds> {
    this.require('read')
    const { findIds, findIn } = await import('./look/find.ts')
    if (seesEverything(this.principal)) return findIds(this.parts.store, ending)
    return findIn(async (query) => this.trees(query), ending)
  }

  /** A handle for a run. Its `cancel` needs the scope `cancel`. */
  async attach(runId: Id): Promise<Run> {
    await this.enter('read', 'run', runId)
    return this.parts.attach(runId, () => this.require('cancel'))
  }

  /** A conversation or lane, to read; its history changes with the scope `history`. `grant` narrows what its changes begin. */
  async conversation(id: Id, options: ConversationOptions = {}): Promise<ScopedConversation> {
    const { owner } = await this.enter('read', 'conversation', id)
    const handle = await this.parts.conversation(id, {
      by: this.principal,
      caller: narrowedLayers(this.layers, options),
      mayCancel: () => this.require('cancel'),
      mayBegin: () => this.requireStart(owner),
    })
    const mayStore = () => this.parts.requireDay(this.layers, owner, 'message')
    return new ScopedConversation(handle, (scope) => this.require(scope), mayStore)
  }

  /** Asks a run and all it started to stop. */
  async cancel(runId: Id, reason?: string): Promise<void> {
    await this.enter('cancel', 'run', runId)
    await this.parts.operations.cancel(runId, reason)
  }

  /** The usage of a run so far, with the share of each run it started. */
  async usage(runId: Id): Promise<UsageShare> {
    await this.enter('read', 'run', runId)
    return this.parts.operations.usage(runId)
  }

  /** The tree of a conversation or lane: its latest runs and its lanes. */
  async tree(conversationId: Id, options: { readonly limitTurns?: number } = {}): Promise<ConversationTree> {
    await this.enter('read', 'conversation', conversationId)
    return this.parts.operations.tree(conversationId, options)
  }

  /** Why a run does not go on, or what it is doing, in words. */
  async why(id: Id): Promise<Why> {
    await this.enter('read', 'run', id)
    return this.parts.operations.why(id, { processes: seesEverything(this.principal) })
  }

  /** Why a run may or may not do something: `tool:deploy`. Also of an agent that the principal may start, by its name. */
  async explain(of: Id | { readonly agent: string }, request: string): Promise<Explanation> {
    if (typeof of !== 'string') {
      this.require('read')
      return this.parts.explain(this.agentToStart(of.agent), request)
    }
    await this.enter('read', 'run', of)
    return this.parts.explain(of, request)
  }

  /** A picture of a tree, for Mermaid or Graphviz. */
  async picture(id: Id, options: PictureOptions = {}): Promise<string> {
    await this.enter('read', 'conversation', id)
    return this.parts.operations.picture(id, options)
  }

  /** Two runs node by node, with all they delegated. */
  async diff(firstRunId: Id, secondRunId: Id): Promise<RunDiff> {
    await this.enter('read', 'run', firstRunId)
    await this.enter('read', 'run', secondRunId)
    return this.parts.operations.diff(firstRunId, secondRunId)
  }

  /** The approvals that wait for a person, in everything the principal sees. */
  async approvals(query: ApprovalsQuery = {}): Promise<PendingApproval[]> {
    await (query.runId === undefined ? this.require('approve') : this.enter('approve', 'run', query.runId))
    return this.seen.filtered(query, (owned: ApprovalsQuery) => this.parts.operations.approvals(owned), byExpiry)
  }

  /** The questions that wait for a person, in everything the principal sees. */
  async questions(query: QuestionsQuery = {}): Promise<PendingQuestion[]> {
    await (query.runId === undefined ? this.require('approve') : this.enter('approve', 'run', query.runId))
    return this.seen.filtered(query, (owned: QuestionsQuery) => this.parts.operations.questions(owned), byExpiry)
  }

  /** The principal's word on what awaits approval, its answer to a question, or the result of a call that it executed. */
  async answer(nodeId: Id, word: ScopedWord): Promise<void> {
    const say = await this.checkAnswer(nodeId, word)
    await say()
  }

  /** Checks a word as `answer` does. Gives what says it: whoever has several checks all of them before the first is said. */
  async checkAnswer(nodeId: Id, word: ScopedWord): Promise<() => Promise<void>> {
    // A copy: what is checked is what is said.
    const said = { ...word, by: this.principal.id }
    if ('result' in said) return this.checkResult(nodeId, said)
    const root = await this.enter('approve', 'node', nodeId)
    // Words for a question allow nothing: the rules take them for questions only.
    if ('text' in said) return this.parts.operations.checkAnswer(nodeId, said)
    if ('always' in said && said.always === true) this.require('approve:always')
    const shown = { seen: 'seen' in said ? said.seen : undefined, isNeeded: said.allow !== false }
    const seen = await this.requireApproval(root, nodeId, shown)
    if ('edit' in said && said.edit !== undefined) requireEdit(this.principal)
    return this.parts.operations.checkAnswer(nodeId, { ...said, seen })
  }

  /** The principal's word on a call whose effect may or may not have happened. */
  async settle(nodeId: Id, word: ScopedSettleWord): Promise<SettledCall> {
    const said = { ...word }
    const root = await this.enter('approve', 'node', nodeId)
    const seen = await this.requireApproval(root, nodeId, { seen: said.seen, isNeeded: true })
    if (!('leave' in said)) await this.parts.requireDay(this.layers, root.owner)
    return this.parts.settle(nodeId, { ...said, seen }, { by: this.principal.id, caller: this.layers })
  }

  private async checkResult(nodeId: Id, word: ResultWord): Promise<() => Promise<void>> {
    const { id, owner } = await this.enter('start', 'node', nodeId)
    const { requireExecutor } = await import('./look/asked-request.ts')
    const about = { owner, principal: this.principal, seen: word.seen, isNeeded: true }
    const seen = await look(this.parts.store, id, (tree) => requireExecutor(tree, nodeId, about))
    return this.parts.operations.checkAnswer(nodeId, { ...word, seen })
  }

  /** Gives the hash of what the principal may answer: the word goes with it, and holds for nothing else. */
  private async requireApproval({ id, owner }: Conversation, nodeId: Id, shown: Shown): Promise<string> {
    const { requireApprover } = await import('./look/asked-request.ts')
    const about = { owner, principal: this.principal, ...shown }
    return look(this.parts.store, id, (tree) => requireApprover(tree, nodeId, about))
  }

  /** All of a tree as JSON Lines. */
  async export(rootId: Id): Promise<AsyncIterable<string>> {
    await this.enter('export', 'conversation', rootId)
    return this.parts.operations.export(rootId)
  }

  /**
   * Takes a tree that `export` gave. Whose it is, the tree itself says: an admin brings in those that it sees then, as history to look
   * at. Only who looks after the whole store brings in what later runs go by, and open runs that go on, if it is trusted with programs.
   */
  async import(lines: Iterable<string> | AsyncIterable<string>, options: ImportOptions = {}): Promise<Id> {
    this.require('admin')
    const { principal, layers, parts } = this
    const { importAs } = await import('./look/import-as.ts')
    return importAs({ principal, layers, parts }, lines, options)
  }

  /** Deletes the whole tree of a conversation at the root, or of a run of it. */
  async forget(id: Id, reason?: string): Promise<Tombstone> {
    await this.enter('delete', 'conversation', id)
    return this.parts.operations.forget(id, reason)
  }

  /** Deletes trees without an open run: of the principal's own, or of all owners that it sees, and of its agents only. */
  async prune(options: PruneOptions): Promise<Tombstone[]> {
    this.require('delete')
    const ofItsAgents = (agent: string) => mayStart(this.principal, agent)
    const seen = ownersSeenBy(this.principal)
    if (options.owner === undefined && seen === 'all') return this.parts.prune(options, ofItsAgents)
    const owners = options.owner === undefined ? seen : [options.owner]
    const stones: Tombstone[] = []
    for (const owner of owners) {
      if (maySee(this.principal, owner)) stones.push(...(await this.parts.prune({ ...options, owner }, ofItsAgents)))
    }
    return stones
  }

  /** Cancels and deletes everything of an owner: for an admin who sees that owner, and all agents. */
  async forgetOwner(owner: string, reason = 'forgotten'): Promise<ForgottenOwner> {
    this.require('admin')
    this.require('delete')
    if (!maySee(this.principal, owner)) throw new DeniedError('denied', `${this.principal.id} does not see ${owner}.`)
    if (!looksAfter(this.principal, owner)) {
      throw new DeniedError('denied', `${this.principal.id} does not see all agents, so it cannot forget ${owner}.`)
    }
    return this.parts.forgetOwner(owner, reason, !isOperator(this.principal))
  }

  /** Looks for everything that can be wrong with stored rows: of one tree, or of all for a principal that sees all. */
  async audit(options: Omit<AuditOptions, 'repair'> = {}): Promise<AuditReport> {
    this.require('audit')
    if (options.rootId === undefined) this.requireAll()
    else await this.enter('audit', 'conversation', options.rootId)
    return this.parts.operations.audit(options)
  }

  /** The processes that run nodes of this store. */
  async processes(query: ProcessesQuery = {}): Promise<readonly ProcessInfo[]> {
    this.require('audit')
    this.requireAll()
    return this.parts.operations.processes(query)
  }

  /** Throws where the principal may not begin a run now in a conversation of this owner. */
  private async requireStart(owner: string | null): Promise<void> {
    this.require('start')
    await this.parts.requireDay(this.layers, owner)
  }

  /** Throws a DeniedError unless the principal has the scope. */
  require(scope: Scope): void {
    if (hasScope(this.principal, scope)) return
    throw new DeniedError('denied', `${this.principal.id} lacks the scope ${scope}.`, { details: { scope } })
  }

  private requireAll(): void {
    if (seesEverything(this.principal)) return
    const message = `${this.principal.id} does not see all owners and agents: name a conversation of its own.`
    throw new DeniedError('denied', message)
  }

  /** Checks the scope, then takes an id to the root of its tree: the same reads and the same error, whoever has it. */
  private async enter(scope: Scope, what: Named, id: Id): Promise<Conversation> {
    this.require(scope)
    const { store, known } = this.parts
    const place = await store.ownerOf(id)
    const root =
      place !== undefined && maySee(this.principal, place.owner) ? await this.rootAt(place.rootId) : undefined
    if (root !== undefined) {
      known.id = id
      return root
    }
    // A look that finds something takes longer than one that does not: whoever is refused waits for one of each.
    await store.ownerOf(place === undefined ? known.id : NOWHERE)
    const stone = await store.archive?.tombstone(id)
    const isSeen = place === undefined && stone !== undefined && this.sees(stone.owner, stone.agent)
    throw missingError(what, id, isSeen ? stone : undefined)
  }

  /** The root as its record has it, where the principal sees its owner. */
  private async rootAt(rootId: Id): Promise<Conversation | undefined> {
    const root = await look(this.parts.store, rootId, (tree) => tree.conversation(rootId))
    return root !== undefined && this.sees(root.owner, root.agent.name) ? root : undefined
  }

  /** A cursor that it may not see is an unknown one: a page behind it would say that there is such a tree, and since when. */
  private async placed<Query extends { readonly before?: Id }>(query: Query): Promise<Query> {
    const { before } = query
    if (before === undefined || seesEverything(this.principal)) return query
    const place = await this.parts.store.ownerOf(before)
    const root = place === undefined ? undefined : await this.rootAt(place.rootId)
    return root === undefined ? { ...query, before: NOWHERE } : query
  }

  /** May it see a tree of this owner and agent? */
  private sees(owner: string | null, agent: string): boolean {
    return maySee(this.principal, owner) && mayStart(this.principal, agent)
  }
}

/** The id could be one that a key of somebody else stands for. */
const NO_CHOICE =
  'run(agent, input, { createConversation }): a principal chooses no id. Give your own text as conversationKey.'

/** What the principal saw, and whether the word counts only for that. */
interface Shown {
  readonly seen: string | undefined
  readonly isNeeded: boolean
}

const EVERY_DAY = Number.MAX_SAFE_INTEGER
