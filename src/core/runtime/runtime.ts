// The runtime: joins store, engine, models and agents, and gives users one object for all of them.
//
// Owns:      the wiring of one process (the constructor), its start and its end, and the handles of runs and conversations.
// Called by: users, through `createRuntime`; `agent.generate` and its like, through `standalone`.
// Where to look next: `start-run` starts runs, `execute-node` runs nodes, `resolve-agent` finds agents, `operated` has
//            the methods that the table of operations declares, `live-runs` has who hears of commits.
// Must stay true:
//   - Making a runtime starts nothing and loads nothing that runs nodes: `run`, `resume` and `conversation` do.
//   - It holds no state of a run: a second runtime on the same store can continue everything.

import type { Agent, AnyAgent } from '../agent/definition/agent.ts'
import { MODEL_KINDS } from '../agent/hooks/hook-set.ts'
import { within } from '../base/abort.ts'
import { type Clock, followingClock, systemClock } from '../base/clock.ts'
import { NotFoundError } from '../base/error.ts'
import { frozenCopy, type Json } from '../base/json.ts'
import { after, type Later } from '../base/maybe.ts'
import { type NoOptions, readOptions } from '../base/options.ts'
import type { ConversationHandle } from '../conversation/conversation.ts'
import { Recordings, type StartingRun, untilIdle } from '../conversation/ends.ts'
import type { Run, TreeEventsOptions } from '../conversation/run.ts'
import type { SpawnedAgent } from '../delegation/background/handle.ts'
import { type SpawnAgentOptions, spawnAgent } from '../delegation/background/spawn-agent.ts'
import type { SessionCopies } from '../delegation/session-copies.ts'
import { Abilities } from '../engine/abilities.ts'
import type { Engine } from '../engine/engine.ts'
import { localEngine } from '../engine/local.ts'
import { stackCeilings } from '../grant/ceiling.ts'
import { type Explanation, explain } from '../grant/decide.ts'
import { runtimeLayers } from '../grant/grant.ts'
import { type Principal, withoutPrograms } from '../grant/principal.ts'
import type { Commit } from '../graph/commit.ts'
import type { Draft } from '../graph/draft.ts'
import type { RunEvent } from '../graph/event.ts'
import { codeOf, withKinds } from '../graph/kinds.ts'
import { ignoreTampered, type TreeReader, unlessTampered } from '../graph/reader.ts'
import type { AgentRef, Id } from '../graph/rows.ts'
import type { AgentInfo } from '../operations/look/agent-info.ts'
import type { ShownRequest } from '../operations/look/request-of.ts'
import { Ledger } from '../store/ledger.ts'
import { lookWith, takeTopRuns } from '../store/look.ts'
import { memoryStore } from '../store/memory/index.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { currentCall } from '../tool/current.ts'
import { asOnlyTape, type Tape } from '../tool/tape.ts'
import { Models } from './equipment.ts'
import { NodeExecutor } from './execute-node.ts'
import { readConversationName } from './keys/start-names.ts'
import { LiveRuns, RunHandles } from './live-runs.ts'
import { OperatedRuntime } from './operated.ts'
import {
  checkEngine,
  checkOptions,
  engineSettings,
  type RuntimeOptions,
  type StartOptions,
  settingsOf,
} from './options.ts'
import { AgentDirectory } from './resolve-agent.ts'
import type { OnBehalf } from './scoped-conversation.ts'
import { type ScopedParts, ScopedRuntime } from './scoped-runtime.ts'
import { RunStarter, startInside } from './start-run.ts'

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
export class Runtime extends OperatedRuntime {
  readonly store: Store
  private readonly clock: Clock
  private readonly graceMs: number
  private readonly ledger: Ledger
  private readonly live: LiveRuns
  private readonly directory: AgentDirectory
  private readonly executor: NodeExecutor
  private readonly engine: Engine
  private copies: SessionCopies | undefined
  private readonly recordings: Recordings = new Recordings()
  private readonly starter: RunStarter
  private readonly handles: RunHandles
  /** The agents that the program named: principals may start these, and no others. */
  private readonly offered: ReadonlyMap<string, AnyAgent>
  private readonly known: { id: Id } = { id: '' }
  private isStarted = false
  private unwatch: (() => void) | undefined
  private closing: Promise<void> | undefined

  constructor(options: RuntimeOptions) {
    super()
    const { kinds = {}, budget, extensions = [] } = options
    const settings = settingsOf(options)
    const runtimeLayer = runtimeLayers(frozenCopy(options.grant), frozenCopy(budget))
    this.store = options.store ?? memoryStore()
    const { create = localEngine, onChanged, ...engine } = engineSettings(options.engine, this.store)
    this.clock = options.clock ?? (this.store.now === undefined ? systemClock : followingClock())
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
    const live = new LiveRuns({
      runtime: this,
      ledger,
      logger: settings.logger,
      engine: () => this.engine,
      leave: (runId) => this.executor.leave(runId),
    })
    const { report } = live
    const models = new Models(options, settings.logger)
    const agents = new AgentDirectory({
      ledger,
      settings,
      extensionRuns: live.extensions,
      models,
      runtimeLayer,
      extensions,
      trustPrograms: options.trustPrograms ?? false,
    })
    const { registry } = agents
    const abilities = new Abilities(registry, onChanged, () => this.clock.now())
    const executor = new NodeExecutor({
      ledger,
      agents,
      sources: abilities.sources,
      live,
      settings,
      kinds: new Map(Object.entries(kinds)),
      limits: frozenCopy(options.limits),
    })
    const { rules } = executor
    this.ledger = ledger
    this.live = live
    this.directory = agents
    this.executor = executor
    const made = create(ledger, {
      ...engine,
      agents: registry.names,
      mayRun: abilities.mayRun,
      tell: abilities.tell,
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
      telemetry: settings.telemetry,
      isStarted: () => this.isStarted,
      begin: () => this.start(),
    })
    const { engine: own, recordings } = this
    const knowsAgent = (agent: AgentRef) => registry.names.has(codeOf(agent)) && abilities.mayRun(agent)
    this.operateWith({
      store: this.store,
      ledger,
      engine: own,
      recordings,
      knowsAgent,
      directory: agents,
      rules,
      home: agents,
      resultSchemaOf: (tree, node) => agents.resultSchemaOf(tree, node),
      feeds: live.feeds,
      dropCopies: (rootId) => this.dropCopies(rootId),
      requestOf: (nodeId) => this.requestOf(nodeId),
      agents: () => this.agents(),
      explain: (of, request) => this.explain(of, request),
      vocabulary: settings.telemetry?.vocabulary,
      ends: live.ends,
      watch: () => this.watch(),
    })
    const schemaOf = (tree: TreeReader, runId: Id) => registry.outputOf(tree, runId)
    const fields = { store: this.store, clock: this.clock, schemaOf, report }
    const cancel = (runId: Id, reason?: string) => this.cancel(runId, reason)
    this.handles = new RunHandles({ store: this.store, live, recordings, fields, cancel })
    this.offered = new Map((options.agents ?? []).map((agent) => [agent.name, agent]))
    for (const agent of this.offered.values()) agents.tell(agent)?.catch(report)
  }

  /** Starts an agent, by itself or by its name in `agents`, and returns at once. Inside a tool it is a delegation of the running call. */
  run<In, Out, Written>(
    agent: Agent<In, Out, Written> | string,
    input?: In,
    options: StartOptions = {},
  ): Run<Out, Written> {
    const current = currentCall()
    const isInside = current?.runtime === this
    const known = typeof agent === 'string' ? (this.agentNamed(agent) as Agent<In, Out, Written>) : agent
    return this.handles.make(
      isInside ? startInside(current, known, input, options) : this.starter.start(known, input, { options }),
    )
  }

  private agentNamed(name: string): AnyAgent {
    const found = this.offered.get(name)
    if (found !== undefined) return found
    const names = [...this.offered.keys()]
    const known = names.length === 0 ? 'It knows none by name' : `It knows ${names.join(', ')}`
    throw new NotFoundError(
      'not_found',
      `This runtime has no agent ${JSON.stringify(name)}. ${known}: see createRuntime({ agents }).`,
    )
  }

  /** True while the disk of the store is full: results of running steps wait here until there is room. */
  get isStoreFull(): boolean {
    return this.live.isFull
  }

  /** A handle for a run of this store, whoever runs it. Holding it keeps nothing alive; awaiting its result does. */
  attach<Out = unknown, Written = Out>(runId: Id): Promise<Run<Out, Written>> {
    return this.attachFor(runId)
  }

  private async attachFor<Out, Written>(runId: Id, mayCancel?: () => void): Promise<Run<Out, Written>> {
    const { turn, output } = await lookWith(this.store, runId, (tree) => {
      const row = tree.turn(runId)
      const isKnown = row !== undefined || this.recordings.ofRun(runId) !== undefined
      // A tree that was changed from outside still gives a handle: awaiting it says so.
      const outputOf = () => this.directory.registry.outputOf(tree, runId)
      return { turn: row, output: isKnown ? unlessTampered(outputOf) : undefined }
    })
    const found: StartingRun | undefined = turn ?? this.recordings.ofRun(runId)
    if (found === undefined) throw await notFound(this.store, 'run', runId)
    this.watch()
    const { conversationId, place, started } = found
    const rootId = turn?.rootId
    const options = { runId, conversationId, place, rootId, started, isOwn: false, output, mayCancel }
    return this.handles.make<Out, Written>(options)
  }

  /**
   * This runtime as somebody else may use it: `runtime.as({ id: 'ann', scopes: ['start', 'read'] })`. Hand it to code that
   * speaks for that person. It reaches only what the principal sees; other ids answer as if they did not exist.
   */
  as(principal: Principal): ScopedRuntime {
    const { directory } = this
    const bound = (layers: readonly Json[]) => (directory.trusts(principal) ? layers : withoutPrograms(layers))
    const scoped: ScopedParts = {
      store: this.store,
      known: this.known,
      operating: this.operating,
      bound,
      start: (agent, input, { options, by, layers }) => {
        const request = { options: { ...options, owner: by.id }, by, creator: layers, caller: bound(layers) }
        return this.handles.make(this.starter.start(agent, input, request))
      },
      attach: (runId, mayCancel) => this.attachFor(runId, mayCancel),
      conversation: (id, on) => this.conversationFor(id, { ...on, caller: bound(on.caller) }),
      requireDay: (layers, owner, request) => this.starter.requireDay(layers, owner, request),
      trusted: () => directory.trusts(principal),
      untrusted: async (by, layers) => {
        if (by === undefined || directory.trusts(by)) return []
        const found = await directory.startingPrograms([...this.offered.values()], layers)
        return found.map(({ name }) => name).sort()
      },
      findAgent: (name) => this.offered.get(name),
      events: (id, options) => this.events(id, options),
      conversationIdFor: (name, key) => this.conversationIdFor({ name }, key, { owner: principal.id }),
    }
    return new ScopedRuntime(scoped, principal)
  }

  /**
   * The events of a whole tree, by the id of a conversation of it: of all runs and lanes, whoever runs them. Ends when you stop
   * reading, the tree is deleted or the runtime closes. `after` and `live` are as in `run.events()`.
   */
  events(conversationId: Id, options: TreeEventsOptions = {}): AsyncIterable<RunEvent> {
    this.watch()
    return this.handles.treeEvents(conversationId, options)
  }

  /** The agents that this runtime can start by name, sorted: those of its options, and those that it has started. */
  async agents(options: NoOptions = {}): Promise<AgentInfo[]> {
    readOptions('agents()', options, {})
    return this.directory.infos()
  }

  /** The agent of that name among `agents()`: the newest, where it was given several. */
  findAgent(name: string): AnyAgent | undefined {
    return this.directory.named(name)
  }

  /**
   * The id of the conversation that `run(agent, input, { conversationKey, owner })` goes on with now. It is there once such a
   * run was started. It changes only when the conversation is deleted: the next run begins a new one.
   */
  async conversationIdFor(
    agent: Pick<AnyAgent, 'name'>,
    key: string,
    options: { readonly owner?: string } = {},
  ): Promise<Id> {
    const name = readConversationName(agent.name, key, options)
    const { findConversationId } = await import('./keys/keyed-starts.ts')
    return findConversationId(this.store, name)
  }

  /** A conversation of this store. */
  conversation(id: Id): Promise<ConversationHandle> {
    return this.conversationFor(id, {})
  }

  private async conversationFor(
    id: Id,
    { by, caller, mayCancel, mayBegin }: Partial<OnBehalf>,
  ): Promise<ConversationHandle> {
    await this.recordings.settled(id)
    const row = await lookWith(this.store, id, (tree) => tree.conversation(id))
    if (row === undefined) throw await notFound(this.store, 'conversation', id)
    await (this.store.isReadOnly === true ? this.executor.load() : this.start())
    const { ConversationHandle } = await import('../conversation/conversation.ts')
    const { directory, executor } = this
    const attach = (runId: Id) => this.attachFor<unknown, unknown>(runId, mayCancel)
    const begin = async () => {
      await mayBegin?.()
      if (row.owner === null && by === undefined) return
      const agent = await lookWith(this.store, id, (tree) => directory.of(tree, id, row))
      if (agent === undefined) return
      const { requireFiles, requireNoPrograms } = executor.loadedParts().code
      requireFiles(agent, row.owner, directory.needs)
      if (by === undefined || directory.trusts(by)) return
      requireNoPrograms(agent, stackCeilings(row.ceiling, caller ?? []), directory.needs)
    }
    return new ConversationHandle(this.ledger, row, { home: directory, attach, caller, mayBegin: begin })
  }

  /**
   * Goes on with what this store holds and this process has code for. Gives the runs that are not over: those of user
   * conversations first, then background runs whose host has ended. A run that works for one of these is a part of it.
   */
  async resume(options: NoOptions = {}): Promise<Run[]> {
    readOptions('resume()', options, {})
    await this.start()
    await this.engine.takeUp()
    // A tree that was changed from outside is reported, and holds up no other.
    const runs = await takeTopRuns(this.store, ({ id }) => this.attach(id).catch(ignoreTampered))
    return runs.filter((run) => run !== undefined)
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
        this.handles.recorded(this.run(agent, said as In, conversationId === undefined ? {} : { conversationId })),
      waitUnless: (runId: Id, signal: AbortSignal | undefined) => this.live.ends.waitUnless(runId, signal),
    }
    return spawnAgent<Out>(starter, agent as AnyAgent, { input, options })
  }

  /** Resolves when nothing is open any more, also in the background: in the whole store, or in the tree of one run. */
  async idle(runId?: Id): Promise<void> {
    this.watch()
    await this.recordings.settled()
    const turn = runId === undefined ? undefined : await lookWith(this.store, runId, (tree) => tree.turn(runId))
    if (runId !== undefined && turn === undefined) throw await notFound(this.store, 'run', runId)
    await untilIdle(this.store, this.live.ends, turn?.rootId)
    await this.live.extensions.settled()
  }

  /** Why a run (by its id), or an agent at the root, may or may not do something: `tool:deploy`, `agent:expert`. */
  async explain(of: Id | AnyAgent, request: string): Promise<Explanation> {
    if (typeof of === 'string') await this.executor.load()
    return explain(await this.directory.layersFor(of), request)
  }

  /** For `record` and `replay` of `legate/testing`: what its nodes call goes through this. */
  useTape(tape: Tape): void {
    this.live.tape = asOnlyTape(tape, this.live.tape)
  }

  /** The request that the model of a node got, made again from its rows. `ShownRequest` says which parts are exact. */
  requestOf(nodeId: Id): Promise<ShownRequest> {
    return this.executor.requestOf(nodeId)
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

  /** Everybody in this process who must hear of a commit hears of it here, the engine last: it runs what is free now. */
  private committed(commit: Commit, draft: Draft): void {
    const { live } = this
    if (live.isFull) live.isFull = false
    if (live.feeds.hasReaders) live.feeds.committed(commit)
    if (live.extensions.hasRuns) live.extensions.committed(commit)
    if (live.trace !== null) live.trace.committed(commit)
    live.ends.committed(commit)
    live.nodeEnds.committed(commit)
    if (this.directory.registry.copiesSessions) this.copy(commit)
    for (const turn of commit.turns) if (turn.state === 'ended') this.executor.leave(turn.id)
    this.engine.committed(commit, draft)
  }

  private copy(commit: Commit): void {
    const copied = after(this.sessionCopies(), (copies) => copies.committed(commit))
    if (copied instanceof Promise) copied.catch(this.live.report)
  }

  private async dropCopies(rootId: Id): Promise<void> {
    if (this.directory.registry.copiesSessions) await (await this.sessionCopies()).drop(rootId)
  }

  private async copiesSettled(): Promise<void> {
    if (this.directory.registry.copiesSessions) await (await this.sessionCopies()).settled()
  }

  /** At once where the code that runs nodes is loaded. */
  private sessionCopies(): Later<SessionCopies> {
    if (this.copies !== undefined) return this.copies
    const { store, live, directory } = this
    return after(this.executor.rules(), (code) => {
      this.copies ??= code.sessionCopies({ store, registry: directory.registry, report: live.report })
      return this.copies
    })
  }

  private mayWait(error: unknown): boolean {
    this.live.report(error)
    return this.closing === undefined
  }

  /** For `forgetBetweenNodes` of `legate/testing`: drops what this process has worked out from definitions. */
  dropCaches(): void {
    this.directory.forget()
  }

  private async end(): Promise<void> {
    if (!this.recordings.isEmpty) await within(this.recordings.settled(), this.graceMs)
    this.unwatch?.()
    this.live.blocks.stop()
    try {
      await Promise.all([this.allSaid(), this.engine.stop()])
      // Calls give their places back with pauses that keep no process alive.
      if (this.live.gate !== undefined) await within(this.live.gate.settled(), this.graceMs)
      // Code of others: it has time enough to end, but not for ever.
      await within(
        Promise.all([this.copiesSettled(), this.live.extensions.settled(), this.live.trace?.settled()]),
        this.graceMs + 1_000,
      )
    } finally {
      this.live.close()
      await this.live.tape?.close()
      await Promise.all([this.executor.close(), this.store.close()])
    }
  }

  private watch(): void {
    this.unwatch ??= this.store.watch(this.live.hear)
  }

  private swept(): void {
    this.live.hear()
    // Alone, this process has heard of every end.
    if (this.store.shared) this.executor.leaveEnded().catch(this.unlessClosing)
  }

  /** An error that comes back after the store was closed tells nobody anything. */
  private readonly unlessClosing = (error: unknown): void => {
    if (this.closing === undefined) this.live.report(error)
  }
}
