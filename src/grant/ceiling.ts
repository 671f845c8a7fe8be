import { DeniedError, messageOf } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { type Budget, checkBudget, storedBudget } from './budget.ts'
import type { Layer } from './grant.ts'

/** The version of the format in which layers are frozen. */
const VERSION = 1

/** Turns a layer into JSON, to be stored with a child. */
export function freezeLayer(layer: Layer): Json {
  const { by, allow, ask, deny, budget, binds, neverAsks } = layer
  const frozen = {
    v: VERSION,
    by,
    allow,
    ask,
    deny,
    ...(budget === undefined ? {} : { budget }),
    ...(binds === undefined ? {} : { binds }),
    ...(neverAsks === undefined ? {} : { neverAsks }),
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
  const { v, by, allow, ask, deny, budget, binds, neverAsks } = (layer ?? {}) as Record<string, Json>
  if (v !== VERSION) throw unreadable(`it is of form ${JSON.stringify(v)}; this version knows ${VERSION}`)
  if (typeof by !== 'string' || ![allow, ask, deny].every(isRules)) throw unreadable('a layer is not whole')
  if (binds !== undefined && binds !== 'self' && binds !== 'below')
    throw unreadable('a layer does not say whom it binds')
  if (neverAsks !== undefined && neverAsks !== true) throw unreadable('a layer does not say whether anybody is asked')
  if (budget === undefined) return layer as unknown as Layer
  return { ...(layer as unknown as Layer), budget: frozenBudget(budget) }
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
