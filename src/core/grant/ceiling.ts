// Frozen layers: what binds a conversation, or a turn and everything that it starts, as JSON in their rows.
//
// Owns:      the form in which layers are stored, and what is read from a stack of them.
// Called by: rules freeze layers with turns and children; `runtime/authority` reads them for decisions; principals are frozen here.
// Must stay true (I1):
//   - Layers only stack: a stack is never shorter than what it was made from.
//   - A layer that cannot be read allows nothing.
//   - Equal stacks are best the same array: what is worked out from them is kept by the array.

import { DeniedError, messageOf } from '../base/error.ts'
import { canonicalJson, type Json } from '../base/json.ts'
import { type Budget, checkBudget, storedBudget } from './budget.ts'
import { isFormer, sinceSecrets } from './former.ts'
import type { Layer } from './grant.ts'

/** The version of the format in which layers are frozen. */
const VERSION = 1

/** Turns a layer into JSON, to be stored with a child. `secrets` marks a list that says nothing about secrets on purpose. */
export function freezeLayer(layer: Layer): Json {
  const { by, allow, ask, deny, free, budget, perDay, principal, binds, neverAsks } = layer
  const frozen = {
    v: VERSION,
    by,
    allow,
    ask,
    deny,
    ...(free === undefined ? {} : { free }),
    ...(budget === undefined ? {} : { budget }),
    ...(perDay === undefined ? {} : { perDay }),
    ...(principal === undefined ? {} : { principal }),
    ...(binds === undefined ? {} : { binds }),
    ...(neverAsks === undefined ? {} : { neverAsks }),
    // Its list looks like one that was kept before a secret was a request.
    ...(isFormer(allow) ? { secrets: true } : {}),
  }
  return frozen as unknown as Json
}

/** The frozen layers that bind the child itself. */
export function layersForSelf(ceiling: readonly Json[]): readonly Layer[] {
  return readCeiling(ceiling).filter(({ binds }) => binds !== 'below')
}

/** The frozen layers that bind everything the child starts. */
export function layersForChildren(ceiling: readonly Json[]): readonly Layer[] {
  return readCeiling(ceiling).flatMap(({ binds, ...layer }) => (binds === 'self' ? [] : layer))
}

/**
 * The ceiling that a turn passes on to the turns of its children: the same array where all of it binds below, so that whatever
 * is kept per ceiling is kept once for a whole tree.
 */
export function ceilingBelow(ceiling: readonly Json[]): readonly Json[] {
  if (readCeiling(ceiling).every(({ binds }) => binds === undefined)) return ceiling
  return layersForChildren(ceiling).map(freezeLayer)
}

/** The budgets that frozen layers name. */
export function budgetsIn(ceiling: readonly Json[]): readonly (Budget | undefined)[] {
  return readCeiling(ceiling).map(({ budget }) => budget)
}

/** The principals that asked for a turn: who began it, and whoever made it anew. */
export function askersIn(ceiling: readonly Json[]): readonly string[] {
  return readCeiling(ceiling).flatMap(({ principal }) => principal ?? [])
}

/** The ids whose limit of a day binds what stands under these layers. Under layers that cannot be read nothing runs. */
export function dayOwnersIn(ceiling: readonly Json[]): readonly string[] {
  if (ceiling.length === 0) return NOBODY
  const before = dayOwners.get(ceiling)
  if (before !== undefined) return before
  const found = isReadable(ceiling) ? readDayOwners(ceiling) : NOBODY
  dayOwners.set(ceiling, found)
  return found
}

/** The ids whose limit of the bytes of a day binds what stands under these layers. */
export function byteOwnersIn(ceiling: readonly Json[]): readonly string[] {
  if (dayOwnersIn(ceiling).length === 0) return NOBODY
  return readCeiling(ceiling).flatMap(({ perDay }) => (perDay?.bytes === undefined ? [] : perDay.owner))
}

/** `bytes`: this process has read a layer that limits the bytes of a day. Until then no commit is measured. */
export const LIMITED = { bytes: false }

function readDayOwners(ceiling: readonly Json[]): readonly string[] {
  const owners = new Set(readCeiling(ceiling).flatMap(({ perDay }) => perDay?.owner ?? []))
  return owners.size === 0 ? NOBODY : [...owners]
}

function isReadable(ceiling: readonly Json[]): boolean {
  try {
    readCeiling(ceiling)
    return true
  } catch {
    return false
  }
}

const dayOwners: WeakMap<readonly Json[], readonly string[]> = new WeakMap()
const NOBODY: readonly string[] = []

/** Joins two ceilings: layers only stack, and a layer is not repeated. */
export function stackCeilings(ceiling: readonly Json[], more: readonly Json[]): readonly Json[] {
  if (more === ceiling || more.length === 0) return ceiling
  if (ceiling.length === 0) return more
  const known = new Set(ceiling.map(canonicalJson))
  const others = more.filter((layer) => !known.has(canonicalJson(layer)))
  return others.length === 0 ? ceiling : [...ceiling, ...others]
}

/** Ceilings that were read before: rows are read again and again. */
const known: WeakMap<readonly Json[], readonly Layer[]> = new WeakMap()

/**
 * Reads the layers that were frozen with a child. A layer that cannot be read allows nothing: the run is refused, with the
 * reason.
 */
export function readCeiling(ceiling: readonly Json[]): readonly Layer[] {
  if (ceiling.length === 0) return NO_LAYERS
  const before = known.get(ceiling)
  if (before !== undefined) return before
  const layers = ceiling.map(readLayer)
  known.set(ceiling, layers)
  return layers
}

const NO_LAYERS: readonly Layer[] = []

function readLayer(layer: Json): Layer {
  const { v, by, allow, ask, deny, budget, ...others } = (layer ?? {}) as Record<string, Json>
  const { perDay, principal, binds, neverAsks, secrets, free = [] } = others
  if (v !== VERSION) throw unreadable(`it is of form ${JSON.stringify(v)}; this version knows ${VERSION}`)
  if (typeof by !== 'string' || ![allow, ask, deny, free].every(isRules)) throw unreadable('a layer is not whole')
  if (binds !== undefined && binds !== 'self' && binds !== 'below')
    throw unreadable('a layer does not say whom it binds')
  if (neverAsks !== undefined && neverAsks !== true) throw unreadable('a layer does not say whether anybody is asked')
  if (principal !== undefined && typeof principal !== 'string') throw unreadable('a layer does not say who asked')
  if (perDay !== undefined && !isDayLimit(perDay)) throw unreadable('the limit of a day is not whole')
  const known = layer as unknown as Layer
  LIMITED.bytes ||= known.perDay?.bytes !== undefined
  const read = secrets === undefined ? sinceSecrets(known) : known
  return budget === undefined ? read : { ...read, budget: frozenBudget(budget) }
}

function isDayLimit(limit: Json): boolean {
  if (typeof limit !== 'object' || limit === null || Array.isArray(limit)) return false
  const { owner, ...numbers } = limit
  return typeof owner === 'string' && Object.values(numbers).every((value) => typeof value === 'number' && value >= 0)
}

function isRules(rules: Json | undefined): boolean {
  return Array.isArray(rules) && rules.every((rule) => typeof rule === 'string')
}

function frozenBudget(frozen: Json): Budget {
  try {
    const budget = storedBudget(frozen as Budget)
    checkBudget(budget, 'a layer')
    return budget
  } catch (error) {
    throw unreadable(messageOf(error))
  }
}

function unreadable(why: string): DeniedError {
  return new DeniedError(
    'denied',
    `What this agent may do was frozen and cannot be read: ${why.replace(/\.$/, '')}. Nothing is allowed.`,
  )
}
