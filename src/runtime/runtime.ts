import { AgentRegistry } from '../agent/build/registry.ts'
import type { Agent, AgentCore, AnyAgent } from '../agent/definition/agent.ts'
import { type InputResult, readAgentInput } from '../agent/definition/input.ts'
import { MODEL_KINDS } from '../agent/hooks/hook-set.ts'
import { within } from '../base/abort.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { DefinitionError, messageOf } from '../base/error.ts'
import { freshIds } from '../base/id.ts'
import { frozenCopy, type Json } from '../base/json.ts'
import type { KeptAlive } from '../base/keep-shape.ts'
import { after, attempt } from '../base/maybe.ts'
import { BlockWriter } from '../conversation/blocks.ts'
import type { ConversationHandle } from '../conversation/conversation.ts'
import { KeepAlive, NodeEnds, Recordings, type StartingRun, TurnEnds, untilIdle } from '../conversation/ends.ts'
import { Feeds } from '../conversation/feeds.ts'
import { follow } from '../conversation/follow.ts'
import type { Run, RunOutcome } from '../conversation/run.ts'
import { type FieldParts, RunHandle } from '../conversation/run-handle.ts'
import type { SpawnedAgent } from '../delegation/background/handle.ts'
import { type SpawnAgentOptions, spawnAgent } from '../delegation/background/spawn-agent.ts'
import { SessionCopies } from '../delegation/session-copies.ts'
import type { Engine } from '../engine/engine.ts'
import { LocalEngine } from '../engine/local.ts'
import { freezeLayer } from '../grant/ceiling.ts'
import { type Explanation, explain } from '../grant/decide.ts'
import { runtimeLayers } from '../grant/grant.ts'
import { withProfiles } from '../grant/profile.ts'
import { withKinds } from '../graph/kinds.ts'
import type { Id } from '../graph/rows.ts'
import { askedInRun } from '../graph/tasks.ts'
import { Ledger } from '../store/ledger.ts'
import { memoryStore } from '../store/memory/index.ts'
import { isOver, notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { currentCall } from '../tool/current.ts'
import { asOnlyTape, type Tape } from '../tool/tape.ts'
import { Executors } from './execute-node.ts'
import {
  checkIsAgent,
  checkOptions,
  ENGINE_DEFAULTS,
  handlesOf,
  type RuntimeOptions,
  type StartOptions,
  warningLogger,
} from './options.ts'
import { Reports } from './parts.ts'
import { Models } from './resolve-agent.ts'
import {
  cancelOnAbort,
  checkInside,
  checkOwner,
  equipped,
  type HandleOptions,
  readPlace,
  readStart,
  type SayOptions,
  turnRequest,
  withCaller,
  wrongInput,
} from './start-run.ts'
import { RowActs } from './store-operations.ts'

/** Makes a runtime: it runs agents, keeps their rows in its store, and continues runs of other processes. */
export function createRuntime(options: RuntimeOptions = {}): Runtime {
  checkOptions(options)
  return new Runtime(options)
}

/** Joins store, engine, models and agents. Starts nothing by itself: `run` and `resume` do. */
export class Runtime extends RowActs {
  readonly store: Store
  private readonly options: RuntimeOptions
  protected readonly clock: Clock
  private readonly registry: AgentRegistry = new AgentRegistry()
  private readonly executors: Executors
  protected readonly rules: RowActs['rules'] = () => this.executors.loadedCode()
  protected readonly ledger: Ledger
  protected readonly engine: Engine
  private readonly feeds: Feeds
  private readonly ends: TurnEnds
  private readonly nodeEnds: NodeEnds
  private readonly keepAlive: KeepAlive = new KeepAlive()
  private readonly blocks: BlockWriter
  private readonly copies: SessionCopies
  private readonly fieldParts: FieldParts
  /** What a run is bound by in whichever process goes on with it. */
  private readonly ceiling: readonly Json[]
  private readonly report: (error: unknown) => void
  protected readonly recordings: Recordings = new Recordings()
  private isStarted = false
  /** The handle that was made last. */
  protected last: KeptAlive
  private unwatch: (() => void) | undefined
  private closing: Promise<void> | undefined

  constructor(options: RuntimeOptions) {
    super()
    this.options = options
    this.store = options.store ?? memoryStore()
    this.clock = options.clock ?? systemClock
    const logger = options.logger ?? warningLogger
    const report = new Reports(logger, () => ({
      engine: this.engine,
      ends: this.ends,
      feeds: this.feeds,
      blocks: this.blocks,
    })).tell
    this.report = report
    this.registry.askedOf = (runId) => askedInRun(this.store, runId)
    const kinds = new Map(Object.entries(options.kinds ?? {}))
    const runs = new Set([...MODEL_KINDS, 'task', ...kinds.keys()])
    this.feeds = new Feeds(this.store, this.clock)
    this.ends = new TurnEnds(this.store, this.keepAlive)
    this.nodeEnds = new NodeEnds(this.store)
    this.blocks = new BlockWriter({ store: this.store, feeds: this.feeds, clock: this.clock, report })
    this.copies = new SessionCopies({ reader: this.store, registry: this.registry, rules: this.rules, report })
    this.ledger = new Ledger({
      store: this.store,
      clock: this.clock,
      kinds: withKinds(options.kinds ?? {}),
      listener: {
        claims: (now) => this.engine.claims(now),
        committed: (commit, draft) => {
          this.feeds.committed(commit)
          this.executors.extensionRuns.committed(commit)
          this.ends.committed(commit)
          this.nodeEnds.committed(commit)
          this.copies.committed(commit)
          for (const turn of commit.turns) if (turn.state === 'ended') this.executors.left(turn.id)
          this.engine.committed(draft)
        },
        mayWait: (error) => this.mayWait(error),
      },
    })
    this.engine = new LocalEngine(this.ledger, {
      ...ENGINE_DEFAULTS,
      ...options.engine,
      canRun: () => ({ agents: this.registry.names, kinds: [...runs] }),
      knows: (kind, agentName) => runs.has(kind) && this.registry.knows(agentName),
      beforeNode: process.env['LEGATE_FRESH'] === '1' ? () => this.beginAnew() : () => undefined,
      swept: () => this.swept(),
      report,
    })
    const runtimeLayer = runtimeLayers(frozenCopy(options.grant), frozenCopy(options.budget))
    this.ceiling = runtimeLayer.map(freezeLayer)
    this.executors = new Executors({
      ledger: this.ledger,
      feeds: this.feeds,
      ends: this.ends,
      nodeEnds: this.nodeEnds,
      registry: this.registry,
      kinds,
      logger,
      models: new Models(options, logger),
      budget: options.budget,
      attempts: options.delegation,
      profiles: withProfiles(options.profiles ?? {}, 'createRuntime'),
      runtimeLayer,
      runtime: this,
      extensions: options.extensions ?? [],
      files: options.files ?? null,
      ...handlesOf(options),
    })
    this.fieldParts = {
      store: this.store,
      clock: this.clock,
      schemaOf: (runId) => this.registry.outputOf(this.store, runId),
      report,
    }
    for (const agent of options.agents ?? []) this.executors.know(agent)?.catch(report)
  }

  private mayWait(error: unknown): boolean {
    this.report(error)
    return this.closing === undefined
  }

  /** Starts an agent, and returns at once. Inside a tool it is a delegation of the running call. */
  run<In, Out, Written>(agent: Agent<In, Out, Written>, input?: In, options: StartOptions = {}): Run<Out, Written> {
    const current = currentCall()
    if (current?.runtime === this) {
      checkInside(options)
      const runner = equipped(agent, input, options)
      const child = current.start(runner, input, options)
      return this.handle<Out, Written>({ ...child, abortSignal: options.abortSignal, isOwn: true, agent: runner })
    }
    checkIsAgent(agent, 'run(agent, input)')
    const runner = equipped(agent, input, options)
    const known = this.executors.know(runner)
    const [runId = '', fresh = '', ...nodeIds] = freshIds(this.clock.now(), 5)
    const { abortSignal } = options
    const { conversationId, isKnown } = readPlace(this.store, runner, { options, fresh })
    const begin = () => this.say(runner, input, readStart(options, { runId, conversationId, isKnown, nodeIds }))
    const started = attempt(() => after(known, begin)) ?? undefined
    return this.handle<Out, Written>({ runId, conversationId, started, abortSignal, isOwn: true, agent: runner })
  }

  /** A handle for a run of this store, whoever runs it. Holding it keeps nothing alive; awaiting its result does. */
  attach<Out = unknown, Written = Out>(runId: Id): Run<Out, Written> {
    const found: StartingRun | undefined = this.store.turn(runId) ?? this.recordings.ofRun(runId)
    if (found === undefined) throw notFound(this.store, 'run', runId)
    this.watch()
    const { conversationId, started } = found
    return this.handle<Out, Written>({ runId, conversationId, started, isOwn: false })
  }

  /** A conversation of this store. */
  async conversation(id: Id): Promise<ConversationHandle> {
    await this.recordings.settled(id)
    if (this.store.conversation(id) === undefined) throw notFound(this.store, 'conversation', id)
    if (this.store.isReadOnly !== true) await this.start()
    const { ConversationHandle } = await import('../conversation/conversation.ts')
    return new ConversationHandle(this.ledger, id, { home: this.executors, attach: (runId) => this.attach(runId) })
  }

  /** Goes on with what this store holds and this process has code for. Gives the runs that are not over. */
  async resume(): Promise<Run[]> {
    await this.start()
    await this.engine.adoptOrphans()
    return this.store.openRoots(Number.MAX_SAFE_INTEGER).map((turn) => this.attach(turn.id))
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
      waitUnless: (runId: Id, signal: AbortSignal | undefined) => this.ends.waitUnless(runId, signal),
    }
    return spawnAgent<Out>(starter, agent as AnyAgent, { input, options })
  }

  /** Resolves when nothing is open any more, also in the background: in the whole store, or in the tree of one run. */
  async idle(runId?: Id): Promise<void> {
    this.watch()
    await this.recordings.settled()
    const turn = runId === undefined ? undefined : this.store.turn(runId)
    if (runId !== undefined && turn === undefined) throw notFound(this.store, 'run', runId)
    await untilIdle(this.store, this.ends, turn?.rootId)
    await this.executors.extensionRuns.settled()
  }

  /** Why a run (by its id), or an agent at the root, may or may not do something: `tool:deploy`, `agent:expert`. */
  explain(of: Id | AnyAgent, request: string): Explanation {
    return explain(this.executors.layersFor(of), request)
  }

  /** For `record` and `replay` of `legate/testing`: what its nodes call goes through this. */
  useTape(tape: Tape): void {
    this.executors.tape = asOnlyTape(tape, this.executors.tape)
  }

  protected knowsAgent(name: string): boolean {
    return this.registry.knows(name)
  }

  /** Lets running nodes finish within the grace, gives the rest back, and closes the store. */
  close(): Promise<void> {
    this.closing ??= this.end()
    return this.closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** One more turn: recorded, and started when its conversation is idle. At once where nothing has to be waited for. */
  private say(agent: AgentCore, input: unknown, options: SayOptions): void | Promise<void> {
    const read = readAgentInput(agent, input)
    const isReady = this.isStarted && this.executors.maker.models.hasFor(agent)
    if (read instanceof Promise || !isReady) return this.sayLater(agent, read, options)
    return this.record(agent, read, options)
  }

  private async sayLater(
    agent: AgentCore,
    read: InputResult | Promise<InputResult>,
    options: SayOptions,
  ): Promise<void> {
    const input = await read
    if (input.ok) await this.start()
    if (input.ok && !this.executors.maker.models.hasFor(agent)) await this.findModel(agent)
    await this.record(agent, input, options)
  }

  private async findModel({ name }: AgentCore): Promise<void> {
    try {
      await this.executors.maker.models.find()
    } catch (error) {
      const message = `"${name}" has no model: name one in agent({ model }), or one for all in createRuntime({ model }); on the command line --model. ${messageOf(error)}`
      throw new DefinitionError('definition', message)
    }
  }

  private record(agent: AgentCore, input: InputResult, options: SayOptions): void | Promise<void> {
    if (!input.ok) throw wrongInput(agent, input)
    const { conversationId, runId, nodeIds, attributes, owner, title, aborted } = options
    const known = this.store.conversation(conversationId)
    if (options.isKnown) checkOwner(this.store, conversationId, { agent, owner })
    const conversation = {
      id: conversationId,
      isNew: known === undefined,
      agent: agent.identity.ref,
      ceiling: withCaller(this.ceiling, options),
      owner,
      title,
    }
    const lane = known?.parentTurnId == null ? undefined : this.executors.boundsOf(known)
    const budgets = [this.options.budget, options.budget]
    const request = turnRequest(agent, input, { runId, nodeIds, attributes, aborted, budgets, lane })
    this.executors.settle(runId, agent)
    const rootId = known?.rootId ?? conversationId
    const { SAYING, planCancel } = this.executors.loaded()
    const said = this.ledger.commit({
      kind: 'say',
      rootId,
      plan: (draft) => {
        SAYING[options.whileRunning](draft, conversation, request)
        if (aborted !== null) planCancel(draft, runId, { cause: 'cancelled', reason: aborted })
      },
    })
    if (!(said instanceof Promise)) return undefined
    return said.then(
      () => undefined,
      (error: unknown) => {
        this.executors.leaveChild(runId)
        throw error
      },
    )
  }

  private async start(): Promise<void> {
    this.watch()
    // The first sweep may end turns: the rules come first.
    await this.executors.load()
    await this.engine.start((node, work) => this.executors.run(node, work))
    this.isStarted = true
  }

  private handle<Out, Written>(options: HandleOptions): Run<Out, Written> {
    const { runId, conversationId, started, outcome, abortSignal, isOwn, agent } = options
    const wait = () => this.ends.wait(runId)
    const run = new RunHandle<Out, Written>({
      id: runId,
      conversationId,
      isOwn,
      started,
      result: () => (outcome ?? (started instanceof Promise ? started.then(wait) : wait())) as Promise<RunOutcome<Out>>,
      follow: (after, sees) =>
        follow({ store: this.store, feeds: this.feeds, keepAlive: this.keepAlive, runId, after, sees }),
      cancel: (reason) => this.cancel(runId, reason),
      output: agent?.output,
      fields: this.fieldParts,
    })
    this.last = run
    if (started !== undefined && isOwn) this.recordings.add({ runId, conversationId, started })
    if (abortSignal != null) cancelOnAbort(run, abortSignal)
    return run
  }

  /** Resolves when the run is in the rows; rejects when it could not be put there. */
  private async recorded(run: Run): Promise<Run> {
    await this.recordings.settled(run.id)
    if (this.store.turn(run.id) === undefined) await run.result
    return run
  }

  /** What only this process knows is thrown away: the rows must be enough. */
  private beginAnew(): void {
    this.store.reopen()
    this.registry.forgetHomes()
    this.executors.forget()
  }

  private async end(): Promise<void> {
    const { graceMs } = { ...ENGINE_DEFAULTS, ...this.options.engine }
    if (!this.recordings.isEmpty) await within(this.recordings.settled(), graceMs)
    this.unwatch?.()
    this.blocks.stop()
    try {
      await Promise.all([this.acted(), this.engine.stop()])
      // Code of others: it has time enough to end, but not for ever.
      await within(Promise.all([this.copies.settled(), this.executors.extensionRuns.settled()]), graceMs + 1_000)
    } finally {
      this.ends.close()
      this.feeds.close()
      await this.executors.tape?.close()
      await Promise.all([this.executors.close(), this.store.close()])
    }
  }

  private watch(): void {
    this.unwatch ??= this.store.watch(() => this.changed())
  }

  private swept(): void {
    this.changed()
    // Alone, this process has heard of every end.
    if (this.store.shared) this.executors.leftAll((runId) => isOver(this.store, runId))
  }

  /** Another process may have written. */
  private changed(): void {
    try {
      this.feeds.changed()
      this.ends.changed()
      this.nodeEnds.changed()
      this.executors.extensionRuns.changed()
      for (const error of this.store.tampered?.() ?? []) this.report(error)
    } catch (error) {
      this.report(error)
    }
  }
}
