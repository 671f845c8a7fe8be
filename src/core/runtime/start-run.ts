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
import { after, attempt, type Later } from '../base/maybe.ts'
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
import type { NewConversation } from '../rules/turn/say.ts'
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

/**
 * Starts runs at the root. A start goes the same way each time: `read` makes a `NewRun` of what the caller gave, `say` checks the
 * input, `record` finds the rows of the conversation, and `commit` writes the first turn. Mostly none of them waits.
 */
export class RunStarter {
  private readonly parts: StarterParts
  private readonly agents: AgentDirectory
  private readonly store: Store
  /** The ceilings of turns by the layers of their callers, so that turns of one caller share theirs. */
  private readonly ceilings: WeakMap<readonly Json[], readonly Json[]> = new WeakMap()
  private keyed: KeyedStarts | undefined
  private readonly days: DayStarts = new DayStarts()
  /** The bounds of a run that no layer binds, by its agent. */
  private readonly freeBounds: WeakMap<AgentCore, RootBounds> = new WeakMap()

  constructor(parts: StarterParts) {
    this.parts = parts
    this.agents = parts.agents
    this.store = parts.ledger.store
  }

  /** Throws at once what is wrong with the options. What goes wrong later rejects `started`. */
  start(agent: AgentCore, input: unknown, request: StartRequest): HandleOptions {
    if (!isAgent(agent)) throw notAnAgent('run(agent, input)')
    const { options } = request
    const runner = equipped(agent, input, options)
    const known = this.agents.tell(agent, runner)
    const run = this.read(runner, request)
    const begin = () => this.say(options.attributes === undefined ? run : withAttributes(run, options), input)
    const started = attempt(() => after(known, begin)) ?? undefined
    const { runId, conversationId, isFresh, keyed } = run
    return {
      runId,
      conversationId,
      place: keyed?.place,
      rootId: isFresh ? conversationId : undefined,
      started,
      abortSignal: options.abortSignal,
      isOwn: true,
      output: runner.output,
    }
  }

  /** Reads the options before anything is awaited. Wrong attributes reject the result. */
  private read(agent: AgentCore, { options, creator = NO_LAYERS, caller, by = null }: StartRequest): NewRun {
    const { ledger, telemetry } = this.parts
    const { owner = null, title = null, whileRunning = 'queue', abortSignal, traceparent } = options
    const [freshRun = '', fresh = '', ...nodeIds] = freshIds(ledger.clock.now(), 5, ledger.scheduler.random)
    const { conversationId, isFresh, mustExist, keyed } = readPlace(agent, options, fresh)
    const isTraced = traceparent !== undefined || telemetry !== null
    // One literal: spread into one another, objects are slower to make and to read.
    return {
      agent,
      runId: keyed?.runId ?? freshRun,
      conversationId,
      nodeIds,
      isFresh,
      mustExist,
      keyed,
      requestHash: null,
      owner,
      by,
      creator,
      ceiling: this.ceilingOf(caller, options),
      title,
      whileRunning,
      attributes: null,
      traceparent: isTraced ? readTraceparent(traceparent, telemetry) : null,
      aborted: abortSignal?.aborted === true ? messageOf(abortSignal.reason) : null,
    }
  }

  /** The runtime's layers, the caller's, and one for what the request asks: the very same array where nobody adds to it. */
  private ceilingOf(caller: readonly Json[] | undefined, { grant, budget }: StartOptions): readonly Json[] {
    let { ceiling } = this.agents
    if (caller !== undefined) {
      const stacked = this.ceilings.get(caller) ?? stackCeilings(ceiling, caller)
      this.ceilings.set(caller, stacked)
      ceiling = stacked
    }
    if (grant === undefined && budget === undefined) return ceiling
    const layer = narrowingLayer('the caller', grant ?? {})
    return [...ceiling, freezeLayer(budget === undefined ? layer : { ...layer, budget })]
  }

  private say(run: NewRun, given: unknown): Later<void> {
    const read = readAgentInput(run.agent, given)
    const hasModel = run.agent.model !== null || this.agents.models.hasFor(run.agent)
    const isReady = this.parts.isStarted() && hasModel
    if (read instanceof Promise || !isReady) return this.sayLater(run, read)
    return this.record(run, validInput(run.agent, read))
  }

  /** Waits for the input, the engine, and a model for an agent that names none. */
  private async sayLater(run: NewRun, read: Later<InputResult>): Promise<void> {
    const input = validInput(run.agent, await read)
    await this.parts.begin()
    const { models } = this.agents
    if (!models.hasFor(run.agent)) await models.find(run.agent.name)
    await this.record(run, input)
  }

  /** Records a run of a principal where its day allows it, and that of everybody above. */
  private record(run: NewRun, input: ValidInput): Later<void> {
    const limited = run.by === null ? NOBODY : dayOwnersIn(run.ceiling)
    if (limited.length === 0) return this.recordOnce(run, input)
    return this.days.begin(limited, async () => {
      const place = run.isFresh ? undefined : await this.store.ownerOf(run.conversationId)
      await this.requireDay(run.ceiling, place === undefined ? run.owner : place.owner)
      await this.recordOnce(run, input)
    })
  }

  /** Throws where a day's budget among these layers is used up, or nobody owns the conversation. */
  async requireDay(ceiling: readonly Json[], owner: string | null, request?: DayRequest): Promise<void> {
    if (dayOwnersIn(ceiling).length === 0) return
    await this.parts.begin()
    await this.parts.executor.loadedParts().code.requireDay(this.parts.ledger, ceiling, owner, request)
  }

  /** Finds the run of a key where it was recorded before. */
  private recordOnce(run: NewRun, input: ValidInput): Later<void> {
    const { keyed, runId } = run
    if (keyed === null) return this.recordIn(run, input, run.isFresh)
    const { KeyedStarts, requestHashOf } = this.parts.executor.loadedParts().code
    const requestHash = keyed.runId === null ? null : requestHashOf(keyed, { ...run, input })
    const record = (conversationId: Id, isNew: boolean) =>
      this.recordIn({ ...run, conversationId, requestHash }, input, isNew)
    this.keyed ??= new KeyedStarts(this.parts.ledger)
    return this.keyed.begin({ runId, start: keyed, requestHash, maySee: sightOf(run.by), record })
  }

  /** A store far away is not asked for the rows of a conversation that is new: it refuses the commit if there are some. */
  private recordIn(run: NewRun, input: ValidInput, isNew: boolean): Later<void> {
    const { runId, conversationId, isFresh } = run
    const { store } = this
    const fresh = isNew ? store.known?.(conversationId, true) : undefined
    if (fresh !== undefined) return this.commit(fresh, run, input)
    const rows = (tree: TreeReader) => tree.turn(runId) ?? tree.conversation(conversationId)
    const tree = isFresh
      ? treeLoaded(store, conversationId, rows)
      : after(store.rootOf(conversationId), (root = conversationId) => treeLoaded(store, root, rows))
    return after(tree, (loaded) => this.commit(loaded, run, input))
  }

  private commit(tree: TreeReader, run: NewRun, input: ValidInput): Later<void> {
    const { agent, runId, conversationId } = run
    const { code } = this.parts.executor.loadedParts()
    if (run.keyed !== null && tree.turn(runId) !== undefined) throw code.overtaken()
    const known = tree.conversation(conversationId)
    if (known === undefined && run.mustExist) return this.refuseUnknown(conversationId, run.owner)
    if (known !== undefined) checkOwner(known, run)
    else if (run.by !== null) requireSight(run.by, run.owner)
    // A program that starts its own agents trusts itself.
    if (run.by !== null || (known ?? run).owner !== null) this.requireNeeds(run, known)
    const rootId = known?.rootId ?? conversationId
    this.agents.bind({ id: runId, rootId }, agent)
    let plans = 0
    const said = this.parts.ledger.commit({
      kind: 'say',
      rootId,
      plan: (draft) => {
        if (run.keyed !== null && (plans++ > 0 || draft.findTurn(runId) !== undefined)) throw code.overtaken()
        // Another process may have made the conversation since it was looked for: whose it is counts now.
        const there = run.isFresh ? undefined : draft.findConversation(conversationId)
        if (there !== undefined) checkOwner(there, run)
        if (there !== undefined && known === undefined) this.requireNeeds(run, there)
        const conversation = newConversation(run, known === undefined)
        const request = turnRequest(run, input, this.boundsOf(run, draft.stored, there))
        code.SAYING[run.whileRunning](draft, conversation, request)
        if (run.aborted !== null) code.planCancel(draft, runId, { cause: 'cancelled', reason: run.aborted })
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
  private requireNeeds({ agent, by, owner, creator, ceiling }: NewRun, known: Conversation | undefined): void {
    const { requireFiles, requireNoPrograms } = this.parts.executor.loadedParts().code
    const { needs } = this.agents
    requireFiles(agent, known === undefined ? owner : known.owner, needs)
    if (!this.agents.trusts(by)) requireNoPrograms(agent, stackCeilings(known?.ceiling ?? creator, ceiling), needs)
  }

  /** The amounts that a run may use under the budgets of everyone above its agent: the application, the creator of its conversation, its caller. */
  private boundsOf({ agent, creator, ceiling }: NewRun, tree: TreeReader, there: Conversation | undefined): RootBounds {
    const bound = there?.ceiling ?? creator
    const isOfSubagent = there !== undefined && there.parentTurnId !== null
    const isFree = bound.length === 0 && ceiling.length === 0 && !isOfSubagent
    const known = isFree ? this.freeBounds.get(agent) : undefined
    if (known !== undefined) return known
    const bounds = rootBounds([
      agent.reply === null ? agent.budget : codeBudget(agent.budget),
      this.parts.budget,
      ...budgetsIn(bound),
      ...budgetsIn(ceiling),
      // A lane forked from a subagent's is bound as that one was (I1).
      ...(isOfSubagent ? [budgetOf(this.agents.boundsOf(tree, there, ceiling))] : []),
    ])
    if (isFree) this.freeBounds.set(agent, bounds)
    return bounds
  }

  /** An owner is not told whether a conversation was deleted: it may have been another's. */
  private async refuseUnknown(id: Id, owner: string | null): Promise<never> {
    throw owner === null ? await notFound(this.store, 'conversation', id) : unknownConversation(id)
  }
}

/** Starts a run inside a tool: it is a delegation of the running call. */
export function startInside(call: CurrentCall, agent: AgentCore, input: unknown, options: StartOptions): HandleOptions {
  checkInside(options)
  const runner = equipped(agent, input, options)
  const child = call.start(runner, input, options)
  return { ...child, abortSignal: options.abortSignal, isOwn: true, output: runner.output }
}

/** A run that is to be recorded: everything that its caller asked for but the input. */
interface NewRun {
  readonly agent: AgentCore
  readonly runId: Id
  readonly conversationId: Id
  readonly nodeIds: readonly Id[]
  /** The conversation is made for this run: nobody can know its id yet. */
  readonly isFresh: boolean
  /** The caller named the conversation: it must be there. */
  readonly mustExist: boolean
  /** The texts of its caller that stand for its ids; null where there are none. */
  readonly keyed: KeyedStart | null
  readonly requestHash: string | null
  readonly owner: string | null
  /** Null where the program itself starts the run. */
  readonly by: Principal | null
  /** As the caller gave them; they are in the ceiling too. */
  readonly creator: readonly Json[]
  /** All layers of its turn. */
  readonly ceiling: readonly Json[]
  readonly title: string | null
  /** Decides about a run that is still open in the conversation. */
  readonly whileRunning: 'queue' | 'restart'
  readonly attributes: Turn['attributes']
  /** The caller's place in a trace. It is no part of the request: a repeated one comes from another place. */
  readonly traceparent: string | null
  /** Why it is cancelled as it is recorded, so that nothing of it begins; null where it is not. */
  readonly aborted: string | null
}

function withAttributes(run: NewRun, { attributes }: StartOptions): NewRun {
  return { ...run, attributes: readAttributes(attributes) }
}

function newConversation({ conversationId, agent, creator, owner, title }: NewRun, isNew: boolean): NewConversation {
  return { id: conversationId, isNew, agent: agent.identity.ref, ceiling: creator, owner, title }
}

/** One more turn of an agent at the root: what it is asked, and what it may use. */
function turnRequest(run: NewRun, input: ValidInput, { limits, money, treeLimit }: RootBounds): TurnRequest {
  const { attributes, traceparent } = run
  const { value, said } = input
  const briefing = earlierMessages(input)
  return {
    turnId: run.runId,
    nodeIds: briefing === null ? run.nodeIds.slice(1) : run.nodeIds,
    input: value,
    content: said?.content ?? inputContent(run.agent.input, input),
    asked: said?.asked,
    briefing,
    limits,
    money,
    tree: newTreePlaces(treeLimit),
    deadline: null,
    mayStart: run.aborted === null,
    attributes: traceparent === null ? attributes : withTraceparent(attributes, traceparent),
    ceiling: run.ceiling,
    requestHash: run.requestHash,
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
function checkOwner(conversation: Conversation, { agent, owner, by }: NewRun): void {
  const { id, path } = conversation
  const isHidden = by === null && owner !== null && owner !== conversation.owner
  if (isHidden || !sightOf(by)(conversation.owner, path[0] ?? '')) throw unknownConversation(id)
  if (conversation.type === 'sub_agent') {
    throw new ConflictError('conflict', `The conversation ${id} is a subagent's: only its host can go on with it.`)
  }
  const { name } = conversation.agent
  if (name !== agent.name)
    throw new ConflictError('conflict', `The conversation ${id} is of "${name}", not "${agent.name}".`)
}

/** Which trees whoever starts a run sees, by owner and agent. The program itself sees all. */
function sightOf(by: Principal | null): (owner: string | null, agent: string) => boolean {
  return (owner, agent) => by === null || (maySee(by, owner) && mayStart(by, agent))
}

/** Nobody begins a conversation that it could neither read nor cancel afterwards. */
function requireSight(by: Principal, owner: string | null): void {
  if (maySee(by, owner)) return
  const message = `${by.id} begins no conversation that it cannot see. Let it, and whoever made it, see ${owner} ("sees").`
  throw new DeniedError('denied', message, { details: { sees: owner } })
}

function unknownConversation(id: Id): NotFoundError {
  return new NotFoundError('not_found', `There is no conversation ${id} in this store.`)
}

/** The conversation a run is started in, and whether it must be there: the one that is named, by id or key, or a fresh one. */
function readPlace(agent: AgentCore, options: StartOptions, fresh: Id): NamedPlace {
  const { conversationId, conversationKey, key, owner } = options
  const isNamed = key !== undefined || conversationKey !== undefined
  if (isNamed || owner !== undefined) checkNames(options)
  if (isNamed) return keyedPlace(agent.name, options)
  if (conversationId === undefined) return { conversationId: fresh, isFresh: true, mustExist: false, keyed: null }
  return { conversationId, isFresh: false, mustExist: !mayBeMade(conversationId, options), keyed: null }
}

type NamedPlace = Pick<NewRun, 'conversationId' | 'isFresh' | 'mustExist' | 'keyed'>

function keyedPlace(agent: string, options: StartOptions): NamedPlace {
  const { conversationId: named = null, conversationKey = null, key = null, owner = null } = options
  const { grant, budget } = options
  const keyed = readKeyedStart({ owner, agent, key, conversationKey, named, grant, budget })
  const mustExist = named !== null && !mayBeMade(named, options)
  return { conversationId: keyed.place.conversationId, isFresh: false, mustExist, keyed }
}

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

const NO_LAYERS: readonly Json[] = []
const NOBODY: readonly string[] = []

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

function validInput(agent: AgentCore, read: InputResult): ValidInput {
  if (read.ok) return read
  const { error, issues } = read
  throw new InputError('invalid_input', `The input of "${agent.name}" is wrong. ${error}`, { details: { issues } })
}
