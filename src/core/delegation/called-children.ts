import { type AnyAgent, isAgent } from '../agent/definition/agent.ts'
import { filesOf, type NodeRun } from '../agent/hooks/node-run.ts'
import { Allowance } from '../base/clock.ts'
import { ConflictError, DefinitionError, DeniedError, LegateError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { readOptions } from '../base/options.ts'
import type { LiveNode } from '../conversation/live-node.ts'
import { foundTraceparent } from '../conversation/trace/traceparent.ts'
import type { Files } from '../files/files.ts'
import { refusedOutcome } from '../graph/conclude.ts'
import type { LiveBody } from '../graph/event.ts'
import { type Outcome, withWords } from '../graph/outcome.ts'
import { findAttributes } from '../graph/reader.ts'
import type { AgentRef, Id, Node } from '../graph/rows.ts'
import { nextTryOf } from '../rules/delegation/retry-child.ts'
import { type ChildIds, planDeliver } from '../rules/delegation/spawn.ts'
import type { ApprovalRequest } from '../rules/turn/approval-of.ts'
import { heldNode } from '../rules/turn/claim.ts'
import { look, untilLoaded } from '../store/look.ts'
import { DELEGATE_OPTIONS, type DelegateOptions } from '../tool/attempts.ts'
import {
  asCurrentCall,
  type ChildOptions,
  type CurrentCall,
  type SpawnedChild,
  type SpawnOptions,
  type StartedChild,
} from '../tool/current.ts'
import type { Delegate, ToolContext } from '../tool/tool.ts'
import { asksOf, CallIds, Definitions } from './call-ids.ts'
import { type Offer, rejoin, type SpawnResult, spawn } from './spawn.ts'

/** The children that a node's code starts while it runs. Code that runs again finds them by what it asks: see `call-ids`. */
export class CalledChildren implements CurrentCall {
  readonly runtime: object
  protected readonly run: NodeRun
  protected readonly calls: CallIds
  /** The calls of this try that have a key. */
  private readonly keyed: Map<string, KeyedCall> = new Map()
  private readonly definitions: Definitions = new Definitions()
  private live: LiveNode | undefined
  private allowance: Allowance | undefined

  constructor(run: NodeRun) {
    this.run = run
    this.runtime = run.home.live.runtime
    this.calls = new CallIds(run.node.id)
  }

  /** To be called before code runs again: finds what its earlier tries have started. */
  lookBack(): Promise<void> {
    return this.calls.lookBack(this.run)
  }

  /** Runs code as this node: the agents it starts become children of the node. */
  inside<T>(code: (context: ToolContext) => T): T {
    const { trace } = this.run.home.live
    const run = () => asCurrentCall(this, () => code(this.context()))
    return trace === null ? run() : trace.inside(this.run, run)
  }

  start(agent: object, input: unknown, { grant, budget, call = {} }: ChildOptions = {}): StartedChild {
    if (!isAgent(agent)) throw new DefinitionError('definition', 'delegate(agent, input): make the agent with agent().')
    const { key, ...attempts } = readOptions('delegate(agent, input, options)', call, DELEGATE_OPTIONS)
    return this.startAs({ ...this.offerOf(agent), grant, budget, attempts }, { given: input, key })
  }

  protected startAs(offer: Offer, { given, input = given, key }: Asking): StartedChild {
    const asks = asksOf(offer, given)
    const known = key === undefined ? undefined : this.keyed.get(key)
    if (known?.asks === asks) return known.child
    const isTold = this.definitions.ask(offer.agent.identity.ref) || key !== undefined
    const fault = known === undefined ? (isTold ? undefined : MIXED) : OTHER_CALL
    const ids = this.calls.ofChild(asks, key)
    const started = fault === undefined ? this.begin(offer, input, ids) : this.refuse(fault)
    const outcome = this.run.work.lend(started.then((spawned) => this.finish(spawned, ids)))
    outcome.catch(() => undefined)
    const child = { runId: ids.turn, conversationId: ids.conversation, started, outcome }
    if (key !== undefined && known === undefined) this.keyed.set(key, { asks, child })
    return child
  }

  async spawn(agent: object, input: unknown, { wake, sessionId }: SpawnOptions): Promise<SpawnedChild> {
    if (!isAgent(agent)) throw new DefinitionError('definition', 'spawn(agent, input): make the agent with agent().')
    const background = { wake, sessionId, briefing: null, title: null, metadata: null, result: null, wait: null }
    const offer = sessionId === null ? this.offerOf(agent) : { ...this.offerOf(agent), input: null }
    const ids = this.calls.ofChild(asksOf(offer, input, `spawn ${sessionId}`))
    const found = await this.found(offer, ids)
    const spawned = found ?? (await spawn(this.run, { offer, input, mode: 'background', ids, background }))
    if ('lost' in spawned) throw this.lost()
    if ('ask' in spawned) throw new DeniedError('denied', cannotAsk(spawned.ask))
    if ('refused' in spawned) {
      const { status, error } = spawned.refused
      throw new DeniedError('denied', `"${agent.name}" was not started (${status}): ${error?.message ?? ''}`)
    }
    const { id, childConversationId } = spawned.link
    return {
      runId: id,
      conversationId: childConversationId,
      take: (run, signal) => this.run.work.lend(this.takenUnless(run, signal)),
    }
  }

  recall(toolName: string): Json | undefined {
    const { tree, turn } = this.run
    for (const { id } of tree.turnsOf(turn.laneId, { last: turn.ordinal, limit: RECALLED_TURNS }).toReversed()) {
      const found = tree.nodesOf(id).findLast((node) => isResultOf(node, toolName))
      if (found !== undefined) return found.input.call?.input
    }
    return undefined
  }

  end(): void {
    if (this.live !== undefined) this.run.home.live.feeds.endLive(this.run.node)
  }

  protected context(): ToolContext {
    const { node, conversation, work, home } = this.run
    const files = () => this.files()
    const attributes = () => findAttributes(this.run.tree, this.run.turn)
    const traceparent = () => home.live.trace?.traceparentOf(node) ?? foundTraceparent(attributes())
    return {
      idempotencyKey: node.idempotencyKey ?? node.id,
      node: { id: node.id, conversationId: node.conversationId, runId: node.turnId, attempt: node.attempt },
      progress: (message, data = null) => this.progress(message, data),
      delegate: ((agent: object, input: unknown, call?: DelegateOptions) =>
        this.start(agent, input, { call }).outcome) as Delegate,
      logger: home.settings.logger,
      owner: conversation.owner,
      path: conversation.path,
      tracer: home.settings.tracer,
      longTermMemory: home.settings.longTermMemory,
      get attributes() {
        return attributes()
      },
      get traceparent() {
        return traceparent()
      },
      get files() {
        return files()
      },
      get signal() {
        return work.signal
      },
    }
  }

  private files(): Files {
    return filesOf(this.run)
  }

  /**
   * Passes on the progress of every tool. A call that floods is counted, and shown no more often than the limit allows.
   */
  private progress(message: string, data: Json): boolean {
    const { home, work } = this.run
    const { clock } = home.ledger
    work.noteActivity()
    this.allowance ??= new Allowance(PROGRESS_AT_ONCE, PROGRESS_PER_SECOND)
    if (!this.allowance.take(weightOf(message, data), clock.now())) return false
    this.show({ type: 'progress', message, data })
    return true
  }

  /** Shows an event to everybody who watches the run. */
  show(body: LiveBody): void {
    const { home } = this.run
    this.live ??= home.live.feeds.beginLive(this.run)
    this.live.emit(body, home.ledger.clock)
  }

  protected async begin(offer: Offer, input: unknown, ids: ChildIds): Promise<SpawnResult> {
    return (await this.found(offer, ids)) ?? spawn(this.run, { offer, input, mode: 'called', ids })
  }

  /** The child that an earlier try of the code has started for the same call. */
  private async found(offer: Offer, ids: ChildIds): Promise<SpawnResult | undefined> {
    if (this.calls.isByPlace || !this.calls.isEarlier(ids.turn)) return undefined
    const { tree } = this.run
    const { link, turn, child } = await untilLoaded(() => {
      const turn = tree.turn(ids.turn)
      return { link: tree.link(ids.turn), turn, child: tree.conversation(turn?.conversationId ?? '') }
    })
    if (link === undefined || turn === undefined || child === undefined) return undefined
    if (ids.requestHash !== undefined) {
      if (turn.requestHash !== ids.requestHash) throw this.conflicting(OTHER_CALL)
    } else if (!this.definitions.answer(child.agent, offer.agent.identity.ref)) throw this.conflicting(MIXED)
    if (link.outcome !== null) await this.tellChange(child.agent, offer.agent.identity.ref)
    return rejoin(this.run, { link, offer })
  }

  /**
   * Leaves an event where a child that has ended answers for an agent that was edited since. The row of the child keeps the
   * definition that answered. Each edited agent is told once, however many of its children are used again.
   */
  private async tellChange(stored: AgentRef, asked: AgentRef): Promise<void> {
    if (!this.definitions.isNews(stored, asked)) return
    const { home, work } = this.run
    const { claim } = work
    await home.ledger.commit({
      kind: 'note',
      rootId: claim.rootId,
      plan: (draft) => {
        const node = heldNode(draft, claim)
        if (node === undefined) return
        const change = { type: 'definition-changed', agent: asked.name, from: stored.hash, to: asked.hash } as const
        draft.event(draft.turn(node.turnId), node.id, change)
      },
    })
  }

  private async refuse(what: string): Promise<never> {
    throw this.conflicting(what)
  }

  protected conflicting(what: string): ConflictError {
    return new ConflictError('conflict', what)
  }

  protected offerOf(agent: AnyAgent): Offer {
    return {
      name: this.run.node.input.call?.name ?? this.run.node.kind,
      contract: 'typed',
      input: agent.input,
      briefing: NO_BRIEFING,
      grant: undefined,
      budget: undefined,
      profile: undefined,
      isShared: false,
      onParentClose: 'cancel',
      agent,
      take: () => agent,
    }
  }

  protected async finish(spawned: SpawnResult, _ids: ChildIds): Promise<Outcome> {
    if ('lost' in spawned) throw this.lost()
    if ('ask' in spawned) return withWords(refusedOutcome('denied', cannotAsk(spawned.ask)), {})
    if ('refused' in spawned) return withWords(spawned.refused, {})
    return this.taken(spawned.link.id)
  }

  protected lost(): unknown {
    const { work } = this.run
    return work.stopCause === null ? tooLate() : work.signal.reason
  }

  /** Waits for a child's outcome and marks it as received by this call. */
  private async taken(runId: Id): Promise<Outcome> {
    const { home } = this.run
    const { rootId } = this.run.turn
    const outcome = await home.live.ends.wait(runId, rootId)
    const next = await look(home.ledger.store, rootId, (tree) => nextTryOf(tree, runId))
    if (next !== undefined) return this.taken(next)
    await this.deliver(runId)
    return outcome
  }

  /**
   * Waits for a background child until the signal aborts. If the code stops waiting, the host is notified of the end
   * instead.
   */
  private async takenUnless(runId: Id, signal: AbortSignal | undefined): Promise<Outcome | null> {
    const outcome = await this.run.home.live.ends.waitUnless(runId, signal)
    if (outcome === null || signal?.aborted) return null
    await this.deliver(runId)
    return outcome
  }

  private async deliver(runId: Id): Promise<void> {
    const { home, node } = this.run
    await home.ledger.commit({ kind: 'deliver', rootId: node.rootId, plan: (draft) => planDeliver(draft, runId) })
  }
}

interface Asking {
  readonly given: unknown
  /** The input of the child, if it is more than the request. */
  readonly input?: unknown
  readonly key: string | undefined
}

interface KeyedCall {
  readonly asks: string
  readonly child: StartedChild
}

const OTHER_CALL =
  'delegate(agent, input, { key }): the key stands for another call of this run: for another agent, or another input. Give each call a key of its own.'

const MIXED =
  'Agents of one name and of several definitions were asked the same, and now in another order: nobody can tell whose child is whose. Give each of these agents a name of its own, or each call a key: delegate(agent, input, { key }).'

/** Only this many recent turns are searched. */
const RECALLED_TURNS = 50

/** How many short messages one call may show at once. A long message counts once per 1,000 characters. */
const PROGRESS_AT_ONCE = 1_000
const PROGRESS_PER_SECOND = 10

function weightOf(message: string, data: Json): number {
  const length = String(message).length + (data === null ? 0 : (JSON.stringify(data)?.length ?? 0))
  return 1 + Math.floor(length / 1_000)
}

function isResultOf({ kind, state, input, output }: Node, toolName: string): boolean {
  return kind === 'task' && state === 'finished' && output.isError !== true && input.call?.name === toolName
}

/** The error for code that continues after its call has ended: it can start nothing more. */
function tooLate(): LegateError {
  return new LegateError('aborted', 'The call that would start this agent has ended.')
}

/** Explains why running code cannot wait for a person: the question would have to be asked before it began. */
function cannotAsk({ request, reason }: ApprovalRequest): string {
  return `${request} must be allowed by a person (${reason}), and code that runs cannot wait for one. Let the model of an agent delegate it.`
}

const NO_BRIEFING = { mode: 'none', tokens: 0 } as const
