import { contextTurnsOf } from '../agent/build/conversation-settings.ts'
import { hasLiveSources } from '../agent/build/read-kit.ts'
import { MODEL_KINDS, noteChange } from '../agent/hooks/hook-set.ts'
import type { Home, LiveParts, NodeRun } from '../agent/hooks/node-run.ts'
import { unlessAborted } from '../base/abort.ts'
import { DefinitionError, DeniedError, messageOf, NotFoundError, StoreError } from '../base/error.ts'
import type { Later } from '../base/maybe.ts'
import type { LiveTrace } from '../conversation/trace/live-trace.ts'
import type { KindDefinition } from '../delegation/run/kind.ts'
import type { CallGate } from '../engine/call-gate.ts'
import type { Work } from '../engine/engine.ts'
import type { SourceBoard } from '../engine/source-board.ts'
import type { CallLimits } from '../grant/call-limits.ts'
import { hostOf, type TreeReader } from '../graph/reader.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { ShownRequest } from '../operations/look/request-of.ts'
import { lookWith, MissingRows, mayHaveEnded, nearTree } from '../store/look.ts'
import { isOver } from '../store/not-found.ts'
import type { SourcePool } from '../tool/source-pool.ts'
import { leaveTape } from '../tool/tape.ts'
import type { AgentDirectory, ResolvedAgent } from './resolve-agent.ts'

type NodeCode = typeof import('./lazy.ts')

/** Everything of a home that is there before the code that runs nodes is loaded. */
export interface ExecutorParts extends Omit<Home, 'children'> {
  readonly agents: AgentDirectory
  /** Node kinds of the application. */
  readonly kinds: ReadonlyMap<string, KindDefinition>
  /** The gate is set when the code that runs nodes is loaded. */
  readonly live: LiveParts & { gate: CallGate; trace: LiveTrace | null }
  readonly limits: CallLimits | undefined
  readonly sources: SourceBoard
}

interface Loaded {
  readonly code: NodeCode
  readonly home: Home
}

/** How many runs a sweep looks at, to let go of those that others have ended. */
const LOOKED_AT = 64

/**
 * Runs the nodes that the engine claims. Each goes the same way: `resolve` finds in rows and agents what the node needs,
 * `complete` waits for what is still missing, which mostly is nothing, and `execute` hands the run to what its kind needs.
 * Whatever fails on the way ends the node.
 */
export class NodeExecutor {
  private readonly parts: ExecutorParts
  private loaded: Loaded | undefined
  /** Made for the first run that has sources. */
  private pool: SourcePool | undefined
  /** How many of the runs of this process were looked at in the current round. */
  private lookedAt = 0
  private isClosed = false

  constructor(parts: ExecutorParts) {
    this.parts = parts
  }

  /** Loads the code that runs nodes, once, and waits until all agents that the runtime was told of are known. */
  async load(): Promise<void> {
    await this.parts.agents.allKnown()
    if (this.loaded !== undefined) return
    const joined = this.join(await import('./lazy.ts'))
    await this.trace()
    this.loaded ??= joined
  }

  /** Loads what tells a telemetry of runs, where there is one. */
  private async trace(): Promise<void> {
    const { settings, live, ledger } = this.parts
    const { telemetry } = settings
    if (telemetry === null || live.trace !== null) return
    const { LiveTrace } = await import('../conversation/trace/live-trace.ts')
    live.trace ??= new LiveTrace({ store: ledger.store, telemetry, report: live.report })
  }

  private join(code: NodeCode): Loaded {
    const { ledger, agents, live, settings } = this.parts
    ledger.endTurns = code.endTurns
    live.gate = code.callGate(ledger, this.parts.limits, live.report)
    ledger.tellChanges = code.tellChanges
    ledger.charge = code.withCharges
    agents.load(code)
    return { code, home: { ledger, agents, live, settings, children: code.CHILDREN } }
  }

  /** The rules of a run: at once where they are loaded, so that nothing comes between. */
  readonly rules = (): NodeCode | Promise<NodeCode> =>
    this.loaded?.code ?? this.load().then(() => this.loadedParts().code)

  loadedParts(): Loaded {
    if (this.loaded !== undefined) return this.loaded
    throw new StoreError('store', 'A node was run before its runtime was started.')
  }

  /** Runs one claimed node to its end and commits it. */
  run(claimed: Node, work: Work): void | Promise<void> {
    const ended = this.tryRun(claimed, work)
    const { tape } = this.parts.live
    return tape === null ? ended : leaveTape(tape, claimed.id, ended)
  }

  private tryRun(claimed: Node, work: Work): void | Promise<void> {
    try {
      const tree = this.treeOf(claimed)
      const isReady = this.loaded !== undefined && !this.parts.agents.hasLateProviders
      const isNow = isReady && !(tree instanceof Promise)
      const begun = isNow ? this.begin(tree, claimed, work) : this.beginLater(claimed, work)
      return begun instanceof Promise ? begun.catch((error: unknown) => this.failed(claimed, work, error)) : begun
    } catch (error) {
      return this.failed(claimed, work, error)
    }
  }

  private failed(claimed: Node, work: Work, error: unknown): Promise<void> {
    // Its model was not asked yet: what it is shown has to be loaded first.
    if (error instanceof MissingRows) return error.load().then(() => this.tryRun(claimed, work))
    return this.fail(claimed, work, error)
  }

  /** The rows of a claimed node's tree. What this process knows of them has its own claim, and all that was there before it. */
  private treeOf({ rootId }: Node): Later<TreeReader> {
    const { store } = this.parts.ledger
    return store.known?.(rootId) ?? nearTree(store, rootId)
  }

  private begin(tree: TreeReader, claimed: Node, work: Work): void | Promise<void> {
    const run = this.resolve(tree, claimed, work)
    if (run === undefined) return
    if (isComplete(run)) return this.execute(run)
    return this.complete(run).then((whole) => (whole === undefined ? undefined : this.execute(whole)))
  }

  /** Waits for the code that runs nodes, and for what providers of agents promise. */
  private async beginLater(claimed: Node, work: Work): Promise<void> {
    if (this.loaded === undefined) await this.load()
    const { agents } = this.parts
    const promised = agents.promisedFor(await this.treeOf(claimed), claimed)
    if (promised !== undefined) await unlessAborted(promised, work.signal)
    return this.begin(await this.treeOf(claimed), claimed, work)
  }

  /** Finds everything that a node needs, as the rows and this process have it now; undefined when the node was deleted. */
  private resolve(tree: TreeReader, { id, turnId, conversationId }: Node, work: Work): NodeRun | undefined {
    const { agents, live } = this.parts
    const node = tree.node(id)
    const turn = tree.turn(turnId)
    const conversation = tree.conversation(conversationId)
    if (node === undefined || turn === undefined || conversation === undefined) return undefined
    const place = { tree, node, turn, conversation }
    const resolved = agents.resolve(place)
    if (resolved.hooks !== null) live.extensions.enter(turn, resolved.agent.name, resolved.hooks)
    const model = agents.modelOf(resolved.agent, place)
    return new FoundRun(place, resolved, { model, work, home: this.loadedParts().home })
  }

  /** The request that the model of a node got, as far as rows and code of this process tell. Runs nothing. */
  async requestOf(nodeId: Id): Promise<ShownRequest> {
    await this.load()
    return lookWith(this.parts.ledger.store, nodeId, (tree) => this.requestIn(tree, nodeId))
  }

  private async requestIn(tree: TreeReader, nodeId: Id): Promise<ShownRequest> {
    const { agents } = this.parts
    const node = tree.node(nodeId)
    const turn = tree.turn(node?.turnId ?? '')
    const conversation = tree.conversation(node?.conversationId ?? '')
    if (node === undefined || turn === undefined || conversation === undefined) {
      throw new NotFoundError('not_found', `There is no node ${nodeId} in this store.`)
    }
    await agents.promisedFor(tree, node)
    const { code, home } = this.loadedParts()
    const { NO_WORK, requestOf } = await import('../operations/look/request-of.ts')
    const place = { tree, node, turn, conversation }
    const resolved = agents.resolve(place)
    const model = agents.modelOf(resolved.agent, place)
    const run: NodeRun = { ...place, home, ...resolved, model, work: NO_WORK, said: null }
    return requestOf(lacksTools(run) ? { ...run, toolkit: await run.toolkit.describe(code.keeperOf(run)) } : run)
  }

  /** Waits for all that a run still lacks, in this order; undefined when a person must be asked first. */
  private async complete(found: NodeRun): Promise<NodeRun | undefined> {
    const { code } = this.loadedParts()
    let run = found
    if (lacksTools(run)) run = { ...run, toolkit: await run.toolkit.describe(code.keeperOf(run)) }
    if (lacksModel(run)) run = await this.withModel(run)
    if (isChanged(run)) run = await this.withChange(run)
    return hasLiveSources(run.agent) ? code.equip(run, this.sourcePool()) : run
  }

  private async withModel(run: NodeRun): Promise<NodeRun> {
    const { agents } = this.parts
    try {
      await agents.models.find(run.agent.name)
    } catch (error) {
      // Only speaking needs a model; a run that would need one later fails then.
      if (MODEL_KINDS.includes(run.node.kind)) throw error
    }
    return { ...run, model: agents.modelOf(run.agent, run) }
  }

  private async withChange(run: NodeRun): Promise<NodeRun> {
    const { ledger } = this.parts
    await noteChange(ledger, run.conversation, run.agent)
    const tree = await nearTree(ledger.store, run.node.rootId)
    return { ...run, tree, conversation: tree.conversation(run.conversation.id) ?? run.conversation }
  }

  /** Hands a run to the code that its kind needs. */
  private execute(run: NodeRun): void | Promise<void> {
    const { code } = this.loadedParts()
    const { kind, purpose } = run.node
    if (purpose === 'brief') return this.brief(run)
    if (answersByCode(run)) return code.runReply(run)
    if (MODEL_KINDS.includes(kind)) {
      const { model } = run
      if (model === null)
        throw new Error(`${run.agent.name} has no model: name one in agent(), or createRuntime({ model })`)
      const prepared = run.agent.output?.prepare()
      return prepared === undefined ? code.runStep(run, model) : prepared.then(() => code.runStep(run, model))
    }
    const own = this.parts.kinds.get(kind)
    return own === undefined ? code.runTask(run) : code.runKind(run, own)
  }

  /** A briefing is the host's work: its model and its layers. Where its code is not known, the child's own do it. */
  private brief(run: NodeRun): void | Promise<void> {
    const { agents } = this.parts
    const host = hostOf(run)
    const isKnown = host !== undefined && agents.of(host.tree, host.turn.id, host.conversation) !== undefined
    const { agent, layers } = isKnown ? agents.resolve(host) : run
    const model = isKnown ? agents.modelOf(agent, host) : run.model
    if (model === null) throw new Error(`${agent.name} has no model to brief ${run.agent.name} with`)
    const contextTurns = contextTurnsOf(run.conversation, agent)
    return this.loadedParts().code.runStep({ ...run, agent, layers, model, contextTurns }, model)
  }

  /** A defect of a definition or of ours: the node ends with it, the run does not hang. A store that is away is neither. */
  private async fail(node: Node, work: Work, error: unknown): Promise<void> {
    if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return
    if (StoreError.isInstance(error)) throw error
    const { ledger, settings } = this.parts
    if (work.stopCause !== 'cancel') settings.logger.error(messageOf(error), { nodeId: node.id, error })
    const failure = { code: codeOf(error), message: settings.causeOf(error) }
    await ledger.commit({
      kind: 'result',
      rootId: node.rootId,
      plan: (draft) => this.loadedParts().code.planResult(draft, work.claim, { state: 'errored', failure }),
    })
  }

  /** Lets go of what a run held in this process: it has ended. */
  leave(runId: Id): void {
    this.parts.agents.registry.leave(runId)
    this.pool?.leave(runId)
  }

  /** Lets go of runs that have ended in other processes: of some at a time, in turns. Whoever waits for one finds its end. */
  async leaveEnded(): Promise<void> {
    const { agents, ledger, live } = this.parts
    const own = agents.registry.runs()
    const from = this.lookedAt < own.length ? this.lookedAt : 0
    this.lookedAt = from + LOOKED_AT
    const runs = new Set([...own.slice(from, from + LOOKED_AT), ...(this.pool?.runs() ?? [])])
    const open = await mayHaveEnded(
      ledger.store,
      [...runs].filter((runId) => !live.ends.isAwaited(runId)),
    )
    // Together: a store far away answers for many trees at once.
    const ended = await Promise.all(open.map((runId) => isOver(ledger.store, runId)))
    for (const [at, runId] of open.entries()) if (ended[at]) this.leave(runId)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.pool?.close()
  }

  private sourcePool(): SourcePool {
    const { ledger, settings, sources } = this.parts
    this.pool ??= this.loadedParts().code.sourcePool({
      logger: settings.logger,
      now: () => ledger.clock.now(),
      board: sources,
    })
    // One that is closed starts nothing.
    if (this.isClosed) this.pool.close().catch(() => undefined)
    return this.pool
  }
}

/** Where a run was found. */
type FoundPlace = Pick<NodeRun, 'tree' | 'node' | 'turn' | 'conversation'>

/** A run as `resolve` finds it. A class, because V8 takes a literal for long-lived: see `base/keep-shape`. */
class FoundRun implements NodeRun {
  readonly tree: NodeRun['tree']
  readonly node: NodeRun['node']
  readonly turn: NodeRun['turn']
  readonly conversation: NodeRun['conversation']
  readonly agent: NodeRun['agent']
  readonly agentsVersion: NodeRun['agentsVersion']
  readonly toolkit: NodeRun['toolkit']
  readonly model: NodeRun['model']
  readonly layers: NodeRun['layers']
  readonly profile: NodeRun['profile']
  readonly contextTurns: NodeRun['contextTurns']
  readonly hooks: NodeRun['hooks']
  readonly work: NodeRun['work']
  readonly home: NodeRun['home']
  readonly said: NodeRun['said'] = null

  constructor(
    place: FoundPlace,
    found: ResolvedAgent,
    { model, work, home }: Pick<NodeRun, 'model' | 'work' | 'home'>,
  ) {
    this.tree = place.tree
    this.node = place.node
    this.turn = place.turn
    this.conversation = place.conversation
    this.agent = found.agent
    this.agentsVersion = found.agentsVersion
    this.toolkit = found.toolkit
    this.model = model
    this.layers = found.layers
    this.profile = found.profile
    this.contextTurns = found.contextTurns
    this.hooks = found.hooks
    this.work = work
    this.home = home
  }
}

function isComplete(run: NodeRun): boolean {
  const { sources } = run.agent
  return !lacksTools(run) && !lacksModel(run) && !isChanged(run) && (sources.size === 0 || !hasLiveSources(run.agent))
}

/** Are there tools that must be described before a model is shown them? */
function lacksTools({ toolkit, node }: NodeRun): boolean {
  return toolkit.isLate && MODEL_KINDS.includes(node.kind)
}

function lacksModel(run: NodeRun): boolean {
  return run.model === null && !answersByCode(run)
}

/** Was the agent defined anew since its conversation was last written? */
function isChanged({ agent, conversation }: NodeRun): boolean {
  return agent.identity.ref.hash !== conversation.agent.hash
}

/** Summing up a conversation is a model's work, whoever speaks in it. */
function answersByCode({ agent, node }: NodeRun): boolean {
  return agent.reply !== null && MODEL_KINDS.includes(node.kind) && node.purpose !== 'summarize'
}

/** The name of what kept a node from its work. */
function codeOf(error: unknown): string {
  return DefinitionError.isInstance(error) || DeniedError.isInstance(error) ? error.code : 'internal'
}
