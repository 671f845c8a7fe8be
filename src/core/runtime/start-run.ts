// The start of a run at the root: from `runtime.run(agent, input, options)` to commit `say`.
//
// Owns:      `RunStarter`: options, input, conversation and limits of a run; `checkOwner`; `startInside` for a run that code
//            starts inside a tool, which is a delegation.
// Called by: `Runtime.run`, and through it `spawn`, `agent.generate` and `agent.stream`.
// Must stay true:
//   - Wrong options throw at once; what goes wrong later rejects the result. Options are read before anything is awaited.
//   - A conversation of another owner answers as one that does not exist (I9).
//   - A caller's grant and budget narrow: they are one more layer, frozen with the turn (I1). Only the layers of whoever creates
//     a conversation are frozen with the conversation.

import { agentForRequest } from '../agent/build/asked-agent.ts'
import { withChanges } from '../agent/build/identity.ts'
import { type AgentCore, isAgent } from '../agent/definition/agent.ts'
import { PromptInput } from '../agent/definition/agent-request.ts'
import {
  earlierMessages,
  type InputResult,
  inputContent,
  readAgentInput,
  type ValidInput,
} from '../agent/definition/input.ts'
import type { DayRequest } from '../agent/step/within-day.ts'
import { ConflictError, DefinitionError, DeniedError, InputError, messageOf, NotFoundError } from '../base/error.ts'
import { freshIds, isId } from '../base/id.ts'
import type { Json } from '../base/json.ts'
import { after, attempt } from '../base/maybe.ts'
import { anything, flag, type OptionRules, oneOf, readOptions, record, text } from '../base/options.ts'
import { readTraceparent, withTraceparent } from '../conversation/trace/traceparent.ts'
import { type Budget, checkBudget, codeBudget, type RootBounds, rootBounds } from '../grant/budget.ts'
import { budgetsIn, dayOwnersIn, freezeLayer, stackCeilings } from '../grant/ceiling.ts'
import { checkGrant, type Grant, narrowingLayer } from '../grant/grant.ts'
import { maySee, mayStart, type Principal } from '../grant/principal.ts'
import { newTreePlaces } from '../graph/limits.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Turn } from '../graph/rows.ts'
import type { TurnRequest } from '../rules/turn/open-turn.ts'
import type { Ledger } from '../store/ledger.ts'
import { treeLoaded } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { CurrentCall } from '../tool/current.ts'
import type { Telemetry } from '../tool/telemetry.ts'
import { budgetOf } from './authority.ts'
import type { NodeExecutor } from './execute-node.ts'
import { DayStarts } from './keys/day-starts.ts'
import type { KeyedStarts } from './keys/keyed-starts.ts'
import { checkNames, type KeyedStart, readKeyedStart } from './keys/start-names.ts'
import type { HandleOptions } from './live-runs.ts'
import { notAnAgent, readAttributes, type StartOptions } from './options.ts'
import type { AgentDirectory } from './resolve-agent.ts'

export interface StarterParts {
  readonly ledger: Ledger
  readonly agents: AgentDirectory
  readonly executor: NodeExecutor
  /** The application's, over every run. */
  readonly budget: Budget | undefined
  readonly isStarted: () => boolean
  /** Starts the engine, and loads what runs nodes. */
  readonly begin: () => Promise<void>
  readonly telemetry: Telemetry | null
}

/** A run to start: the caller's options, and the layers of the one on whose behalf it starts. */
export interface StartRequest {
  readonly options: StartOptions
  /** Layers that bind the conversation for good, if this run makes it. Left out: none. */
  readonly creator?: readonly Json[] | undefined
  /**
   * Layers beside the runtime's that bind this turn and everything it starts, and no later turn. Left out: none. Give the same
   * array for the same caller: what is worked out from it is kept by the array.
   */
  readonly caller?: readonly Json[] | undefined
  /** The principal that starts it; left out: the program itself does. */
  readonly by?: Principal | null
}

/** Starts runs at the root: reads what they are started with, and records their first turn. */
export class RunStarter {
  private readonly parts: StarterParts
  private readonly agents: AgentDirectory
  private readonly store: Store
  /** The ceilings of turns by the layers of their callers, so that turns of one caller share theirs. */
  private readonly ceilings: WeakMap<readonly Json[], readonly Json[]> = new WeakMap()
  private keyed: KeyedStarts | undefined
  private readonly days: DayStarts = new DayStarts()
  /** The budgets of runs that no layer binds. */
  private readonly own: Budgets
  /** The bounds of such a run, by its agent. */
  private readonly ownBounds: WeakMap<AgentCore, RootBounds> = new WeakMap()

  constructor(parts: StarterParts) {
    this.parts = parts
    this.agents = parts.agents
    this.store = parts.ledger.store
    this.own = [parts.budget]
  }

  /** Throws at once what is wrong with the options. What goes wrong later rejects `started`. */
  start(
    agent: AgentCore,
    input: unknown,
    { options, creator = NO_LAYERS, caller, by = null }: StartRequest,
  ): HandleOptions {
    if (!isAgent(agent)) throw notAnAgent('run(agent, input)')
    const runner = equipped(agent, input, options)
    const known = this.agents.tell(agent, runner)
    const { clock, scheduler } = this.parts.ledger
    const [freshRun = '', fresh = '', ...nodeIds] = freshIds(clock.now(), 5, scheduler.random)
    const { abortSignal } = options
    const named = readPlace(runner, { options, fresh })
    const { conversationId, isFresh, keyed } = named
    const runId = keyed?.runId ?? freshRun
    const rootId = isFresh ? conversationId : undefined
    const { telemetry } = this.parts
    const isTraced = options.traceparent !== undefined || telemetry !== null
    const traceparent = isTraced ? readTraceparent(options.traceparent, telemetry) : null
    const under = { by, creator, ceiling: withRequest(this.ceilingOf(caller), options), traceparent }
    const begin = () => this.say(runner, input, readStart(options, named, { runId, nodeIds, ...under }))
    const started = attempt(() => after(known, begin)) ?? undefined
    const place = keyed?.place
    return { runId, conversationId, place, rootId, started, abortSignal, isOwn: true, output: runner.output }
  }

  /** The runtime's layers and the caller's. */
  private ceilingOf(caller: readonly Json[] | undefined): readonly Json[] {
    const { ceiling } = this.agents
    if (caller === undefined) return ceiling
    const known = this.ceilings.get(caller) ?? stackCeilings(ceiling, caller)
    this.ceilings.set(caller, known)
    return known
  }

  /** One more turn: recorded, and started when its conversation is idle. At once where nothing has to be waited for. */
  private say(agent: AgentCore, input: unknown, options: SayOptions): void | Promise<void> {
    const read = readAgentInput(agent, input)
    const isReady = this.parts.isStarted() && this.agents.models.hasFor(agent)
    if (read instanceof Promise || !isReady) return this.sayLater(agent, read, options)
    return this.record(agent, read, options)
  }

  private async sayLater(
    agent: AgentCore,
    read: InputResult | Promise<InputResult>,
    options: SayOptions,
  ): Promise<void> {
    const input = await read
    if (input.ok) await this.parts.begin()
    if (input.ok && !this.agents.models.hasFor(agent)) await this.agents.models.find(agent.name)
    await this.record(agent, input, options)
  }

  private record(agent: AgentCore, input: InputResult, options: SayOptions): void | Promise<void> {
    if (!input.ok) throw wrongInput(agent, input)
    return this.recordWithinDay({ agent, input }, options)
  }

  /** Records a run of a principal where its day allows it, and that of everybody above. */
  private recordWithinDay(request: CheckedRequest, options: SayOptions): void | Promise<void> {
    const { by, ceiling, conversationId, isFresh } = options
    if (by === null) return this.recordOnce(request, options)
    const limited = dayOwnersIn(ceiling)
    if (limited.length === 0) return this.recordOnce(request, options)
    return this.days.begin(limited, async () => {
      const place = isFresh ? undefined : await this.store.ownerOf(conversationId)
      await this.requireDay(ceiling, place === undefined ? by.id : place.owner)
      await this.recordOnce(request, options)
    })
  }

  /** Throws where a day's budget among these layers is used up, or nobody owns the conversation. */
  async requireDay(ceiling: readonly Json[], owner: string | null, request?: DayRequest): Promise<void> {
    if (dayOwnersIn(ceiling).length === 0) return
    await this.parts.begin()
    await this.parts.executor.loadedParts().code.requireDay(this.parts.ledger, ceiling, owner, request)
  }

  private recordOnce({ agent, input }: CheckedRequest, options: SayOptions): void | Promise<void> {
    const { keyed } = options
    if (keyed === null) return this.recordNew({ agent, input }, options, options.isFresh)
    const { KeyedStarts, requestHashOf } = this.parts.executor.loadedParts().code
    const requestHash = keyed.runId === null ? null : requestHashOf(keyed, { ...options, input })
    const record = (conversationId: Id, isNew: boolean) =>
      this.recordNew({ agent, input }, { ...options, conversationId, requestHash }, isNew)
    this.keyed ??= new KeyedStarts(this.parts.ledger)
    return this.keyed.begin({ runId: options.runId, start: keyed, requestHash, maySee: sightOf(options.by), record })
  }

  /** A store far away is not asked for the rows of a conversation that is new: it refuses the commit if there are some. */
  private recordNew(request: CheckedRequest, options: SayOptions, isNew: boolean): void | Promise<void> {
    const { conversationId, isFresh } = options
    const fresh = isNew ? this.store.known?.(conversationId, true) : undefined
    if (fresh !== undefined) return this.recordIn(fresh, request, options)
    const rootId = isFresh ? conversationId : this.store.rootOf(conversationId)
    const rows = (tree: TreeReader) => tree.turn(options.runId) ?? tree.conversation(conversationId)
    return after(rootId, (root = conversationId) =>
      after(treeLoaded(this.store, root, rows), (tree) => this.recordIn(tree, request, options)),
    )
  }

  private recordIn(tree: TreeReader, { agent, input }: CheckedRequest, options: SayOptions): void | Promise<void> {
    const { conversationId, runId, creator, owner, title, aborted, keyed } = options
    const { SAYING, planCancel, overtaken } = this.parts.executor.loadedParts().code
    if (keyed !== null && tree.turn(runId) !== undefined) throw overtaken()
    const known = tree.conversation(conversationId)
    if (known !== undefined) checkOwner(known, agent, options)
    else if (options.mustExist) return this.refuseUnknown(conversationId, owner)
    else requireSight(options)
    // A program that starts its own agents trusts itself.
    if (options.by !== null || (known ?? options).owner !== null) this.requireNeeds(agent, known, options)
    const conversation = {
      id: conversationId,
      isNew: known === undefined,
      agent: agent.identity.ref,
      ceiling: creator,
      owner,
      title,
    }
    const rootId = known?.rootId ?? conversationId
    this.agents.bind({ id: runId, rootId }, agent)
    let plans = 0
    const said = this.parts.ledger.commit({
      kind: 'say',
      rootId,
      plan: (draft) => {
        if (keyed !== null && (plans++ > 0 || draft.findTurn(runId) !== undefined)) throw overtaken()
        // Another process may have made the conversation since it was looked for: whose it is counts now.
        const there = options.isFresh ? undefined : draft.findConversation(conversationId)
        if (there !== undefined) checkOwner(there, agent, options)
        if (there !== undefined && known === undefined) this.requireNeeds(agent, there, options)
        const bounds = this.boundsOf(agent, this.budgetsAbove(draft.stored, there, options))
        SAYING[options.whileRunning](draft, conversation, turnRequest({ agent, input }, options, bounds))
        if (aborted !== null) planCancel(draft, runId, { cause: 'cancelled', reason: aborted })
      },
    })
    if (!(said instanceof Promise)) return undefined
    return said.then(
      () => undefined,
      (error: unknown) => {
        this.agents.release(runId)
        throw error
      },
    )
  }

  /** Throws a DefinitionError where whoever starts it has no files that the agent works with, or may not start its programs. */
  private requireNeeds(agent: AgentCore, known: Conversation | undefined, options: SayOptions): void {
    const { requireFiles, requireNoPrograms } = this.parts.executor.loadedParts().code
    const { needs } = this.agents
    const { by, owner, creator, ceiling } = options
    requireFiles(agent, known === undefined ? owner : known.owner, needs)
    if (!this.agents.trusts(by)) requireNoPrograms(agent, stackCeilings(known?.ceiling ?? creator, ceiling), needs)
  }

  private boundsOf(agent: AgentCore, above: Budgets): RootBounds {
    const known = above === this.own ? this.ownBounds.get(agent) : undefined
    if (known !== undefined) return known
    const bounds = rootBounds([agent.reply === null ? agent.budget : codeBudget(agent.budget), ...above])
    if (above === this.own) this.ownBounds.set(agent, bounds)
    return bounds
  }

  /** The budgets of everyone above the agent of a run: the application, the creator of its conversation, its caller. */
  private budgetsAbove(tree: TreeReader, there: Conversation | undefined, options: SayOptions): Budgets {
    const { ceiling, creator } = options
    const bound = there?.ceiling ?? creator
    const isFree = bound.length === 0 && ceiling.length === 0
    const budgets = isFree ? this.own : [this.parts.budget, ...budgetsIn(bound), ...budgetsIn(ceiling)]
    if (there?.parentTurnId == null) return budgets
    // A lane forked from a subagent's is bound as that one was (I1).
    return [...budgets, budgetOf(this.agents.boundsOf(tree, there, ceiling))]
  }

  /** An owner is not told whether a conversation was deleted: it may have been another's. */
  private async refuseUnknown(id: Id, owner: string | null): Promise<never> {
    throw owner === null ? await notFound(this.store, 'conversation', id) : unknownConversation(id)
  }
}

/** Starts a run inside a tool: it is a delegation of the running call. */
export function startInside(call: CurrentCall, agent: AgentCore, { input, options }: InsideRun): HandleOptions {
  checkInside(options)
  const runner = equipped(agent, input, options)
  const child = call.start(runner, input, options)
  return { ...child, abortSignal: options.abortSignal, isOwn: true, output: runner.output }
}

interface InsideRun {
  readonly input: unknown
  readonly options: StartOptions
}

/** A request whose input fits its agent. */
interface CheckedRequest {
  readonly agent: AgentCore
  readonly input: ValidInput
}

interface SayOptions {
  readonly owner: string | null
  /** Null where the program itself starts the run. */
  readonly by: Principal | null
  readonly title: string | null
  /** As the caller gave them; they are in the ceiling too. */
  readonly creator: readonly Json[]
  /** All layers of its turn. */
  readonly ceiling: readonly Json[]
  readonly attributes: Turn['attributes']
  /** The caller's place in a trace. It is no part of the request: a repeated one comes from another place. */
  readonly traceparent: string | null
  /** Decides about a run that is still open in the conversation. */
  readonly whileRunning: 'queue' | 'restart'
  readonly runId: Id
  readonly conversationId: Id
  readonly nodeIds: readonly Id[]
  /** The conversation is made for this run: nobody can know its id yet. */
  readonly isFresh: boolean
  /** The caller named the conversation: it must be there. */
  readonly mustExist: boolean
  /** Why it is cancelled as it is recorded, so that nothing of it begins; null where it is not. */
  readonly aborted: string | null
  /** The texts of its caller that stand for its ids; null where there are none. */
  readonly keyed: KeyedStart | null
  readonly requestHash: string | null
}

type Budgets = readonly (Budget | undefined)[]

/** One more turn of an agent at the root: what it is asked, and what it may use under the budgets of everyone above it. */
function turnRequest(
  { agent, input }: CheckedRequest,
  { runId, nodeIds, attributes, traceparent, aborted, ceiling, requestHash }: SayOptions,
  { limits, money, treeLimit }: RootBounds,
): TurnRequest {
  const { value, said } = input
  const briefing = earlierMessages(input)
  return {
    turnId: runId,
    nodeIds: briefing === null ? nodeIds.slice(1) : nodeIds,
    input: value,
    content: said?.content ?? inputContent(agent.input, input),
    asked: said?.asked,
    briefing,
    limits,
    money,
    tree: newTreePlaces(treeLimit),
    deadline: null,
    mayStart: aborted === null,
    attributes: traceparent === null ? attributes : withTraceparent(attributes, traceparent),
    ceiling,
    requestHash,
  }
}

const OPTIONS: OptionRules<StartOptions> = {
  abortSignal: anything,
  grant: record,
  budget: record,
  tools: anything,
  attributes: anything,
  repair: anything,
  conversationId: text,
  createConversation: flag,
  conversationKey: text,
  whileRunning: oneOf('queue', 'restart'),
  owner: text,
  key: text,
  title: text,
  traceparent: text,
}

/** A conversation is its agent's; one that was delegated is its host's to continue. Another owner's is not there (I9). */
function checkOwner(conversation: Conversation, agent: AgentCore, { owner, by }: Starter): void {
  const {
    id,
    path: [rootAgent = ''],
  } = conversation
  const isHidden = by === null && owner !== null && owner !== conversation.owner
  if (isHidden || !sightOf(by)(conversation.owner, rootAgent)) throw unknownConversation(id)
  if (conversation.type === 'sub_agent') {
    throw new ConflictError('conflict', `The conversation ${id} is a subagent's: only its host can go on with it.`)
  }
  const { name } = conversation.agent
  if (name !== agent.name)
    throw new ConflictError('conflict', `The conversation ${id} is of "${name}", not "${agent.name}".`)
}

/** Who starts a run: an owner, or a principal that may see conversations of others too. */
type Starter = Pick<SayOptions, 'owner' | 'by'>

/** Which trees a starter sees, by owner and agent. The program itself sees all. */
function sightOf(by: Principal | null): (owner: string | null, agent: string) => boolean {
  return (owner, agent) => by === null || (maySee(by, owner) && mayStart(by, agent))
}

/** Nobody begins a conversation that it could neither read nor cancel afterwards. */
function requireSight({ by, owner }: Starter): void {
  if (by === null || maySee(by, owner)) return
  const message = `${by.id} begins no conversation that it cannot see. Let it, and whoever made it, see ${owner} ("sees").`
  throw new DeniedError('denied', message, { details: { sees: owner } })
}

function unknownConversation(id: Id): NotFoundError {
  return new NotFoundError('not_found', `There is no conversation ${id} in this store.`)
}

/** The conversation a run is started in, and whether it must be there: the one that is named, by id or key, or a fresh one. */
function readPlace(agent: AgentCore, { options, fresh }: Placed): NamedPlace {
  const { conversationId, conversationKey, key, owner } = options
  const isNamed = key !== undefined || conversationKey !== undefined
  if (isNamed || owner !== undefined) checkNames(options)
  if (isNamed) return keyedPlace(agent.name, options)
  if (conversationId === undefined) return { conversationId: fresh, isFresh: true, mustExist: false, keyed: null }
  return { conversationId, isFresh: false, mustExist: !mayBeMade(conversationId, options), keyed: null }
}

function keyedPlace(agent: string, options: StartOptions): NamedPlace {
  const { conversationId: named = null, conversationKey = null, key = null, owner = null } = options
  const { grant, budget } = options
  const keyed = readKeyedStart({ owner, agent, key, conversationKey, named, grant, budget })
  const mustExist = named !== null && !mayBeMade(named, options)
  return { conversationId: keyed.place.conversationId, isFresh: false, mustExist, keyed }
}

interface Placed {
  readonly options: StartOptions
  readonly fresh: Id
}

type NamedPlace = Pick<SayOptions, 'conversationId' | 'isFresh' | 'mustExist' | 'keyed'>

/** May the conversation that is named be made where it is not there yet? Its id must be one. */
function mayBeMade(id: Id, { createConversation = false }: StartOptions): boolean {
  if (!createConversation) return false
  if (isId(id)) return true
  const message = `${JSON.stringify(id)} is not an id for a conversation: use a UUID of version 7, or give your own text as conversationKey.`
  throw new InputError('invalid_input', message)
}

/** A delegation is its host's: it has no key, conversation, owner or title of its own to be named. */
function checkInside({ abortSignal, grant, budget, tools, repair, ...options }: StartOptions): void {
  const [key] = Object.entries(options).find(([, value]) => value !== undefined) ?? []
  if (key === undefined) return
  const message = `run(agent, input, { ${key} }): inside a tool this is a delegation of the running call; only abortSignal, grant, budget, tools and repair can be given.`
  throw new DefinitionError('definition', message)
}

/** The agent with what this run is given instead of its own, and as the request wants it that it is asked with. */
function equipped(agent: AgentCore, input: unknown, options: StartOptions): AgentCore {
  // A name that nobody reads would be a restriction, or a conversation, that is not there.
  const { tools, grant, budget, repair } = readOptions('run(agent, input, options)', options, OPTIONS)
  if (grant !== undefined) checkCallerGrant(grant)
  if (budget !== undefined) checkBudget(budget, 'run(agent, input, { budget })')
  checkSignal(options.abortSignal)
  const isAsked = input instanceof PromptInput
  const isChanged = tools !== undefined || (repair !== undefined && !isAsked)
  const own = isChanged && isAgent(agent) ? withChanges(agent, { tools, repair: isAsked ? undefined : repair }) : agent
  return isAsked ? agentForRequest(own, input.prompt, { extensions: input.extensions, repair }) : own
}

/** Adds what the request of one run asks for; the very same ceiling where it asks for nothing. */
function withRequest(ceiling: readonly Json[], { grant, budget }: StartOptions): readonly Json[] {
  if (grant === undefined && budget === undefined) return ceiling
  const layer = narrowingLayer('the caller', grant ?? {})
  return [...ceiling, freezeLayer(budget === undefined ? layer : { ...layer, budget })]
}

const NO_LAYERS: readonly Json[] = []

/** It binds all below the run in the same way: there is nothing of its own to pass on. */
function checkCallerGrant(grant: Grant): void {
  checkGrant(grant, 'run(agent, input, { grant })')
  if (grant.delegate === undefined) return
  const message =
    'run(agent, input, { grant }): it has use, ask, free and deny and binds all below the run: no "delegate".'
  throw new DefinitionError('definition', message)
}

function checkSignal(signal: unknown): void {
  if (signal == null || (typeof signal === 'object' && 'aborted' in signal && 'addEventListener' in signal)) return
  const message = 'run(agent, input, { abortSignal }): give the signal of an AbortController, controller.signal.'
  throw new DefinitionError('definition', message)
}

/** The options of a start besides its input, read before anything is awaited. */
function readStart(
  options: StartOptions,
  { conversationId, isFresh, mustExist, keyed }: NamedPlace,
  { runId, nodeIds, by, creator, ceiling, traceparent }: StartParts,
): SayOptions {
  const { owner = null, title = null, whileRunning = 'queue', abortSignal } = options
  const attributes = options.attributes === undefined ? null : readAttributes(options.attributes)
  const aborted = abortSignal?.aborted === true ? messageOf(abortSignal.reason) : null
  // One literal: spread into one another, objects are slower to make and to read.
  return {
    runId,
    conversationId,
    nodeIds,
    isFresh,
    mustExist,
    owner,
    by,
    title,
    creator,
    ceiling,
    attributes,
    traceparent,
    whileRunning,
    aborted,
    keyed,
    requestHash: null,
  }
}

type StartParts = Pick<SayOptions, 'runId' | 'nodeIds' | 'by' | 'creator' | 'ceiling' | 'traceparent'>

function wrongInput(agent: AgentCore, { error, issues }: Extract<InputResult, { ok: false }>): InputError {
  return new InputError('invalid_input', `The input of "${agent.name}" is wrong. ${error}`, { details: { issues } })
}
