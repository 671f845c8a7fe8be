import { baseOf } from '../agent/build/asked-agent.ts'
import { hasLiveSources } from '../agent/build/read-kit.ts'
import type { AgentCore } from '../agent/definition/agent.ts'
import { fileUseLayers } from '../agent/definition/file-layers.ts'
import { ExtensionRuns, type HookPlace } from '../agent/hooks/extension-runs.ts'
import { HookSet, MODEL_KINDS, noteChange, sortExtensions } from '../agent/hooks/hook-set.ts'
import type { EagerWork, Home, HooksAbove, NodeRun, ReadyChild, Voice } from '../agent/hooks/node-run.ts'
import { unlessAborted } from '../base/abort.ts'
import { DefinitionError, DeniedError, messageOf, StoreError } from '../base/error.ts'
import type { KeptAlive } from '../base/keep-shape.ts'
import { after } from '../base/maybe.ts'
import type { Feeds } from '../conversation/feeds.ts'
import { backgroundAgents } from '../delegation/background/tools.ts'
import { isSubagentEntry, type SubagentSource } from '../delegation/subagent.ts'
import type { Work } from '../engine/engine.ts'
import type { FileDomain } from '../files/domain.ts'
import type { Budget } from '../grant/budget.ts'
import { type Layer, useLayer } from '../grant/grant.ts'
import { type Profiles, profileLayer } from '../grant/profile.ts'
import type { Outcome } from '../graph/outcome.ts'
import { hostOf, type RunPlace } from '../graph/reader.ts'
import type { Conversation, Id, Node, Turn } from '../graph/rows.ts'
import type { Model } from '../model/model.ts'
import type { Expansion } from '../rules/turn/expand.ts'
import type { TurnBounds } from '../rules/turn/open-turn.ts'
import type { Ledger } from '../store/ledger.ts'
import { notFound } from '../store/not-found.ts'
import type { Attempts } from '../tool/attempts.ts'
import type { Groups } from '../tool/groups.ts'
import type { SourcePool } from '../tool/source-pool.ts'
import { leaveTape, type Tape } from '../tool/tape.ts'
import type { Logger } from '../tool/tool.ts'
import type { ToolEntry, Toolkit } from '../tool/toolkit.ts'
import { LayerStacks, turnBounds } from './authority.ts'
import type { ExecutorParts } from './parts.ts'
import { AgentFinder, Toolkits } from './resolve-agent.ts'

type NodeWork = typeof import('./lazy.ts')

/** Joins each kind of node with what runs it: the agent, its toolkit, its model and what binds it, found from the rows. */
export class Executors implements Home {
  readonly maker: AgentFinder
  readonly ledger: Ledger
  readonly feeds: Feeds
  readonly logger: Logger
  readonly budget: Budget | undefined
  readonly attempts: Attempts | undefined
  readonly profiles: Profiles
  readonly compaction: Home['compaction']
  readonly runtime: object
  readonly extensionRuns: ExtensionRuns
  readonly files: FileDomain | null
  readonly tracer: object | null
  readonly longTermMemory: object | null
  readonly causeOf: Home['causeOf']
  /** Where runs are recorded or played back. */
  tape: Tape | null = null
  lastCall: KeptAlive
  /** Has any agent here hooks that concern its children? Mostly none has. */
  private hasHooksForChildren = false
  /** Has any agent here a provider that is asked only when its tools are shown? Mostly none has. */
  private hasLateProviders = false
  /** Agents that wait for what their providers promised. */
  private readonly coming: Map<AgentCore, Promise<undefined>> = new Map()
  private readonly parts: ExecutorParts
  private readonly toolkits: Toolkits
  private hookSets: WeakMap<AgentCore, HookSet> = new WeakMap()
  private code: NodeWork | undefined
  /** Made for the first run that has sources. */
  private pool: SourcePool | undefined
  private isClosed = false
  private readonly layers: LayerStacks

  constructor(parts: ExecutorParts) {
    this.parts = parts
    this.toolkits = new Toolkits(parts.ledger)
    this.maker = new AgentFinder(parts.registry, parts.ledger.store, parts.models)
    this.layers = new LayerStacks(parts, this.maker)
    this.ledger = parts.ledger
    this.feeds = parts.feeds
    this.logger = parts.logger
    this.budget = parts.budget
    this.attempts = parts.attempts
    this.profiles = parts.profiles
    this.compaction = parts.compaction
    this.runtime = parts.runtime
    this.extensionRuns = new ExtensionRuns(parts.ledger, parts.logger)
    this.files = parts.files
    this.tracer = parts.tracer
    this.longTermMemory = parts.longTermMemory
    this.causeOf = parts.causeOf
  }

  /** Loads what runs nodes, once. Nodes are run when all agents that the runtime was told of are known. */
  async load(): Promise<void> {
    if (this.coming.size > 0) await Promise.allSettled(this.coming.values())
    this.code ??= await import('./lazy.ts')
    this.ledger.endTurns = this.code.endTurns
  }

  /** The same for who needs it now: at once where it is loaded. */
  readonly loadedCode = (): NodeWork | Promise<NodeWork> => this.code ?? this.load().then(() => this.loaded())

  loaded(): NodeWork {
    if (this.code !== undefined) return this.code
    throw new StoreError('store', 'A node was run before its runtime was started.')
  }

  readonly eagerFor = (run: NodeRun): Promise<EagerWork> => this.loaded().eagerChildren(run)

  /** The answer has taken its time: what may be delegated is decided by what holds now, as for any node. */
  readyChildren({ node, agent, work }: NodeRun, step: Expansion): readonly ReadyChild[] {
    if (this.tape !== null || hasLiveSources(agent)) return NONE
    const run = this.runOf(node, work)
    if (run === undefined || run.agent !== agent || agent.identity.ref.hash !== run.conversation.agent.hash) return NONE
    return this.loaded().readyChildren(run, step)
  }

  /** Runs one claimed node to its end and commits it. */
  run(claimed: Node, work: Work): void | Promise<void> {
    const ended = this.tryRun(claimed, work)
    return this.tape === null ? ended : leaveTape(this.tape, claimed.id, ended)
  }

  private tryRun(claimed: Node, work: Work): void | Promise<void> {
    const onError = (error: unknown) => this.failed(claimed, work, error)
    try {
      const begun = this.begin(claimed, work)
      return begun instanceof Promise ? begun.catch(onError) : begun
    } catch (error) {
      return onError(error)
    }
  }

  private begin(claimed: Node, work: Work): void | Promise<void> {
    return this.code === undefined ? this.load().then(() => this.beginNow(claimed, work)) : this.beginNow(claimed, work)
  }

  private beginNow(claimed: Node, work: Work): void | Promise<void> {
    const late = this.hasLateProviders ? this.lateOf(claimed) : undefined
    if (late === undefined) return this.beginReady(claimed, work)
    return unlessAborted(late, work.signal).then(() => this.beginReady(claimed, work))
  }

  /** What providers of a node's agent and of its hosts promise. */
  private lateOf({ turnId, conversationId }: Node): Promise<unknown> | undefined {
    const { store } = this.ledger
    const turn = store.turn(turnId)
    const conversation = store.conversation(conversationId)
    if (turn === undefined || conversation === undefined) return undefined
    const late: Promise<unknown>[] = []
    for (let at: RunPlace | undefined = { turn, conversation }; at !== undefined; at = this.hostOf(at)) {
      const agent = this.maker.of(at.turn.id, at.conversation)
      if (agent !== undefined) late.push(...this.toolkits.late(agent))
    }
    return late.length === 0 ? undefined : Promise.all(late)
  }

  private beginReady(claimed: Node, work: Work): void | Promise<void> {
    const run = this.runOf(claimed, work)
    if (run === undefined) return
    if (run.toolkit.isLate && MODEL_KINDS.includes(run.node.kind)) {
      return run.toolkit.describe(this.loaded().keeperOf(run)).then((toolkit) => this.withModel({ ...run, toolkit }))
    }
    return this.withModel(run)
  }

  /** A node as the rows and this process have it now; undefined when it was deleted. */
  private runOf(claimed: Pick<Node, 'id' | 'turnId' | 'conversationId'>, work: Work): NodeRun | undefined {
    const { store } = this.ledger
    const node = store.node(claimed.id)
    const turn = store.turn(claimed.turnId)
    const conversation = store.conversation(claimed.conversationId)
    if (node === undefined || turn === undefined || conversation === undefined) return undefined
    const agent = this.agentOf(turn, conversation)
    const toolkit = this.toolkitOf(agent, { turn, conversation })
    const layers = this.layers.of(agent, { turn, conversation })
    const hooks = this.hooksOf(agent)
    if (hooks !== null) this.extensionRuns.enter(turn.id, agent.name, hooks)
    return { node, turn, conversation, agent, toolkit, layers, hooks, work, home: this, said: null }
  }

  /** With the file tools of its host, where it inherits them. */
  private toolkitOf(agent: AgentCore, place: RunPlace): Toolkit {
    const own = this.toolkits.of(agent)
    const host = agent.files === null ? undefined : this.hostOf(place)
    const hostAgent = host === undefined ? undefined : this.maker.of(host.turn.id, host.conversation)
    if (host === undefined || hostAgent === undefined) return own
    return this.toolkits.withFiles(own, this.toolkitOf(hostAgent, host))
  }

  private withModel(run: NodeRun): void | Promise<void> {
    const { agent } = run
    if (answersByCode(run)) return this.start(run)
    if (agent.model === null && this.modelOf(agent, run) === null) {
      return this.maker.models.find().then(
        () => this.start(run),
        (error: unknown) => this.startWithout(run, error),
      )
    }
    return this.start(run)
  }

  /** Only speaking needs a model; and a run that would need one later fails then. */
  private startWithout(run: NodeRun, error: unknown): void | Promise<void> {
    if (!MODEL_KINDS.includes(run.node.kind)) return this.start(run)
    throw new Error(`${run.agent.name} has no model: ${messageOf(error)}`)
  }

  private start(run: NodeRun): void | Promise<void> {
    const { agent, conversation } = run
    if (agent.identity.ref.hash === conversation.agent.hash) return this.execute(run)
    return noteChange(this.ledger, conversation.id, agent).then(() => this.execute(run))
  }

  /** All of them, or none when one cannot work. */
  know(given: AgentCore): undefined | Promise<undefined> {
    const { registry } = this.parts
    const agent = baseOf(given)
    if (registry.has(agent)) return undefined
    const found = new Map<string, AgentCore>()
    const promised: Promise<unknown>[] = []
    this.collect(agent, { found, promised })
    if (promised.length > 0) return this.coming.get(agent) ?? this.knowLater(agent, promised)
    // One that its rows keep whole is never looked for by its name.
    for (const one of found.values()) if (one.inline === null) registry.add(one)
    return undefined
  }

  private knowLater(agent: AgentCore, promised: readonly Promise<unknown>[]): Promise<undefined> {
    const coming = Promise.all(promised)
      .finally(() => this.coming.delete(agent))
      .then(() => this.know(agent))
    this.coming.set(agent, coming)
    return coming
  }

  /** Every layer that decides for a run, or for an agent at the root. */
  layersFor(of: Id | AgentCore): readonly Layer[] {
    if (typeof of !== 'string') {
      return [...this.parts.runtimeLayer, ...fileUseLayers(of), useLayer(of.name, of.grant)]
    }
    const { store } = this.ledger
    const turn = store.turn(of)
    const conversation = turn === undefined ? undefined : store.conversation(turn.conversationId)
    if (turn === undefined || conversation === undefined) {
      throw notFound(store, 'run', of)
    }
    return this.layers.of(this.agentOf(turn, conversation), { turn, conversation })
  }

  boundsOf(conversation: Conversation): TurnBounds {
    const agent = this.maker.of(conversation.id, conversation)
    return turnBounds(conversation, { store: this.ledger.store, agent, budget: this.budget })
  }

  groupsOf(conversation: Conversation): Groups | undefined {
    return this.maker.of(conversation.id, conversation)?.groups
  }

  /** Drops what was worked out of definitions. What providers gave stays: they are called once per delegation. */
  forget(): void {
    this.toolkits.forget()
    this.layers.forget()
    this.hookSets = new WeakMap()
    this.maker.forget()
  }

  modelOf(agent: AgentCore, place: RunPlace): Model | null {
    if (agent.model !== null) return this.maker.models.of(agent)
    const host = this.hostOf(place)
    const hostAgent = host === undefined ? undefined : this.maker.of(host.turn.id, host.conversation)
    if (host === undefined || hostAgent === undefined) return this.maker.models.standard
    return this.modelOf(hostAgent, host)
  }

  settleChild(runId: Id, agent: AgentCore): void {
    this.settle(runId, agent)
  }

  leaveChild(runId: Id): void {
    this.parts.registry.leave(runId)
    this.extensionRuns.leave(runId)
  }

  /** Says which object does a run in this process, and that its extensions hear of its end. */
  settle(runId: Id, agent: AgentCore): void {
    this.parts.registry.settle(runId, agent)
    const hooks = this.hooksOf(agent)
    if (hooks !== null) this.extensionRuns.enter(runId, agent.name, hooks)
  }

  /** An agent's extensions, then the runtime's. Throws a DefinitionError where they do not go together. */
  hooksOf(agent: AgentCore): HookSet | null {
    const { extensions } = this.parts
    if (agent.extensions.length === 0 && extensions.length === 0) return null
    const known = this.hookSets.get(agent)
    if (known !== undefined) return known.isEmpty ? null : known
    const made = new HookSet(sortExtensions([...agent.extensions, ...extensions], `agent "${agent.name}"`))
    this.hookSets.set(agent, made)
    return made.isEmpty ? null : made
  }

  agentFor(conversation: Conversation): AgentCore | undefined {
    return this.maker.of(conversation.id, conversation)
  }

  waitFor(runId: Id): Promise<Outcome> {
    return this.parts.ends.wait(runId)
  }

  waitUnless(runId: Id, signal: AbortSignal | undefined): Promise<Outcome | null> {
    return this.parts.ends.waitUnless(runId, signal)
  }

  waitForNode(nodeId: Id, signal: AbortSignal): Promise<Node | null> {
    return this.parts.nodeEnds.waitUnless(nodeId, signal)
  }

  /** A run has ended: what it held in this process is let go. */
  left(runId: Id): void {
    this.parts.registry.leave(runId)
    this.pool?.leave(runId)
  }

  /** The same for runs that have ended elsewhere. */
  leftAll(isEnded: (runId: Id) => boolean): void {
    this.parts.registry.leaveAll(isEnded)
    this.pool?.leaveAll(isEnded)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.pool?.close()
  }

  private sourcePool(): SourcePool {
    this.pool ??= this.loaded().sourcePool(this.logger, () => this.ledger.clock.now())
    // One that is closed starts nothing.
    if (this.isClosed) this.pool.close().catch(() => undefined)
    return this.pool
  }

  private execute(run: NodeRun): void | Promise<void> {
    if (!hasLiveSources(run.agent)) return this.executeAs(run)
    const equipping = this.loaded().equip(run, this.sourcePool())
    return equipping.then((equipped) => (equipped === undefined ? undefined : this.executeAs(equipped)))
  }

  private executeAs(run: NodeRun): void | Promise<void> {
    const { kind, purpose } = run.node
    if (purpose === 'brief') return this.briefAs(run)
    if (answersByCode(run)) return this.loaded().runReply(run)
    if (MODEL_KINDS.includes(kind)) {
      const model = this.modelOf(run.agent, run)
      if (model === null)
        throw new Error(`${run.agent.name} has no model: name one in agent(), or createRuntime({ model })`)
      return after(run.agent.output?.prepare(), () => this.loaded().runStep(run, model))
    }
    const own = this.parts.kinds.get(kind)
    return own === undefined ? this.loaded().runTask(run) : this.loaded().runKind(run, own)
  }

  /** A briefing is the host's work: its model and its layers. Where its code is not known, the child's own do it. */
  private briefAs(run: NodeRun): void | Promise<void> {
    const host = this.hostOf(run)
    const agent = host === undefined ? undefined : this.maker.of(host.turn.id, host.conversation)
    const as = host === undefined || agent === undefined ? run : { ...run, agent, layers: this.layers.of(agent, host) }
    const model = this.modelOf(as.agent, host ?? run)
    if (model === null) throw new Error(`${as.agent.name} has no model to brief ${run.agent.name} with`)
    return this.loaded().runStep(as, model)
  }

  hooksAbove(run: NodeRun): HooksAbove | null {
    return this.hasHooksForChildren && run.conversation.depth > 0 ? hooksAbove(this.hostsOf(run)) : null
  }

  private *hostsOf(place: RunPlace): Generator<HostAbove> {
    let below = place
    for (let host = this.hostOf(below); host !== undefined; host = this.hostOf(below)) {
      const agent = this.maker.of(host.turn.id, host.conversation)
      const toolName = this.ledger.store.link(below.turn.id)?.toolName ?? ''
      const hooks = agent === undefined ? null : this.hooksOf(agent)
      if (agent !== undefined) this.extensionRuns.enter(host.turn.id, agent.name, hooks)
      const place = { runId: host.turn.id, nodeId: null, purpose: null, work: null }
      yield { hooks, place, entry: agent === undefined ? undefined : this.toolkits.of(agent).find(toolName) }
      below = host
    }
  }

  /** The run that asked for this one, or made its conversation. */
  private hostOf(place: RunPlace): RunPlace | undefined {
    return hostOf(this.ledger.store, place)
  }

  private agentOf(turn: Turn, conversation: Conversation): AgentCore {
    const agent = this.maker.of(turn.id, conversation)
    if (agent === undefined) throw new Error(`this process has no code for the agent "${conversation.agent.name}"`)
    return agent
  }

  /** What a provider made is not looked into before it is used: it may offer the same provider again, without end. */
  private collect(agent: AgentCore, known: Known): void {
    const { found } = known
    const key = keyOf(agent)
    if (found.has(key) || this.parts.registry.has(agent)) return
    found.set(key, agent)
    if (this.hooksOf(agent)?.has('onChildTool') === true) this.hasHooksForChildren = true
    for (const source of this.toolkits.allBelow(agent)) this.collectSource(source, known)
    for (const below of backgroundAgents(agent.tools)) this.collect(below, known)
  }

  private collectSource(source: SubagentSource, known: Known): void {
    const { isProvided, config } = source
    if (config.profile !== undefined) profileLayer(config.profile, this.profiles)
    if (config.hooks === 'inherit') this.hasHooksForChildren = true
    // What a provider made may have providers of its own: they are asked when its tools are shown.
    if (isProvided) this.hasLateProviders = true
    const below = source.first()
    if (below === null) return
    if (below instanceof Promise) known.promised.push(below)
    else if (isProvided) known.found.set(keyOf(below), below)
    else this.collect(below, known)
  }

  /** A defect of a definition or of ours: the node ends with it, the run does not hang. A store that is away is neither. */
  private async failed(node: Node, work: Work, error: unknown): Promise<void> {
    if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return
    if (StoreError.isInstance(error)) throw error
    if (work.stopCause !== 'cancel') this.parts.logger.error(messageOf(error), { nodeId: node.id, error })
    const failure = { code: codeOf(error), message: this.causeOf(error) }
    await this.parts.ledger.commit({
      kind: 'result',
      rootId: node.rootId,
      plan: (draft) => this.loaded().planResult(draft, work.claim, { state: 'errored', failure }),
    })
  }
}

/** Summing up a conversation is a model's work, whoever speaks in it. */
function answersByCode({ agent, node }: NodeRun): boolean {
  return agent.reply !== null && MODEL_KINDS.includes(node.kind) && node.purpose !== 'summarize'
}

/** The name of what kept a node from its work. */
function codeOf(error: unknown): string {
  return DefinitionError.isInstance(error) || DeniedError.isInstance(error) ? error.code : 'internal'
}

/** What is found below an agent that becomes known. */
interface Known {
  readonly found: Map<string, AgentCore>
  readonly promised: Promise<unknown>[]
}

const NONE: readonly ReadyChild[] = []

function keyOf({ name, identity }: AgentCore): string {
  return `${name}/${identity.ref.hash}`
}

/** A host of a run, and what the run below it was started with; nothing where its code is not known here. */
export interface HostAbove {
  readonly hooks: HookSet | null
  readonly place: HookPlace
  readonly entry: ToolEntry | undefined
}

/** What hosts, the nearest first, have to say to a call below them. Hooks that a host gave to a child decide for all below it. */
function hooksAbove(hosts: Iterable<HostAbove>): HooksAbove | null {
  const deciding: Voice[] = []
  const watching: Voice[] = []
  for (const { hooks, place, entry } of hosts) {
    const isInherited = entry !== undefined && isSubagentEntry(entry) && entry.inheritsHooks
    if (isInherited) for (const extension of hooks?.of('beforeTool') ?? []) deciding.push({ extension, place })
    for (const extension of hooks?.of('onChildTool') ?? []) watching.push({ extension, place })
  }
  return deciding.length + watching.length === 0 ? null : { deciding, watching }
}
