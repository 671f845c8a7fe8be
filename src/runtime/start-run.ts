// The start of a run at the root: from `runtime.run(agent, input, options)` to commit `say`.
//
// Owns:      `RunStarter`: options, input, conversation and limits of a run; `checkOwner`; `startInside` for a run that code
//            starts inside a tool, which is a delegation.
// Called by: `Runtime.run`, and through it `spawn`, `agent.generate` and `agent.stream`.
// Must stay true:
//   - Wrong options throw at once; what goes wrong later rejects the result. Options are read before anything is awaited.
//   - A conversation of another owner answers as one that does not exist (I9).
//   - A caller's grant and budget narrow: they are one more layer, frozen with the conversation (I1).

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
import { onAbort } from '../base/abort.ts'
import { ConflictError, DefinitionError, InputError, messageOf, NotFoundError } from '../base/error.ts'
import { foreignId, freshIds, isId } from '../base/id.ts'
import { type Json, toJson } from '../base/json.ts'
import { after, attempt } from '../base/maybe.ts'
import { anything, flag, type OptionRules, oneOf, readOptions, record, text } from '../base/options.ts'
import type { Run } from '../conversation/run.ts'
import { type Budget, checkBudget, limitsOf, moneyOf, treeLimitOf } from '../grant/budget.ts'
import { freezeLayer } from '../grant/ceiling.ts'
import { checkGrant, type Grant, narrowingLayer } from '../grant/grant.ts'
import { newTreePlaces } from '../graph/limits.ts'
import type { Outcome } from '../graph/outcome.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Turn } from '../graph/rows.ts'
import type { TurnBounds, TurnRequest } from '../rules/turn/open-turn.ts'
import type { Ledger } from '../store/ledger.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { CurrentCall } from '../tool/current.ts'
import { budgetOf } from './authority.ts'
import type { NodeExecutor } from './execute-node.ts'
import { checkIsAgent, type StartOptions } from './options.ts'
import type { AgentDirectory } from './resolve-agent.ts'

export interface StarterParts {
  readonly ledger: Ledger
  readonly agents: AgentDirectory
  readonly executor: NodeExecutor
  /** The application's, over every run. */
  readonly budget: Budget | undefined
  /** The layers that bind a run in whichever process goes on with it. */
  readonly ceiling: readonly Json[]
  readonly isStarted: () => boolean
  /** Starts the engine, and loads what runs nodes. */
  readonly begin: () => Promise<void>
}

/** Starts runs at the root: reads what they are started with, and records their first turn. */
export class RunStarter {
  private readonly parts: StarterParts
  private readonly agents: AgentDirectory
  private readonly store: Store

  constructor(parts: StarterParts) {
    this.parts = parts
    this.agents = parts.agents
    this.store = parts.ledger.store
  }

  /** Throws at once what is wrong with the options. What goes wrong later rejects `started`. */
  start(agent: AgentCore, input: unknown, options: StartOptions): HandleOptions {
    checkIsAgent(agent, 'run(agent, input)')
    const runner = equipped(agent, input, options)
    const known = this.agents.know(runner)
    const { clock, scheduler } = this.parts.ledger
    const [runId = '', fresh = '', ...nodeIds] = freshIds(clock.now(), 5, scheduler.random)
    const { abortSignal } = options
    const place = readPlace(runner, { options, fresh })
    const { conversationId, isFresh } = place
    const rootId = isFresh ? conversationId : undefined
    const begin = () => this.say(runner, input, readStart(options, { runId, ...place, nodeIds }))
    const started = attempt(() => after(known, begin)) ?? undefined
    return { runId, conversationId, rootId, started, abortSignal, isOwn: true, output: runner.output }
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
    if (input.ok && !this.agents.models.hasFor(agent)) await this.findModel(agent)
    await this.record(agent, input, options)
  }

  private async findModel({ name }: AgentCore): Promise<void> {
    try {
      await this.agents.models.find()
    } catch (error) {
      const message = `"${name}" has no model: name one in agent({ model }), or one for all in createRuntime({ model }); on the command line --model. ${messageOf(error)}`
      throw new DefinitionError('definition', message)
    }
  }

  private record(agent: AgentCore, input: InputResult, options: SayOptions): void | Promise<void> {
    if (!input.ok) throw wrongInput(agent, input)
    const { conversationId, isFresh } = options
    const rootId = isFresh ? conversationId : this.store.rootOf(conversationId)
    return after(rootId, (root = conversationId) =>
      after(this.store.tree(root), (tree) => this.recordIn(tree, { agent, input }, options)),
    )
  }

  private recordIn(tree: TreeReader, { agent, input }: CheckedRequest, options: SayOptions): void | Promise<void> {
    const { conversationId, runId, nodeIds, attributes, owner, title, aborted } = options
    const known = tree.conversation(conversationId)
    if (known !== undefined) checkOwner(known, agent, owner)
    else if (options.mustExist) return this.refuseUnknown(conversationId, owner)
    const conversation = {
      id: conversationId,
      isNew: known === undefined,
      agent: agent.identity.ref,
      ceiling: withCaller(this.parts.ceiling, options),
      owner,
      title,
    }
    const lane = known?.parentTurnId == null ? undefined : this.agents.boundsOf(tree, known)
    const budgets = [this.parts.budget, options.budget]
    const request = turnRequest(agent, input, { runId, nodeIds, attributes, aborted, budgets, lane })
    const rootId = known?.rootId ?? conversationId
    this.agents.bind({ id: runId, rootId }, agent)
    const { SAYING, planCancel } = this.parts.executor.loadedParts().code
    const said = this.parts.ledger.commit({
      kind: 'say',
      rootId,
      plan: (draft) => {
        // Another process may have made the conversation since it was looked for: whose it is counts now.
        const there = options.isFresh ? undefined : draft.findConversation(conversationId)
        if (there !== undefined) checkOwner(there, agent, owner)
        SAYING[options.whileRunning](draft, conversation, request)
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

/** Whoever started it has had enough when this aborts. */
export function cancelOnAbort(run: Pick<Run, 'cancel' | 'result'>, signal: AbortSignal): void {
  const remove = onAbort(signal, () => {
    run.cancel(messageOf(signal.reason)).catch(() => undefined)
  })
  run.result.then(remove, remove)
}

/** A request whose input fits its agent. */
interface CheckedRequest {
  readonly agent: AgentCore
  readonly input: ValidInput
}

interface SayOptions {
  readonly owner: string | null
  readonly title: string | null
  readonly grant: Grant | undefined
  readonly budget: Budget | undefined
  readonly attributes: Turn['attributes']
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
}

export interface HandleOptions {
  readonly runId: Id
  readonly conversationId: Id
  /** The root of its tree, where that is known before the run is recorded. */
  readonly rootId?: Id | undefined
  readonly started: undefined | Promise<unknown>
  /** Where somebody else waits for it already. */
  readonly outcome?: Promise<Outcome>
  readonly abortSignal?: AbortSignal | undefined
  readonly isOwn: boolean
  /** The output schema of its agent: see `RunHandleOptions`. */
  readonly output: AgentCore['output'] | undefined
}

interface TurnOptions extends Pick<SayOptions, 'runId' | 'nodeIds' | 'attributes' | 'aborted'> {
  /** The application's, and the caller's. */
  readonly budgets: readonly (Budget | undefined)[]
  /** The layers of its lane: a lane forked from a subagent's is bound as that one was (I1). */
  readonly lane: TurnBounds | undefined
}

/** One more turn of an agent at the root: what it is asked, and what it may use. */
function turnRequest(
  agent: AgentCore,
  input: ValidInput,
  { runId, nodeIds, attributes, budgets: given, lane, aborted }: TurnOptions,
): TurnRequest {
  const { value, said } = input
  const briefing = earlierMessages(input)
  const budgets = [agent.budget, ...given, lane === undefined ? undefined : budgetOf(lane)]
  return {
    turnId: runId,
    nodeIds: briefing === null ? nodeIds.slice(1) : nodeIds,
    input: value,
    content: said?.content ?? inputContent(agent.input, input),
    asked: said?.asked,
    briefing,
    limits: limitsOf(budgets),
    money: moneyOf(budgets),
    tree: newTreePlaces(treeLimitOf(budgets)),
    deadline: null,
    mayStart: aborted === null,
    attributes,
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
  title: text,
}

/** A conversation is its agent's; one that was delegated is its host's to continue. Another owner's is not there (I9). */
function checkOwner(conversation: Conversation, agent: AgentCore, owner: string | null): void {
  const { id } = conversation
  if (owner !== null && owner !== conversation.owner) throw unknownConversation(id)
  if (conversation.type === 'sub_agent') {
    throw new ConflictError('conflict', `The conversation ${id} is a subagent's: only its host can go on with it.`)
  }
  const { name } = conversation.agent
  if (name !== agent.name)
    throw new ConflictError('conflict', `The conversation ${id} is of "${name}", not "${agent.name}".`)
}

function unknownConversation(id: Id): NotFoundError {
  return new NotFoundError('not_found', `There is no conversation ${id} in this store.`)
}

/** The conversation a run is started in, and whether it must be there: the one that is named, by id or key, or a fresh one. */
function readPlace(agent: AgentCore, { options, fresh }: Placed): NamedPlace {
  const { conversationId, conversationKey, owner } = options
  checkWho(options)
  if (conversationKey !== undefined) {
    const id = conversationIdFor(agent, conversationKey, owner === undefined ? {} : { owner })
    return { conversationId: id, isFresh: false, mustExist: false }
  }
  if (conversationId === undefined) return { conversationId: fresh, isFresh: true, mustExist: false }
  return { conversationId, isFresh: false, mustExist: !mayBeMade(conversationId, options) }
}

interface Placed {
  readonly options: StartOptions
  readonly fresh: Id
}

type NamedPlace = Pick<SayOptions, 'conversationId' | 'isFresh' | 'mustExist'>

/**
 * The id of the conversation that `run(agent, input, { conversationKey, owner })` goes on with. It is there once such a run
 * was started.
 */
export function conversationIdFor(
  { name }: Pick<AgentCore, 'name'>,
  key: string,
  options: Pick<StartOptions, 'owner'> = {},
): Id {
  const { owner } = readOptions('conversationIdFor(agent, key, options)', options, { owner: text })
  if (!isName(key)) refuse('conversationKey', 'a text that is not empty')
  return foreignId({ owner: owner ?? null, surface: 'conversation', agent: name, key })
}

/** Words that name nobody would be everybody's. */
function checkWho({ conversationId, conversationKey, owner }: StartOptions): void {
  if (owner !== undefined && !isName(owner)) refuse('owner', 'a text that is not empty')
  if (conversationKey === undefined) return
  if (!isName(conversationKey)) refuse('conversationKey', 'a text that is not empty')
  if (conversationId !== undefined) refuse('conversationKey', 'given without a conversationId')
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== ''
}

function refuse(option: string, wanted: string): never {
  throw new DefinitionError('definition', `run(agent, input, { ${option} }): it must be ${wanted}.`)
}

/** May the conversation that is named be made where it is not there yet? Its id must be one. */
function mayBeMade(id: Id, { createConversation = false }: StartOptions): boolean {
  if (!createConversation) return false
  if (isId(id)) return true
  const message = `${JSON.stringify(id)} is no id for a conversation: use a UUID of version 7, or give your own text as conversationKey.`
  throw new InputError('invalid_input', message)
}

/** A delegation is its host's: it has no conversation, owner or title of its own to be named. */
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

/** The ceiling and what the caller of one run binds it by; the very same ceiling where the caller says nothing. */
function withCaller(
  ceiling: readonly Json[],
  { grant, budget }: Pick<SayOptions, 'grant' | 'budget'>,
): readonly Json[] {
  if (grant === undefined && budget === undefined) return ceiling
  const layer = narrowingLayer('the caller', grant ?? {})
  return [...ceiling, freezeLayer(budget === undefined ? layer : { ...layer, budget })]
}

/** It binds all below the run in the same way: there is nothing of its own to pass on. */
function checkCallerGrant(grant: Grant): void {
  checkGrant(grant, 'run(agent, input, { grant })')
  if (grant.delegate === undefined) return
  const message = 'run(agent, input, { grant }): it has use, ask and deny and binds all below the run: no "delegate".'
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
  { runId, conversationId, nodeIds, isFresh, mustExist }: StartIds,
): SayOptions {
  const { owner = null, title = null, grant, budget, whileRunning = 'queue', abortSignal } = options
  const attributes = readAttributes(options.attributes)
  const aborted = abortSignal?.aborted === true ? messageOf(abortSignal.reason) : null
  // One literal: spread into one another, objects are slower to make and to read.
  return {
    runId,
    conversationId,
    nodeIds,
    isFresh,
    mustExist,
    owner,
    title,
    grant,
    budget,
    attributes,
    whileRunning,
    aborted,
  }
}

type StartIds = Pick<SayOptions, 'runId' | 'nodeIds'> & NamedPlace

/** A copy, so that nobody changes what was said. */
function readAttributes(attributes: unknown): { readonly [name: string]: Json } | null {
  if (attributes === undefined) return null
  const json = toJson(attributes)
  const where = 'run(agent, input, { attributes })'
  if (!json.ok) throw new InputError('invalid_input', `${where}: they are not JSON. ${json.error}`)
  const { value } = json
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new InputError('invalid_input', `${where}: they are an object, such as { tenant: 'acme' }.`)
}

function wrongInput(agent: AgentCore, { error, issues }: Extract<InputResult, { ok: false }>): InputError {
  return new InputError('invalid_input', `The input of "${agent.name}" is wrong. ${error}`, { details: { issues } })
}
