// A runtime as one principal may use it: `runtime.as(principal)`. The only thing that a surface ever holds (I12).
//
// Owns:      the check before every operation: its scopes, then the owner of the tree that an id leads to.
// Called by: `Runtime.as`; servers, protocols and pages through it.
// Must stay true:
//   - Every operation of the table is performed by `perform`, and by nothing else.
//   - Every id is taken to the root of its tree first. The id of another owner and an id that does not exist give the same
//     answer after the same reads (I9).
//   - What it starts is bound by the principal's layers: the conversation by its creator's for good, a run by those of who
//     starts it (I1).
//   - `by` is the principal's id, and never comes from a caller.

import type { AnyAgent } from '../agent/definition/agent.ts'
import type { DayRequest } from '../agent/step/within-day.ts'
import { DefinitionError, DeniedError, NotFoundError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import type { ConversationHandle } from '../conversation/conversation.ts'
import type { Run, TreeEventsOptions } from '../conversation/run.ts'
import type { Explanation } from '../grant/decide.ts'
import {
  checkPrincipal,
  hasScope,
  maySee,
  mayStart,
  type Principal,
  principalCeiling,
  type Scope,
  seesEverything,
} from '../grant/principal.ts'
import type { RunEvent } from '../graph/event.ts'
import type { Conversation, Id } from '../graph/rows.ts'
import { findOperation, type OperationName } from '../operations/load.ts'
import { PRINCIPAL_METHODS } from '../operations/methods.made.ts'
import { addMethods, type PrincipalOperations } from '../operations/methods.ts'
import type { Declared } from '../operations/operation.ts'
import type { Admitted, Asking, Named, Operating } from '../operations/port.ts'
import { look } from '../store/look.ts'
import { missingError } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { ScopedStart, ScopedStartOptions } from './options.ts'
import { type ConversationOptions, narrowedLayers, type OnBehalf, ScopedConversation } from './scoped-conversation.ts'

/** The parts of a runtime that a scoped one works with. */
export interface ScopedParts {
  readonly store: Store
  /** An id that this runtime has found before; empty for none. */
  readonly known: { id: Id }
  readonly operating: Operating
  readonly start: (agent: AnyAgent, input: unknown, start: ScopedStart) => Run
  readonly attach: (runId: Id, mayCancel: () => void) => Promise<Run>
  readonly conversation: (id: Id, on: OnBehalf) => Promise<ConversationHandle>
  /** Throws where the day of somebody whose limit is among these layers is used up, or nobody owns the conversation. */
  readonly requireDay: (layers: readonly Json[], owner: string | null, request?: DayRequest) => Promise<void>
  /** May what the principal starts start programs? */
  readonly trusted: () => boolean
  /** The layers with one that keeps programs from the principal, unless the runtime trusts it. */
  readonly bound: (layers: readonly Json[]) => readonly Json[]
  /** The names of the agents that this principal starts by name but for the programs that these start. */
  readonly untrusted: (principal: Principal, layers: readonly Json[]) => Promise<readonly string[]>
  /** The agent of that name, if the program offers it. */
  readonly findAgent: (name: string) => AnyAgent | undefined
  readonly events: (conversationId: Id, options: TreeEventsOptions) => AsyncIterable<RunEvent>
  readonly conversationIdFor: (agent: string, key: string) => Promise<Id>
}

const NOWHERE = '00000000-0000-7000-8000-000000000000'

/** The kind of row that an id of an operation names; null where it names something else. The compiler asks for each subject. */
const NAMED: Readonly<Record<NonNullable<Declared['of']>, Named | null>> = {
  run: 'run',
  conversation: 'conversation',
  tree: 'conversation',
  node: 'node',
  agent: null,
  owner: null,
  token: null,
  webhook: null,
}

class Scoped {
  readonly principal: Principal
  private readonly parts: ScopedParts
  /** The principal's layers, frozen. */
  private readonly layers: readonly Json[]
  private readonly asking: Asking

  static {
    addMethods(Scoped, PRINCIPAL_METHODS, (self, operation, given) => self.perform(operation, given))
  }

  constructor(parts: ScopedParts, principal: Principal) {
    this.parts = parts
    this.principal = checkPrincipal(principal, 'runtime.as(principal)')
    this.layers = principalCeiling(this.principal)
    this.asking = this.askingOf()
  }

  private askingOf(): Asking {
    const { parts, principal, layers } = this
    return {
      principal,
      layers,
      bound: parts.bound(layers),
      on: parts.operating,
      may: (scope) => this.may(scope),
      require: (scope) => this.require(scope),
      requireAll: () => this.requireAll(),
      enter: (scope, what, id) => this.enter(scope, what, id),
      placed: (query) => this.placed(query),
      requireDay: (owner, request) => parts.requireDay(layers, owner, request),
      agentToStart: (agent) => this.agentToStart(agent),
      isOffered: (name) => parts.findAgent(name) !== undefined,
      trusted: parts.trusted,
      talk: (id) => this.talk(id),
    }
  }

  /** Performs an operation of the table, once its scopes and the owner of its ids have been checked. */
  private async perform(operation: Declared, given: readonly unknown[]): Promise<unknown> {
    const who = await this.admitted(operation, given)
    const { as, run } = operation
    if (as !== undefined) return (as as Call<Admitted>)(who, ...given)
    return (run as unknown as Call<Operating>)(who.on, ...given)
  }

  /** Performs an operation as a request of HTTP does. */
  async serve(name: OperationName, given: readonly unknown[]): Promise<unknown> {
    const declared = await findOperation(name)
    if (declared.serve === undefined) return this.perform(declared, given)
    return (declared.serve as Call<Admitted>)(await this.admitted(declared, given), ...given)
  }

  /** The principal as a caller of an operation: all of its checks have passed. */
  private async admitted({ scope, of, needsAll, http }: Declared, given: readonly unknown[]): Promise<Admitted> {
    const scopes = typeof scope === 'string' ? [scope] : scope
    for (const one of scopes) {
      if (one === 'never') throw new DeniedError('denied', 'No principal may do this.')
      if (one !== 'any') this.require(one)
    }
    if (needsAll === true) this.requireAll()
    const named = of === undefined ? null : NAMED[of]
    if (named === null) return withoutRoot(this.asking)
    const roots: Conversation[] = []
    const ids = given.slice(0, http?.match(/\{/g)?.length ?? 1)
    for (const id of ids) roots.push(await this.reach(named, String(id)))
    const [root] = roots
    return root === undefined ? withoutRoot(this.asking) : { ...this.asking, root }
  }

  /** True where the principal may do this at all. */
  may(scope: Scope): boolean {
    return hasScope(this.principal, scope)
  }

  /** Starts an agent, by its name or itself, and returns at once. The principal owns the conversation. */
  run(agent: AnyAgent | string, input?: unknown, options: ScopedStartOptions = {}): Run {
    this.require('start')
    if ('createConversation' in options) throw new DefinitionError('definition', NO_CHOICE)
    return this.parts.start(this.agentToStart(agent), input, { options, by: this.principal, layers: this.layers })
  }

  private agentToStart(agent: AnyAgent | string): AnyAgent {
    const name = typeof agent === 'string' ? agent : agent.name
    const found = typeof agent === 'string' ? this.parts.findAgent(agent) : agent
    if (found !== undefined && mayStart(this.principal, name)) return found
    throw new NotFoundError('not_found', `There is no agent ${JSON.stringify(name)} here.`)
  }

  /** The names of the agents that the principal could start if the runtime trusted its programs: see `trustPrograms`. */
  async untrustedAgents(): Promise<readonly string[]> {
    if (!this.may('start')) return []
    const names = await this.parts.untrusted(this.principal, this.layers)
    return names.filter((name) => mayStart(this.principal, name))
  }

  /** The id of the principal's conversation with an agent that it knows by a text of its own: see `conversationKey`. */
  async conversationIdFor(agent: string, key: string): Promise<Id> {
    this.require('read')
    return this.parts.conversationIdFor(agent, key)
  }

  /** The events of a whole tree, by the id of a conversation of it. */
  async events(conversationId: Id, options: TreeEventsOptions = {}): Promise<AsyncIterable<RunEvent>> {
    await this.enter('read', 'conversation', conversationId)
    return this.parts.events(conversationId, options)
  }

  /** A handle for a run. Its `cancel` needs the scope `cancel`. */
  async attach(runId: Id): Promise<Run> {
    await this.enter('read', 'run', runId)
    return this.parts.attach(runId, () => this.require('cancel'))
  }

  /** A conversation or lane, to read; its history changes with the scope `history`. `grant` narrows what its changes begin. */
  async conversation(id: Id, options: ConversationOptions = {}): Promise<ScopedConversation> {
    const { owner } = await this.enter('read', 'conversation', id)
    const handle = await this.handleOf(id, owner, options)
    const mayStore = () => this.parts.requireDay(this.layers, owner, 'message')
    return new ScopedConversation({ handle, mayStore }, (scope) => this.require(scope))
  }

  private async talk(id: Id): Promise<ConversationHandle> {
    const { owner } = await this.enter('read', 'conversation', id)
    return this.handleOf(id, owner, {})
  }

  private handleOf(id: Id, owner: string | null, options: ConversationOptions): Promise<ConversationHandle> {
    return this.parts.conversation(id, {
      by: this.principal,
      caller: narrowedLayers(this.layers, options),
      mayCancel: () => this.require('cancel'),
      mayBegin: () => this.requireStart(owner),
    })
  }

  /** Why a run may or may not do something: `tool:deploy`. Also of an agent that the principal may start, by its name. */
  async explain(of: Id | { readonly agent: string }, request: string): Promise<Explanation> {
    const { explain } = this.parts.operating
    if (typeof of !== 'string') {
      this.require('read')
      return explain(this.agentToStart(of.agent), request)
    }
    await this.enter('read', 'run', of)
    return explain(of, request)
  }

  /** Throws where the principal may not begin a run now in a conversation of this owner. */
  private async requireStart(owner: string | null): Promise<void> {
    this.require('start')
    await this.parts.requireDay(this.layers, owner)
  }

  /** Throws a DeniedError unless the principal has the scope. */
  require(scope: Scope): void {
    if (hasScope(this.principal, scope)) return
    throw new DeniedError('denied', `${this.principal.id} lacks the scope ${scope}.`, { details: { scope } })
  }

  private requireAll(): void {
    if (seesEverything(this.principal)) return
    const message = `${this.principal.id} does not see all owners and agents: name a conversation of its own.`
    throw new DeniedError('denied', message)
  }

  /** Checks the scope, then takes an id to the root of its tree: the same reads and the same error, whoever has it. */
  private async enter(scope: Scope, what: Named, id: Id): Promise<Conversation> {
    this.require(scope)
    return this.reach(what, id)
  }

  private async reach(what: Named, id: Id): Promise<Conversation> {
    const { store, known } = this.parts
    const place = await store.ownerOf(id)
    const root =
      place !== undefined && maySee(this.principal, place.owner) ? await this.rootAt(place.rootId) : undefined
    if (root !== undefined) {
      known.id = id
      return root
    }
    // A look that finds something takes longer than one that does not: whoever is refused waits for one of each.
    await store.ownerOf(place === undefined ? known.id : NOWHERE)
    const stone = await store.archive?.tombstone(id)
    const isSeen = place === undefined && stone !== undefined && this.sees(stone.owner, stone.agent)
    throw missingError(what, id, isSeen ? stone : undefined)
  }

  /** The root as its record has it, where the principal sees its owner. */
  private async rootAt(rootId: Id): Promise<Conversation | undefined> {
    const root = await look(this.parts.store, rootId, (tree) => tree.conversation(rootId))
    return root !== undefined && this.sees(root.owner, root.agent.name) ? root : undefined
  }

  /** A cursor that it may not see is an unknown one: a page behind it would say that there is such a tree, and since when. */
  private async placed<Query extends { readonly before?: Id }>(query: Query): Promise<Query> {
    const { before } = query
    if (before === undefined || seesEverything(this.principal)) return query
    const place = await this.parts.store.ownerOf(before)
    const root = place === undefined ? undefined : await this.rootAt(place.rootId)
    return root === undefined ? { ...query, before: NOWHERE } : query
  }

  /** May it see a tree of this owner and agent? */
  private sees(owner: string | null, agent: string): boolean {
    return maySee(this.principal, owner) && mayStart(this.principal, agent)
  }
}

/** The id could be one that a key of somebody else stands for. */
const NO_CHOICE =
  'run(agent, input, { createConversation }): a principal chooses no id. Give your own text as conversationKey.'

type Call<On> = (on: On, ...given: readonly unknown[]) => Promise<unknown>

/** The runtime as one principal may use it. Foreign ids answer like unknown ones. */
export const ScopedRuntime = Scoped as new (parts: ScopedParts, principal: Principal) => ScopedRuntime
export interface ScopedRuntime extends Scoped, PrincipalOperations {}

/** The caller of an operation that takes no id of a row. */
function withoutRoot(asking: Asking): Admitted {
  const get = (): never => {
    throw new Error('This operation takes no id of a row.')
  }
  return Object.defineProperty({ ...asking }, 'root', { get }) as Admitted
}
