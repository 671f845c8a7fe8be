import { agentForRequest } from '../agent/build/asked-agent.ts'
import { withChanges } from '../agent/build/identity.ts'
import { type AgentCore, isAgent } from '../agent/definition/agent.ts'
import { PromptInput } from '../agent/definition/agent-request.ts'
import { earlierMessages, type InputResult, inputContent, type ValidInput } from '../agent/definition/input.ts'
import { onAbort } from '../base/abort.ts'
import { ConflictError, DefinitionError, InputError, messageOf, NotFoundError } from '../base/error.ts'
import { foreignId, isId } from '../base/id.ts'
import { type Json, toJson } from '../base/json.ts'
import { anything, flag, type OptionRules, oneOf, readOptions, record, text } from '../base/options.ts'
import type { Run } from '../conversation/run.ts'
import { type Budget, checkBudget, limitsOf, moneyOf, treeLimitOf } from '../grant/budget.ts'
import { freezeLayer } from '../grant/ceiling.ts'
import { checkGrant, type Grant, narrowingLayer } from '../grant/grant.ts'
import { newTreePlaces } from '../graph/kinds.ts'
import type { Outcome } from '../graph/outcome.ts'
import type { Reader } from '../graph/reader.ts'
import type { Id, Turn } from '../graph/rows.ts'
import type { Reply } from '../rules/delegation/question.ts'
import type { ApprovalAnswer } from '../rules/turn/approve.ts'
import type { TurnBounds, TurnRequest } from '../rules/turn/open-turn.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { budgetOf } from './authority.ts'
import type { AnswerWord, ApprovalWord, StartOptions } from './options.ts'

/** Whoever started it has had enough when this aborts. */
export function cancelOnAbort(run: Pick<Run, 'cancel' | 'result'>, signal: AbortSignal): void {
  const remove = onAbort(signal, () => {
    run.cancel(messageOf(signal.reason)).catch(() => undefined)
  })
  run.result.then(remove, remove)
}

export interface SayOptions {
  readonly owner: string | null
  readonly title: string | null
  readonly grant: Grant | undefined
  readonly budget: Budget | undefined
  readonly attributes: Turn['attributes']
  /** What becomes of a run that is going on in the conversation. */
  readonly whileRunning: 'queue' | 'restart'
  readonly runId: Id
  readonly conversationId: Id
  readonly nodeIds: readonly Id[]
  /** The caller named the conversation: it must be there. */
  readonly isKnown: boolean
  /** Why it is cancelled as it is recorded, so that nothing of it begins; null where it is not. */
  readonly aborted: string | null
}

export interface HandleOptions {
  readonly runId: Id
  readonly conversationId: Id
  readonly started: undefined | Promise<unknown>
  /** Where somebody else waits for it already. */
  readonly outcome?: Promise<Outcome>
  readonly abortSignal?: AbortSignal | undefined
  readonly isOwn: boolean
  /** Where it is known before the run is recorded. */
  readonly agent?: AgentCore
}

interface TurnOptions extends Pick<SayOptions, 'runId' | 'nodeIds' | 'attributes' | 'aborted'> {
  /** The application's, and the caller's. */
  readonly budgets: readonly (Budget | undefined)[]
  /** What binds its lane: one that was forked from a subagent's is bound as that was (I1). */
  readonly lane: TurnBounds | undefined
}

/** One more turn of an agent at the root: what it is asked, and what it may use. */
export function turnRequest(
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
export function checkOwner(
  store: Store,
  id: Id,
  { agent, owner }: { readonly agent: AgentCore; readonly owner: string | null },
): void {
  const conversation = store.conversation(id)
  if (conversation === undefined && owner === null) throw notFound(store, 'conversation', id)
  if (conversation === undefined || (owner !== null && owner !== conversation.owner)) {
    throw new NotFoundError('not_found', `There is no conversation ${id} in this store.`)
  }
  if (conversation.type === 'sub_agent') {
    throw new ConflictError('conflict', `The conversation ${id} is a subagent's: only its host can go on with it.`)
  }
  const { name } = conversation.agent
  if (name !== agent.name)
    throw new ConflictError('conflict', `The conversation ${id} is of "${name}", not "${agent.name}".`)
}

/** The conversation a run is started in, and whether it must be there: the one that is named, by id or key, or a fresh one. */
export function readPlace(store: Store, agent: AgentCore, { options, fresh }: Placed): Place {
  const { conversationId, conversationKey, owner } = options
  checkWho(options)
  if (conversationKey !== undefined) {
    const id = conversationIdFor(agent, conversationKey, owner === undefined ? {} : { owner })
    return { conversationId: id, isKnown: store.conversation(id) !== undefined }
  }
  if (conversationId === undefined) return { conversationId: fresh, isKnown: false }
  return { conversationId, isKnown: !isToBeMade(store, options) }
}

interface Placed {
  readonly options: StartOptions
  readonly fresh: Id
}

type Place = Pick<SayOptions, 'conversationId' | 'isKnown'>

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

/** Is the conversation that is named not there yet, and to be made? Its id must be one. */
function isToBeMade(reader: Pick<Reader, 'conversation'>, options: StartOptions): boolean {
  const { conversationId: id = '', createConversation = false } = options
  if (!createConversation || reader.conversation(id) !== undefined) return false
  if (isId(id)) return true
  const message = `${JSON.stringify(id)} is no id for a conversation: use a UUID of version 7, or give your own text as conversationKey.`
  throw new InputError('invalid_input', message)
}

/** A delegation is its host's: it has no conversation, owner or title of its own to be named. */
export function checkInside({ abortSignal, grant, budget, tools, repair, ...options }: StartOptions): void {
  const [key] = Object.entries(options).find(([, value]) => value !== undefined) ?? []
  if (key === undefined) return
  const message = `run(agent, input, { ${key} }): inside a tool this is a delegation of the running call; only abortSignal, grant, budget, tools and repair can be given.`
  throw new DefinitionError('definition', message)
}

/** The agent with what this run is given instead of its own, and as the request wants it that it is asked with. */
export function equipped(agent: AgentCore, input: unknown, options: StartOptions): AgentCore {
  // A name that nobody reads would be a restriction, or a conversation, that is not there.
  const { tools, grant, budget, repair } = readOptions('run(agent, input, options)', options, OPTIONS)
  if (grant !== undefined) checkCallerGrant(grant)
  if (budget !== undefined) checkBudget(budget, 'run(agent, input, { budget })')
  checkSignal(options.abortSignal)
  const isAsked = input instanceof PromptInput
  const own = isAgent(agent) ? withChanges(agent, { tools, repair: isAsked ? undefined : repair }) : agent
  return isAsked ? agentForRequest(own, input.prompt, { extensions: input.extensions, repair }) : own
}

/** The ceiling and what the caller of one run binds it by; the very same ceiling where the caller says nothing. */
export function withCaller(
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

/** What a run is started with besides its input, read before anything is awaited. */
export function readStart(options: StartOptions, { runId, conversationId, nodeIds, isKnown }: StartIds): SayOptions {
  const { owner = null, title = null, grant, budget, whileRunning = 'queue', abortSignal } = options
  const attributes = readAttributes(options.attributes)
  const aborted = abortSignal?.aborted === true ? messageOf(abortSignal.reason) : null
  // One literal: spread into one another, objects are slower to make and to read.
  return { runId, conversationId, nodeIds, isKnown, owner, title, grant, budget, attributes, whileRunning, aborted }
}

type StartIds = Pick<SayOptions, 'runId' | 'conversationId' | 'nodeIds' | 'isKnown'>

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

export function wrongInput(agent: AgentCore, { error, issues }: Extract<InputResult, { ok: false }>): InputError {
  return new InputError('invalid_input', `The input of "${agent.name}" is wrong. ${error}`, { details: { issues } })
}

const REPLY: OptionRules<AnswerWord> = { text: anything, by: text }

/** A person's answer to a question: words, and who said them. */
export function readReply(given: AnswerWord): Reply {
  const { text: words, by = 'user' } = readOptions('answer(nodeId, { text })', given, REPLY)
  if (typeof words !== 'string' || words.trim() === '') {
    throw new InputError('invalid_input', 'answer(nodeId, { text }): the answer is a text that is not empty.')
  }
  return { text: words, by }
}

const WORD: OptionRules<ApprovalWord> = {
  allow: anything,
  by: text,
  reason: text,
  always: flag,
  edit: anything,
  digest: text,
}

/** Only `true` allows: whatever else stands there, by mistake or from a form, is no yes. */
export function readAnswer(word: ApprovalWord): ApprovalAnswer {
  const { allow, by = 'user', reason, always, edit, digest } = readOptions('answer(nodeId, { allow })', word, WORD)
  if (typeof allow !== 'boolean') throw new InputError('invalid_input', 'answer(nodeId, { allow }): true or false.')
  const only = digest === undefined ? {} : { digest }
  const given = { allowed: allow, by, reason: reason ?? null, always: always === true, ...only }
  if (edit === undefined) return given
  const json = toJson(edit)
  if (!json.ok) throw new InputError('invalid_input', `answer(nodeId, { edit }): it is not JSON. ${json.error}`)
  return { ...given, edit: json.value }
}
