import type { Agent, AgentCore, AnyAgent } from './agent/agent.ts'
import { inputContent, type ReadInput, readInput } from './agent/input.ts'
import { AgentRegistry } from './agent/registry.ts'
import { onAbort } from './base/abort.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { DefinitionError, messageOf, NotFoundError } from './base/error.ts'
import { freshIds } from './base/id.ts'
import type { Json } from './base/json.ts'
import { type ApprovalsQuery, approvalsOf, type PendingApproval } from './conversation/approvals.ts'
import { BlockWriter } from './conversation/blocks.ts'
import { ConversationHandle } from './conversation/conversation.ts'
import { Feeds } from './conversation/feeds.ts'
import { follow } from './conversation/follow.ts'
import { KeepAlive } from './conversation/keep-alive.ts'
import type { Run, RunOutcome } from './conversation/run.ts'
import { RunHandle } from './conversation/run-handle.ts'
import { TurnEnds } from './conversation/turn-ends.ts'
import { type UsageShare, usageOf } from './conversation/usage.ts'
import type { Engine } from './engine/engine.ts'
import { isDead } from './engine/lease.ts'
import { LocalEngine } from './engine/local.ts'
import { Executors, SPEAKERS } from './executors.ts'
import { limitsOf, moneyOf } from './grant/budget.ts'
import { freezeLayer } from './grant/ceiling.ts'
import { type Explanation, explain } from './grant/explain.ts'
import { runtimeLayers } from './grant/grant.ts'
import { withProfiles } from './grant/profile.ts'
import { planApproval } from './graph/approve.ts'
import { planCancel } from './graph/cancel.ts'
import { withKinds } from './graph/kinds.ts'
import type { Outcome } from './graph/outcome.ts'
import type { Id } from './graph/rows.ts'
import { planSay } from './graph/say.ts'
import { toModel } from './model/to-model.ts'
import {
  type ApprovalWord,
  checkIsAgent,
  checkOptions,
  ENGINE_DEFAULTS,
  type RuntimeOptions,
  type StartOptions,
} from './options.ts'
import { checkInside, checkOwner, readAnswer, wrongInput } from './start-checks.ts'
import { Ledger } from './store/ledger.ts'
import { memoryStore } from './store/memory.ts'
import type { Store } from './store/store.ts'
import { currentCall } from './tool/current.ts'
import type { Logger } from './tool/tool.ts'

export function createRuntime(options: RuntimeOptions = {}): Runtime {
  checkOptions(options)
  return new Runtime(options)
}

/** Joins store, engine, models and agents. Starts nothing by itself: `run` and `resume` do. */
export class Runtime {
  readonly store: Store
  private readonly options: RuntimeOptions
  private readonly clock: Clock
  private readonly registry: AgentRegistry = new AgentRegistry()
  private readonly executors: Executors
  private readonly ledger: Ledger
  private readonly engine: Engine
  private readonly feeds: Feeds
  private readonly ends: TurnEnds
  private readonly keepAlive: KeepAlive = new KeepAlive()
  private readonly blocks: BlockWriter
  /** What a run is bound by in whichever process goes on with it. */
  private readonly ceiling: readonly Json[]
  private readonly report: (error: unknown) => void
  private isStarted = false
  /** Keeps the shape of a handle known while nobody holds one: see Ledger. */
  protected last: unknown
  private unwatch: (() => void) | undefined
  private closing: Promise<void> | undefined

  constructor(options: RuntimeOptions) {
    this.options = options
    this.store = options.store ?? memoryStore()
    this.clock = options.clock ?? systemClock
    const logger = options.logger ?? warningLogger
    const report = (error: unknown) => logger.error(messageOf(error), { error })
    this.report = report
    const kinds = new Map(Object.entries(options.kinds ?? {}))
    const runs = new Set([...SPEAKERS, 'task', ...kinds.keys()])
    this.feeds = new Feeds(this.store, this.clock)
    this.ends = new TurnEnds(this.store, this.keepAlive)
    this.blocks = new BlockWriter({ store: this.store, feeds: this.feeds, clock: this.clock, report })
    this.ledger = new Ledger({
      store: this.store,
      clock: this.clock,
      kinds: withKinds(options.kinds ?? {}),
      listener: {
        claims: () => this.engine.claims(),
        committed: (commit, draft) => {
          this.feeds.committed(commit)
          this.ends.committed(commit)
          for (const turn of commit.turns) if (turn.state === 'ended') this.registry.leave(turn.id)
          this.engine.committed(draft)
        },
      },
    })
    this.engine = new LocalEngine(this.ledger, {
      ...ENGINE_DEFAULTS,
      ...options.engine,
      canRun: () => ({ agents: this.registry.names, kinds: [...runs] }),
      knows: (kind, agentName) => runs.has(kind) && this.registry.knows(agentName),
      beforeNode: process.env['LEGATE_FRESH'] === '1' ? () => this.forget() : () => undefined,
      swept: () => this.swept(),
      report,
    })
    const runtimeLayer = runtimeLayers(options.grant, options.budget)
    this.ceiling = runtimeLayer.map(freezeLayer)
    this.executors = new Executors({
      ledger: this.ledger,
      feeds: this.feeds,
      ends: this.ends,
      registry: this.registry,
      kinds,
      logger,
      model: toModel(options.model) ?? null,
      budget: options.budget,
      profiles: withProfiles(options.profiles ?? {}, 'createRuntime'),
      runtimeLayer,
      runtime: this,
      files: options.files ?? null,
      tracer: options.tracer ?? null,
      longTermMemory: options.longTermMemory ?? null,
    })
    for (const agent of options.agents ?? []) this.executors.register(agent)
  }

  /** Starts an agent, and returns at once. Inside a tool it is a delegation of the running call. */
  run<In, Out>(agent: Agent<In, Out>, input: In, options: StartOptions = {}): Run<Out> {
    const current = currentCall()
    if (current?.runtime === this) {
      checkInside(options)
      return this.handle<Out>({ ...current.start(agent, input), abortSignal: options.abortSignal, isOwn: true })
    }
    checkIsAgent(agent, 'run(agent, input)')
    this.executors.register(agent)
    const [runId = '', fresh = '', ...nodeIds] = freshIds(this.clock.now(), 4)
    const { conversationId = fresh, abortSignal, owner = null, title = null } = options
    const isKnown = options.conversationId !== undefined
    const started =
      attempt(() => this.say(agent, input, { runId, conversationId, isKnown, nodeIds, owner, title })) ?? undefined
    return this.handle<Out>({ runId, conversationId, started, abortSignal, isOwn: true })
  }

  /** A handle for a run of this store, whoever runs it. Holding it keeps nothing alive; awaiting its result does. */
  attach<Out = unknown>(runId: Id): Run<Out> {
    const turn = this.store.turn(runId)
    if (turn === undefined) throw new NotFoundError('not_found', `There is no run ${runId} in this store.`)
    this.watch()
    return this.handle<Out>({ runId, conversationId: turn.conversationId, started: undefined, isOwn: false })
  }

  /** A conversation of this store. */
  async conversation(id: Id): Promise<ConversationHandle> {
    if (this.store.conversation(id) === undefined) {
      throw new NotFoundError('not_found', `There is no conversation ${id} in this store.`)
    }
    await this.start()
    return new ConversationHandle(this.ledger, id, this.executors)
  }

  /** Goes on with what this store holds and this process has code for. Gives the runs that are not over. */
  async resume(): Promise<Run[]> {
    await this.start()
    this.engine.look()
    return this.store.openRoots(Number.MAX_SAFE_INTEGER).map((turn) => this.attach(turn.id))
  }

  /** Asks a run and all it started to stop. Needs rows only: the run may be another process's. */
  async cancel(runId: Id, reason?: string): Promise<void> {
    const turn = this.store.turn(runId)
    if (turn === undefined) throw new NotFoundError('not_found', `There is no run ${runId} in this store.`)
    await this.ledger.commit({
      kind: 'cancel',
      rootId: turn.rootId,
      plan: (draft) => planCancel(draft, runId, { cause: 'cancelled', reason: reason ?? null }),
    })
  }

  /** What a run has used so far, with the share of each run it started. */
  usage(runId: Id): UsageShare {
    const share = usageOf(this.store, runId)
    if (share === undefined) throw new NotFoundError('not_found', `There is no run ${runId} in this store.`)
    return share
  }

  /** What people are asked, in this store's runs of all depths, whoever runs them. */
  async approvals(query: ApprovalsQuery = {}): Promise<PendingApproval[]> {
    return approvalsOf(this.store, query)
  }

  /** A person's word on what awaits approval. Once: a second word is refused. */
  async answer(nodeId: Id, answer: ApprovalWord): Promise<void> {
    const node = this.store.node(nodeId)
    if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId} in this store.`)
    const given = readAnswer(answer)
    await this.ledger.commit({
      kind: 'answer',
      rootId: node.rootId,
      plan: (draft) => planApproval(draft, nodeId, given),
    })
  }

  /** The processes that run nodes of this store. One that is gone stays until another has taken over what it left. */
  processes(): readonly { readonly id: Id; readonly pid: number; readonly isAlive: boolean }[] {
    const now = this.clock.now()
    return this.store.engines().map((engine) => ({ id: engine.id, pid: engine.pid, isAlive: !isDead(engine, now) }))
  }

  /** Why a run (by its id), or an agent at the root, may or may not do something: `tool:deploy`, `agent:expert`. */
  explain(of: Id | AnyAgent, request: string): Explanation {
    return explain(this.executors.layersFor(of), request)
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
    const read = readInput(agent.name, agent.input, input)
    const isReady = this.isStarted && this.executors.hasModel(agent)
    if (read instanceof Promise || !isReady) return this.sayLater(agent, read, options)
    return this.record(agent, read, options)
  }

  private async sayLater(agent: AgentCore, read: ReadInput | Promise<ReadInput>, options: SayOptions): Promise<void> {
    const input = await read
    if (input.ok) await this.start()
    if (input.ok && !this.executors.hasModel(agent)) await this.findModel(agent)
    await this.record(agent, input, options)
  }

  private async findModel({ name }: AgentCore): Promise<void> {
    try {
      await this.executors.findModel()
    } catch (error) {
      const message = `"${name}" has no model: name one in agent({ model }), or one for all in createRuntime({ model }). ${messageOf(error)}`
      throw new DefinitionError('definition', message)
    }
  }

  private record(agent: AgentCore, input: ReadInput, options: SayOptions): void | Promise<void> {
    if (!input.ok) throw wrongInput(agent, input)
    const { value } = input
    const { conversationId, runId, owner, title } = options
    const known = this.store.conversation(conversationId)
    if (options.isKnown) checkOwner(known, conversationId, { agent, owner })
    const conversation = {
      id: conversationId,
      agent: { name: agent.name, hash: agent.hash },
      ceiling: this.ceiling,
      owner,
      title,
    }
    const request = {
      turnId: runId,
      nodeIds: options.nodeIds,
      input: value,
      content: inputContent(agent.input, value),
      briefing: null,
      limits: limitsOf([agent.budget, this.options.budget]),
      money: moneyOf([agent.budget, this.options.budget]),
      deadline: null,
      mayStart: true,
    }
    this.registry.settle(runId, agent)
    const rootId = known?.rootId ?? conversationId
    const said = this.ledger.commit({ kind: 'say', rootId, plan: (draft) => planSay(draft, conversation, request) })
    if (!(said instanceof Promise)) return undefined
    return said.then(
      () => undefined,
      (error: unknown) => {
        this.registry.leave(runId)
        throw error
      },
    )
  }

  private async start(): Promise<void> {
    this.watch()
    await this.engine.start((node, work) => this.executors.run(node, work))
    this.isStarted = true
  }

  private handle<Out>({ runId, conversationId, started, outcome, abortSignal, isOwn }: HandleOptions): Run<Out> {
    const wait = () => this.ends.wait(runId)
    const run = new RunHandle<Out>({
      id: runId,
      conversationId,
      isOwn,
      started,
      result: () => (outcome ?? (started instanceof Promise ? started.then(wait) : wait())) as Promise<RunOutcome<Out>>,
      follow: (after) => follow({ store: this.store, feeds: this.feeds, keepAlive: this.keepAlive, runId, after }),
      cancel: (reason) => this.cancel(runId, reason),
    })
    if (abortSignal !== undefined) this.cancelOnAbort(run, abortSignal)
    this.last = run
    return run
  }

  private cancelOnAbort(run: Run, signal: AbortSignal): void {
    const remove = onAbort(signal, () => {
      run.cancel(messageOf(signal.reason)).catch(() => undefined)
    })
    run.result.then(remove, remove)
  }

  /** What only this process knows is thrown away: the rows must be enough. */
  private forget(): void {
    this.store.reopen()
    this.registry.forgetHomes()
    this.executors.forget()
  }

  private async end(): Promise<void> {
    this.unwatch?.()
    this.blocks.stop()
    try {
      await this.engine.stop()
    } finally {
      this.ends.close()
      this.feeds.close()
      await this.store.close()
    }
  }

  private watch(): void {
    this.unwatch ??= this.store.watch(() => this.changed())
  }

  private swept(): void {
    this.changed()
    // Alone, this process has heard of every end.
    if (this.store.shared) this.registry.leaveAll((runId) => this.store.turn(runId)?.state === 'ended')
  }

  /** Another process may have written. */
  private changed(): void {
    try {
      this.feeds.changed()
      this.ends.changed()
    } catch (error) {
      this.report(error)
    }
  }
}

/** A failure at once is the same as one later. */
function attempt<T>(run: () => T | Promise<T>): T | Promise<T> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}

interface SayOptions {
  readonly owner: string | null
  readonly title: string | null
  readonly runId: Id
  readonly conversationId: Id
  readonly nodeIds: readonly Id[]
  /** The caller named the conversation: it must be there. */
  readonly isKnown: boolean
}

interface HandleOptions {
  readonly runId: Id
  readonly conversationId: Id
  readonly started: undefined | Promise<unknown>
  /** Where somebody else waits for it already. */
  readonly outcome?: Promise<Outcome>
  readonly abortSignal?: AbortSignal | undefined
  readonly isOwn: boolean
}

/** A library does not print; what went wrong inside it must still be seen. */
const warningLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (message) => process.emitWarning(message, { type: 'LegateWarning' }),
}
