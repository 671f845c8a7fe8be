// Principals: who asks, as plain data. A server makes one from a token; a program may write one by hand.
//
// Owns:      the type, its check, and the questions that surfaces ask about it: may it start, see, say or approve this?
// Called by: `runtime.as(principal)` asks all of them; tokens and tests of surfaces make principals.
// Must stay true (I12):
//   - A principal made within another can do at most what that one can: every question is put to both.
//   - Its layers narrow like all layers, and are frozen with what it starts.

import { DefinitionError, DeniedError, InputError } from '../base/error.ts'
import { frozenCopy, type Json } from '../base/json.ts'
import { anything, flag, listOf, number, type OptionRules, readOptions, record, text } from '../base/options.ts'
import { type Budget, checkBudget } from './budget.ts'
import { freezeLayer } from './ceiling.ts'
import { decide } from './decide.ts'
import { checkGrant, type Grant, type Layer, narrowingLayer } from './grant.ts'
import { matchName } from './match.ts'
import { readRequest } from './request.ts'

/** The things that a principal may do. None implies another. */
export const SCOPES = Object.freeze([
  'start',
  'read',
  'cancel',
  'approve',
  'approve:always',
  'approve:model',
  'history',
  'delete',
  'export',
  'audit',
  'admin',
] as const)

/**
 * One thing that a principal may do: `start` runs, `read` them, `cancel` them, `approve` and answer what waits for a person
 * (`approve:always` for the rest of a conversation, `approve:model` by a model that calls over MCP), change `history`, `delete`,
 * `export`, `audit` (look at records and processes), `admin` (tokens, owners, imports).
 */
export type Scope = (typeof SCOPES)[number]

/**
 * The most that one id may use on one day, by UTC: in conversations that it owns, and in runs of other owners that its limit binds.
 * Tokens and dollars may be exceeded by the calls that are under
 * way, runs by those that other processes start at the same moment, and bytes by what reaches the limit.
 */
export interface DayBudget {
  /** US dollars. */
  readonly usd?: number
  /** Tokens, in and out. */
  readonly tokens?: number
  /** Runs at the root. */
  readonly runs?: number
  /** Bytes of messages, calls and results that the store keeps. */
  readonly bytes?: number
}

/** Who asks: plain data. `runtime.as(principal)` gives what it may reach. */
export interface Principal {
  /** Becomes the owner of what it starts, and the name under what it says. */
  readonly id: string
  /** The things that it may do. */
  readonly scopes: readonly Scope[]
  /** The agents that it may start and see, by name: `review*`. Default: all. */
  readonly agents?: readonly string[]
  /** A layer over every run that it starts: `use`, `ask`, `free` and `deny`. */
  readonly grant?: Omit<Grant, 'delegate'>
  /** Limits of each run that it starts. */
  readonly budget?: Budget
  /** Limits of one day: of all runs of its id, and of those that it binds, because a principal within it asked for them. */
  readonly perDay?: DayBudget
  /** The owners whose conversations it reaches: only its `own` (default), those in a list, or `all` (with `admin` or `audit`). */
  readonly sees?: 'own' | 'all' | readonly string[]
  /** Narrows the scope `approve`. */
  readonly mayApprove?: ApprovalRight
  /** The principal that made this one: it can do at most what both may. */
  readonly within?: Principal
}

/** The requests that a principal may allow. */
export interface ApprovalRight {
  /** Rules such as `tool:deploy` or `exec:git *`. Default: all. */
  readonly requests?: readonly string[]
  /** True: it may not allow requests in its own conversations, nor in runs that it asked for or changed. */
  readonly notOwn?: boolean
}

const texts = listOf(text, 'texts')

const RULES: OptionRules<Principal> = {
  id: text,
  scopes: texts,
  agents: texts,
  grant: record,
  budget: record,
  perDay: record,
  sees: anything,
  mayApprove: record,
  within: record,
}

const PER_DAY: OptionRules<DayBudget> = { usd: number(0), tokens: number(0), runs: number(0), bytes: number(0) }
const RIGHT: OptionRules<ApprovalRight> = { requests: texts, notOwn: flag }
const MOST_WITHIN = 16

/** Throws a DefinitionError for a principal that cannot mean what it says. Gives it back, frozen. */
export function checkPrincipal(given: Principal, where = 'principal', depth = 0): Principal {
  const read = readOptions(where, given, RULES)
  const { id, scopes, sees, grant, budget, perDay, mayApprove, within } = read
  if (typeof id !== 'string' || id.trim() === '') refuse(where, 'id must be a text that is not empty')
  checkUnicode(where, [id, ...(Array.isArray(sees) ? sees : [])])
  if (!Array.isArray(scopes)) refuse(where, `scopes must be a list of ${SCOPES.join(', ')}`)
  const unknown = scopes.find((scope) => !SCOPES.includes(scope))
  if (unknown !== undefined) refuse(where, `"${unknown}" is no scope: write ${SCOPES.join(', ')}`)
  checkSight(sees, scopes, where)
  if (grant !== undefined) checkGrant(grant, `${where}: grant`)
  if (grant !== undefined && 'delegate' in grant) refuse(where, 'its grant has use, ask, free and deny, not delegate')
  if (budget !== undefined) checkBudget(budget, `${where}: budget`)
  if (perDay !== undefined) readOptions(`${where}: perDay`, perDay, PER_DAY)
  if (mayApprove !== undefined) checkRight(readOptions(`${where}: mayApprove`, mayApprove, RIGHT), where)
  if (depth > MOST_WITHIN) refuse(where, `it stands within more than ${MOST_WITHIN} others`)
  if (within !== undefined) checkPrincipal(within, where, depth + 1)
  const checked = frozenCopy(read)
  return HERE.has(given) ? atThisMachine(checked) : checked
}

/** The principals that are the person at this machine. No word of a principal says so: a login may call itself by any id. */
const HERE: WeakSet<Principal> = new WeakSet()

/**
 * Makes a principal the person at this machine, whose agents start programs: for the token and the socket of this machine, and for
 * commands that its user types. Gives it back.
 */
export function atThisMachine(principal: Principal): Principal {
  HERE.add(principal)
  return principal
}

/** Half a character is written as another one: two owners would be one in some stores. */
function checkUnicode(where: string, owners: readonly unknown[]): void {
  if (owners.every((owner) => typeof owner !== 'string' || owner.isWellFormed())) return
  throw new InputError('invalid_input', `${where}: the id of an owner must be well-formed Unicode.`)
}

function checkSight(sees: Principal['sees'], scopes: readonly Scope[], where: string): void {
  if (sees === undefined || sees === 'own') return
  if (sees === 'all') {
    if (scopes.includes('admin') || scopes.includes('audit')) return
    refuse(where, 'sees: "all" needs the scope admin or audit')
  }
  if (texts(sees) !== null) refuse(where, 'sees must be "own", "all" or a list of owners')
}

function checkRight({ requests = [] }: ApprovalRight, where: string): void {
  checkGrant({ use: requests }, `${where}: mayApprove.requests`)
}

function refuse(where: string, why: string): never {
  throw new DefinitionError('definition', `${where}: ${why}.`)
}

/**
 * Makes a principal within another one: it can do at most what both may. Only an admin makes one with another id. Throws a
 * DefinitionError for a scope that the outer one does not have, so that nobody believes in it.
 */
export function narrowPrincipal(outer: Principal, given: Omit<Principal, 'within'>): Principal {
  const inner = checkPrincipal({ ...given, within: outer }, 'narrowPrincipal()')
  if (inner.id !== outer.id && !hasScope(outer, 'admin')) {
    refuse(
      'narrowPrincipal()',
      `only a principal with the scope admin makes one of another id than its own ${outer.id}`,
    )
  }
  const missing = inner.scopes.find((scope) => !hasScope(outer, scope))
  if (missing !== undefined) refuse('narrowPrincipal()', `${outer.id} cannot give the scope ${missing}: it lacks it`)
  // Whoever narrows what is handed out in his own name is still himself.
  return HERE.has(outer) && inner.id === outer.id ? atThisMachine(inner) : inner
}

/** A principal, and those that it stands within. */
function* lineOf(principal: Principal): Generator<Principal> {
  for (let at: Principal | undefined = principal; at !== undefined; at = at.within) yield at
}

/** May it do this at all? */
export function hasScope(principal: Principal, scope: Scope): boolean {
  return every(principal, ({ scopes }) => scopes.includes(scope))
}

/** May it start and see the agent of this name? */
export function mayStart(principal: Principal, agent: string): boolean {
  return every(principal, ({ agents }) => agents === undefined || agents.some((name) => matchName(name, agent)))
}

/** May it reach what this owner has? Only a principal that sees all reaches what nobody owns. */
export function maySee(principal: Principal, owner: string | null): boolean {
  return every(principal, ({ id, sees = 'own' }) => {
    if (sees === 'all') return true
    return owner !== null && (sees === 'own' ? owner === id : sees.includes(owner))
  })
}

/** Does it see the trees of all agents, those that nobody offers now among them? */
export function seesAllAgents(principal: Principal): boolean {
  return every(principal, ({ agents }) => agents === undefined)
}

/** Does it look after all that an owner has? Trees and tokens of an owner may be of any agent. */
export function looksAfter(principal: Principal, owner: string | null): boolean {
  return hasScope(principal, 'admin') && maySee(principal, owner) && seesAllAgents(principal)
}

/** Does it see everything in the store: all agents of all owners, and what nobody owns? */
export function seesEverything(principal: Principal): boolean {
  return seesAllAgents(principal) && every(principal, ({ sees }) => sees === 'all')
}

/** Does it look after the whole store? What others do under it does not count as its own. */
export function isOperator(principal: Principal): boolean {
  return hasScope(principal, 'admin') && seesEverything(principal)
}

/**
 * The ids that count what it does: its own, and those of all who made it, up to an operator. So nobody has more by handing out
 * principals, and what somebody hands out takes nothing from anybody else.
 */
export function countedIds(principal: Principal): readonly string[] {
  const ids = [principal.id]
  for (let above = principal.within; above !== undefined && !isOperator(above); above = above.within) {
    if (!ids.includes(above.id)) ids.push(above.id)
  }
  return ids
}

/** Is it the person at this machine? Whoever has that person's id is not, and neither is whom others made in that person's name. */
export function isOfThisMachine(principal: Principal): boolean {
  return HERE.has(principal)
}

/** The owners that it sees, for lists; `all` where it sees everybody. */
export function ownersSeenBy(principal: Principal): readonly string[] | 'all' {
  let seen: readonly string[] | 'all' = 'all'
  for (const { id, sees = 'own' } of lineOf(principal)) {
    const own = sees === 'own' ? [id] : sees
    if (own !== 'all') seen = seen === 'all' ? own : seen.filter((owner) => own.includes(owner))
  }
  return seen
}

/** May it allow this request? `whose`: the owner of the conversation, and those who asked for the run. */
export function mayApprove(principal: Principal, request: string, whose: readonly (string | null)[]): boolean {
  return every(principal, ({ id, mayApprove: right }) => {
    if (right === undefined) return true
    if (right.notOwn === true && whose.includes(id)) return false
    return right.requests === undefined || allows(right.requests, request)
  })
}

/** Throws a DeniedError where it may allow some requests only: other arguments would make another request. */
export function requireEdit(principal: Principal): void {
  if (every(principal, ({ mayApprove: right }) => right?.requests === undefined)) return
  const message = `${principal.id} may allow some requests only, so it may not change their arguments.`
  throw new DeniedError('denied', message)
}

function allows(rules: readonly string[], request: string): boolean {
  const layer: Layer = { by: 'mayApprove', allow: [...rules, NO_MODELS], ask: [], deny: [] }
  return decide([layer], readRequest(request)).verdict === 'allow'
}

/** A layer that is silent about models lets them pass; a right to approve does not. */
const NO_MODELS = 'model:-'

/** The layers that bind what it starts: its own, and one for each principal above it that says something. */
export function principalLayers(principal: Principal): readonly Layer[] {
  return [...lineOf(principal)].flatMap(({ id, grant, budget, perDay }, at) => {
    // The first layer also says who asked, so it is there even where it limits nothing.
    if (at > 0 && grant === undefined && budget === undefined && perDay === undefined) return []
    const layer = narrowingLayer(`the principal ${id}`, grant ?? {})
    return [
      {
        ...layer,
        ...(at > 0 ? {} : { principal: id }),
        ...(budget === undefined ? {} : { budget }),
        ...(perDay === undefined ? {} : { perDay: { owner: id, ...perDay } }),
      },
    ]
  })
}

/** Its layers, frozen. Equal layers give the same array, by which everything that is worked out from them is kept. */
export function principalCeiling(principal: Principal): readonly Json[] {
  const layers = principalLayers(principal)
  const key = JSON.stringify(layers)
  const known = ceilings.get(key)
  if (known !== undefined) return known
  const frozen = Object.freeze(layers.map(freezeLayer))
  if (ceilings.size >= MOST_CEILINGS) ceilings.clear()
  ceilings.set(key, frozen)
  return frozen
}

const ceilings: Map<string, readonly Json[]> = new Map()
const MOST_CEILINGS = 256

/** Who set the layer that keeps programs from others. */
export const WITHOUT_PROGRAMS = 'the runtime without trustPrograms'

/** The layers of somebody whose runs start no programs. Give the same array for the same layers: what is worked out is kept by it. */
export function withoutPrograms(layers: readonly Json[]): readonly Json[] {
  const known = bare.get(layers)
  if (known !== undefined) return known
  const made = Object.freeze([...layers, freezeLayer(narrowingLayer(WITHOUT_PROGRAMS, { deny: ['exec:*'] }))])
  bare.set(layers, made)
  return made
}

const bare: WeakMap<readonly Json[], readonly Json[]> = new WeakMap()

function every(principal: Principal, holds: (one: Principal) => boolean): boolean {
  for (const one of lineOf(principal)) if (!holds(one)) return false
  return true
}

/** The layers of a principal, and what it asks for itself. Throws where that is no grant. */
export function narrowedCeiling(layers: readonly Json[], grant: Grant, where: string): readonly Json[] {
  checkGrant(grant, where)
  return [...layers, freezeLayer(narrowingLayer('the caller', grant))]
}
