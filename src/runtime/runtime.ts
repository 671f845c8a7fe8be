// The runtime: joins store, engine, models and agents, and gives users one object for all of them.
//
// Owns:      the wiring of one process (the constructor), its start and its end, and the handles of runs and conversations.
// Called by: users, through `createRuntime`; `agent.generate` and its like, through `standalone`.
// Where to look next: `start-run` starts runs, `execute-node` runs nodes, `resolve-agent` finds agents, `store-operations` has
//            what needs rows only, `live-runs` has who hears of commits.
// Must stay true:
//   - Making a runtime starts nothing and loads nothing that runs nodes: `run`, `resume` and `conversation` do.
//   - It holds no state of a run: a second runtime on the same store can continue everything.

import type { Agent, AnyAgent } from '../agent/definition/agent.ts'
import { MODEL_KINDS } from '../agent/hooks/hook-set.ts'
import type { PruneOptions } from '../audit/archive.ts'
import type { AuditOptions, AuditReport } from '../audit/audit.ts'
import type { RunDiff } from '../audit/diff.ts'
import type { PictureOptions } from '../audit/picture.ts'
import type { Why } from '../audit/why.ts'
import { within } from '../base/abort.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { frozenCopy } from '../base/json.ts'
import type { KeptAlive } from '../base/keep-shape.ts'
import { type NoOptions, readOptions } from '../base/options.ts'
import type { ConversationHandle } from '../conversation/conversation.ts'
import { Recordings, type StartingRun, untilIdle } from '../conversation/ends.ts'
import { follow } from '../conversation/follow.ts'
import type { ApprovalsQuery, PendingApproval, PendingQuestion, QuestionsQuery } from '../conversation/pending.ts'
import type { Run, RunOutcome } from '../conversation/run.ts'
import { type FieldParts, RunHandle } from '../conversation/run-handle.ts'
import type { ConversationTree } from '../conversation/tree.ts'
import type { UsageShare } from '../conversation/usage.ts'
import type { SpawnedAgent } from '../delegation/background/handle.ts'
import { type SpawnAgentOptions, spawnAgent } from '../delegation/background/spawn-agent.ts'
import { SessionCopies } from '../delegation/session-copies.ts'
import type { Engine } from '../engine/engine.ts'
import { localEngine } from '../engine/local.ts'
import { freezeLayer } from '../grant/ceiling.ts'
import { type Explanation, explain } from '../grant/decide.ts'
import { runtimeLayers } from '../grant/grant.ts'
import type { Commit } from '../graph/commit.ts'
import type { Draft } from '../graph/draft.ts'
import { withKinds } from '../graph/kinds.ts'
import { openTopRuns, type TreeReader, treeWith, unlessTampered } from '../graph/reader.ts'
import type { Id } from '../graph/rows.ts'
import type { Tombstone } from '../store/archive.ts'
import { Ledger } from '../store/ledger.ts'
import { memoryStore } from '../store/memory/index.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { currentCall } from '../tool/current.ts'
import { asOnlyTape, type Tape } from '../tool/tape.ts'
import { Models } from './equipment.ts'
import { NodeExecutor } from './execute-node.ts'
import { LiveRuns } from './live-runs.ts'
import {
  type AnswerWord,
  type ApprovalWord,
  checkEngine,
  checkOptions,
  ENGINE_DEFAULTS,
  type RuntimeOptions,
  type StartOptions,
  settingsOf,
} from './options.ts'
import { AgentDirectory } from './resolve-agent.ts'
import { cancelOnAbort, type HandleOptions, RunStarter, startInside } from './start-run.ts'
import { type ProcessInfo, StoreOperations } from './store-operations.ts'

/** Makes a runtime: a store, an engine and the settings that all of its runs share. */
export function createRuntime(options: RuntimeOptions = {}): Runtime {
  checkOptions(options)
  return new Runtime(options)
}

let beforeNode: ((runtime: Runtime) => void) | undefined

/** For `legate/testing`: calls this before each node that any runtime of this process runs. */
export function callBeforeNodes(call: (runtime: Runtime) => void): void {
  beforeNode = call
}

/** Joins store, engine, models and agents. Starts nothing by itself: `run` and `resume` do. */
export class Runtime {
  readonly store: Store
  private readonly clock: Clock
  private readonly graceMs: number
  private readonly ledger: Ledger
  private readonly live: LiveRuns
  private readonly agents: AgentDirectory
  private readonly executor: NodeExecutor
  private readonly engine: Engine
  private readonly copies: SessionCopies
  private readonly recordings: Recordings = new Recordings()
  private readonly starter: RunStarter
  private readonly operations: StoreOperations
  private readonly fields: FieldParts
  private isStarted = false
  /** The handle that was made last. */
  protected last: KeptAlive
  private unwatch: (() => void) | undefined
  private closing: Promise<void> | undefined

  constructor(options: RuntimeOptions) {
    const { kinds = {}, budget, extensions = [] } = options
    const settings = settingsOf(options)
    const { create = localEngine, ...engine } = { ...ENGINE_DEFAULTS, ...options.engine }
    const runtimeLayer = runtimeLayers(frozenCopy(options.grant), frozenCopy(budget))
    this.store = options.store ?? memoryStore()
    this.clock = options.clock ?? systemClock
    this.graceMs = engine.graceMs
    const ledger = new Ledger({
      store: this.store,
      clock: this.clock,
      scheduler: options.scheduler,
      kinds: withKinds(kinds),
      listener: {
        claims: (now) => this.engine.claims(now),
        committed: (commit, draft) => this.committed(commit, draft),
        mayWait: (error) => this.mayWait(error),
      },
    })
    const live = new LiveRuns({ runtime: this, ledger, logger: settings.logger, engine: () => this.engine })
    const { report } = live
    const models = new Models(options, settings.logger)
    const agents = new AgentDirectory({
      ledger,
      settings,
      extensionRuns: live.extensions,
      models,
      runtimeLayer,
      extensions,
    })
    const { registry } = agents
    const executor = new NodeExecutor({ ledger, agents, live, settings, kinds: new Map(Object.entries(kinds)) })
    const { rules } = executor
    this.ledger = ledger
    this.live = live
    this.agents = agents
    this.executor = executor
    this.copies = new SessionCopies({ store: this.store, registry, rules, report })
    const made = create(ledger, {
      ...engine,
      agents: registry.names,
      kinds: new Set([...MODEL_KINDS, 'task', ...Object.keys(kinds)]),
      beforeNode: () => beforeNode?.(this),
      swept: () => this.swept(),
      report,
    })
    checkEngine(made)
    this.engine = made
    this.starter = new RunStarter({
      ledger,
      agents,
      executor,
      budget,
      ceiling: runtimeLayer.map(freezeLayer),
      isStarted: () => this.isStarted,
      begin: () => this.start(),
    })
    const { engine: own, recordings } = this
    const knowsAgent = (name: string) => registry.names.has(name)
    this.operations = new StoreOperations({ ledger, engine: own, recordings, knowsAgent, rules })
    const schemaOf = (tree: TreeReader, runId: Id) => registry.outputOf(tree, runId)
    this.fields = { store: this.store, clock: this.clock, schemaOf, report }
    for (const agent of options.agents ?? []) agents.know(agent)?.catch(report)
  }

  /** Starts an agent, and returns at once. Inside a tool it is a delegation of the running call. */
  run<In, Out, Written>(agent: Agent<In, Out, Written>, input?: In, options: StartOptions = {}): Run<Out, Written> {
    const current = currentCall()
    const isInside = current?.runtime === this
    return this.handle(
      isInside ? startInside(current, agent, { input, options }) : this.starter.start(agent, input, options),
    )
  }

  /** A handle for a run of this store, whoever runs it. Holding it keeps nothing alive; awaiting its result does. */
  async attach<Out = unknown, Written = Out>(runId: Id): Promise<Run<Out, Written>> {
    const tree = await treeWith(this.store, runId)
    const turn = tree.turn(runId)
    const found: StartingRun | undefined = turn ?? this.recordings.ofRun(runId)
    if (found === undefined) throw await notFound(this.store, 'run', runId)
    this.watch()
    const { conversationId, started } = found
    // A tree that was changed from outside still gives a handle: awaiting it says so.
    const output = unlessTampered(() => this.agents.registry.outputOf(tree, runId))
    return this.handle<Out, Written>({ runId, conversationId, rootId: turn?.rootId, started, isOwn: false, output })
  }

  /** A conversation of this store. */
  async conversation(id: Id): Promise<ConversationHandle> {
    await this.recordings.settled(id)
    const row = (await treeWith(this.store, id)).conversation(id)
    if (row === undefined) throw await notFound(this.store, 'conversation', id)
    if (this.store.isReadOnly !== true) await this.start()
    const { ConversationHandle } = await import('../conversation/conversation.ts')
    return new ConversationHandle(this.ledger, row, { home: this.agents, attach: (runId) => this.attach(runId) })
  }

  /**
   * Goes on with what this store holds and this process has code for. Gives the runs that are not over: those of user
   * conversations first, then background runs whose host has ended. A run that works for one of these is a part of it.
   */
  async resume(options: NoOptions = {}): Promise<Run[]> {
    readOptions('resume()', options, {})
    await this.start()
    await this.engine.takeUp()
    const open = await openTopRuns(this.store)
    return Promise.all(open.map((turn) => this.attach(turn.id)))
  }

  /**
   * Starts an agent that works beside the code that starts it, and gives a handle to wait for it, talk to it and stop it.
   * Inside a tool it is a child of the running call, which may end before it.
   */
  async spawn<In, Out, Written>(
    agent: Agent<In, Out, Written>,
    input: In,
    options: SpawnAgentOptions = {},
  ): Promise<SpawnedAgent<Out>> {
    const starter = {
      runtime: this,
      store: this.store,
      clock: this.clock,
      start: (said: unknown, conversationId?: Id) =>
        this.recorded(this.run(agent, said as In, conversationId === undefined ? {} : { conversationId })),
      waitUnless: (runId: Id, signal: AbortSignal | undefined) => this.live.ends.waitUnless(runId, signal),
    }
    return spawnAgent<Out>(starter, agent as AnyAgent, { input, options })
  }

  /** Resolves when nothing is open any more, also in the background: in the whole store, or in the tree of one run. */
  async idle(runId?: Id): Promise<void> {
    this.watch()
    await this.recordings.settled()
    const turn = runId === undefined ? undefined : (await treeWith(this.store, runId)).turn(runId)
    if (runId !== undefined && turn === undefined) throw await notFound(this.store, 'run', runId)
    await untilIdle(this.store, this.live.ends, turn?.rootId)
    await this.live.extensions.settled()
  }

  /** Why a run (by its id), or an agent at the root, may or may not do something: `tool:deploy`, `agent:expert`. */
  async explain(of: Id | AnyAgent, request: string): Promise<Explanation> {
    return explain(await this.agents.layersFor(of), request)
  }

  /** For `record` and `replay` of `legate/testing`: what its nodes call goes through this. */
  useTape(tape: Tape): void {
    this.live.tape = asOnlyTape(tape, this.live.tape)
  }

  /** Asks a run and all it started to stop. Needs rows only: the run may be another process's. */
  cancel(runId: Id, reason?: string): Promise<void> {
    return this.operations.cancel(runId, reason)
  }

  /** The usage of a run so far, with the share of each run it started. */
  usage(runId: Id): Promise<UsageShare> {
    return this.operations.usage(runId)
  }

  /**
   * The tree of a conversation or lane in one call: its latest runs and its lanes, with states, outcomes, usage, what was
   * delegated, and what they wait for.
   */
  tree(conversationId: Id, options: { readonly limitTurns?: number } = {}): Promise<ConversationTree> {
    return this.operations.tree(conversationId, options)
  }

  /** The approvals that wait for a person, in runs of all depths of this store, whichever process runs them. */
  approvals(query: ApprovalsQuery = {}): Promise<PendingApproval[]> {
    return this.operations.approvals(query)
  }

  /** The questions of agents that wait for a person, whichever process runs them: `answer(nodeId, { text })` answers one. */
  questions(query: QuestionsQuery = {}): Promise<PendingQuestion[]> {
    return this.operations.questions(query)
  }

  /** A person's word on what awaits approval, or answer to a question. Once: a second word is refused. */
  answer(nodeId: Id, answer: ApprovalWord | AnswerWord): Promise<void> {
    return this.operations.answer(nodeId, answer)
  }

  /**
   * Looks for everything that can be wrong with stored rows: in the whole store, or in one tree. With `repair` what can be
   * mended without losing anything is; every repair is an event of its conversation.
   */
  audit(options: AuditOptions = {}): Promise<AuditReport> {
    return this.operations.audit(options)
  }

  /**
   * All of a tree as JSON Lines, one line at a time, for `import` of any store. Of a run that is not over it is a copy as
   * it stands: let only one of the two go on.
   */
  export(rootId: Id): AsyncIterable<string> {
    return this.operations.export(rootId)
  }

  /**
   * Takes a tree that `export` gave, as lines or as one text, with the same hashes, or nothing of it. Gives the id of its root
   * conversation.
   */
  import(lines: Iterable<string> | AsyncIterable<string>): Promise<Id> {
    return this.operations.import(lines)
  }

  /**
   * Deletes the whole tree of a conversation at the root, or of a run of it, and leaves its tombstone: the hash of its last
   * commit, and which conversation was whose child. Refused while a run of it is open: cancel it first. (A tree that was changed
   * from outside cannot be cancelled: it goes as it is, by the id of its root.) What `export` gave before can be imported again.
   */
  forget(id: Id, reason = 'forgotten'): Promise<Tombstone> {
    return this.operations.forget(id, reason)
  }

  /**
   * Deletes trees without an open run: all but the newest (`keep`), those in which nothing happened for long (`olderThanMs`),
   * or either. Gives the tombstones they leave.
   */
  prune(options: PruneOptions): Promise<Tombstone[]> {
    return this.operations.prune(options)
  }

  /** Why a run does not go on, or what it is doing, in words: of a run, a node of it, or a conversation's latest run. */
  why(id: Id): Promise<Why> {
    return this.operations.why(id)
  }

  /**
   * A picture of a tree, for Mermaid or Graphviz: who delegated to whom (`tree`), or every node and edge (`graph`), of all
   * conversations or of one.
   */
  picture(id: Id, options: PictureOptions = {}): Promise<string> {
    return this.operations.picture(id, options)
  }

  /** Two runs node by node, with all they delegated: what was put in, what came out, what it cost. Ids do not count. */
  diff(firstRunId: Id, secondRunId: Id): Promise<RunDiff> {
    return this.operations.diff(firstRunId, secondRunId)
  }

  /** The processes that run nodes of this store. One that is gone stays until another has taken over what it left. */
  async processes(options: NoOptions = {}): Promise<readonly ProcessInfo[]> {
    readOptions('processes()', options, {})
    return this.operations.processes()
  }

  /** Lets running nodes finish within the grace, gives the rest back, and closes the store. */
  async close(options: NoOptions = {}): Promise<void> {
    readOptions('close()', options, {})
    this.closing ??= this.end()
    await this.closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private async start(): Promise<void> {
    this.watch()
    // The first sweep may end turns: the rules come first.
    await this.executor.load()
    await this.engine.start((node, work) => this.executor.run(node, work))
    this.isStarted = true
  }

  private handle<Out, Written>(options: HandleOptions): Run<Out, Written> {
    const { runId, conversationId, rootId, started, outcome, abortSignal, isOwn, output } = options
    const { feeds, keepAlive, ends } = this.live
    const wait = () => ends.wait(runId, rootId)
    const run = new RunHandle<Out, Written>({
      id: runId,
      conversationId,
      isOwn,
      started,
      result: () => (outcome ?? (started instanceof Promise ? started.then(wait) : wait())) as Promise<RunOutcome<Out>>,
      follow: (after, sees) => follow({ store: this.store, feeds, keepAlive, runId, after, sees }),
      cancel: (reason) => this.cancel(runId, reason),
      output,
      fields: this.fields,
    })
    this.last = run
    if (started !== undefined && isOwn) this.recordings.add({ runId, conversationId, started })
    if (abortSignal != null) cancelOnAbort(run, abortSignal)
    return run
  }

  /** Resolves when the run is in the rows; rejects when it could not be put there. */
  private async recorded(run: Run): Promise<Run> {
    await this.recordings.settled(run.id)
    if ((await this.store.rootOf(run.id)) === undefined) await run.result
    return run
  }

  /** Everybody in this process who must hear of a commit hears of it here, the engine last: it runs what is free now. */
  private committed(commit: Commit, draft: Draft): void {
    this.live.committed(commit)
    if (this.agents.registry.copiesSessions) this.copies.committed(commit)
    for (const turn of commit.turns) if (turn.state === 'ended') this.executor.leave(turn.id)
    this.engine.committed(commit, draft)
  }

  private mayWait(error: unknown): boolean {
    this.live.report(error)
    return this.closing === undefined
  }

  /** For `forgetBetweenNodes` of `legate/testing`: drops what this process has worked out from definitions. */
  dropCaches(): void {
    this.agents.forget()
  }

  private async end(): Promise<void> {
    if (!this.recordings.isEmpty) await within(this.recordings.settled(), this.graceMs)
    this.unwatch?.()
    this.live.blocks.stop()
    try {
      await Promise.all([this.operations.settled(), this.engine.stop()])
      // Code of others: it has time enough to end, but not for ever.
      await within(Promise.all([this.copies.settled(), this.live.extensions.settled()]), this.graceMs + 1_000)
    } finally {
      this.live.close()
      await this.live.tape?.close()
      await Promise.all([this.executor.close(), this.store.close()])
    }
  }

  private watch(): void {
    this.unwatch ??= this.store.watch(() => this.changed())
  }

  private changed(): void {
    this.live.changed().catch(this.live.report)
  }

  private swept(): void {
    this.changed()
    // Alone, this process has heard of every end.
    if (this.store.shared) this.executor.leaveEnded().catch(this.live.report)
  }
}
