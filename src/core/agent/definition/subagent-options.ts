import { DefinitionError, SubAgentUnavailable } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { anything, flag, type OptionRules, readOptions } from '../../base/options.ts'
import { DURABLE_EVENTS, type Forward, LIVE_EVENTS, type RunEvent } from '../../graph/event.ts'

export type EventType = RunEvent['type']

/** How a child's events are shown to readers of its host. */
export interface StreamOptions {
  /** The types of events to show. Default: all types. */
  readonly eventTypes?: readonly EventType[]
  /** False: each delta repeats all text so far, instead of the new part. Default true. */
  readonly incremental?: boolean
}

/**
 * Joins both settings into one view; null when everything is shown unchanged. Throws DefinitionError for invalid
 * settings.
 */
export function readForward(
  {
    forwardEvents = true,
    streamOptions = {},
  }: { readonly forwardEvents?: boolean | readonly EventType[]; readonly streamOptions?: StreamOptions },
  where: string,
): Forward | null {
  const { eventTypes, incremental = true } = readOptions(`agent(): ${where}.streamOptions`, streamOptions, OPTIONS)
  if (eventTypes !== undefined) checkTypes(eventTypes, `${where}.streamOptions.eventTypes`)
  if (typeof forwardEvents !== 'boolean') checkTypes(forwardEvents, `${where}.forwardEvents`)
  const types = both(typeof forwardEvents === 'boolean' ? chosen(forwardEvents) : forwardEvents, eventTypes)
  return types === undefined && incremental ? null : { types: types ?? null, cumulative: !incremental }
}

const OPTIONS: OptionRules<StreamOptions> = { eventTypes: anything, incremental: flag }
const TYPES: readonly string[] = [...DURABLE_EVENTS, ...LIVE_EVENTS]

function chosen(isForwarded: boolean): readonly EventType[] | undefined {
  return isForwarded ? undefined : []
}

function both(a: readonly EventType[] | undefined, b: readonly EventType[] | undefined) {
  return a === undefined || b === undefined ? (a ?? b) : a.filter((type) => b.includes(type))
}

function checkTypes(types: unknown, where: string): void {
  if (!Array.isArray(types)) refuseForward(`${where} is a list of event types, not ${JSON.stringify(types)}.`)
  const unknown = types.find((type) => !TYPES.includes(String(type)))
  if (unknown !== undefined) refuseForward(`${where}: there is no event "${unknown}". There are ${TYPES.join(', ')}.`)
}

function refuseForward(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}

/**
 * How to resolve two tools of one name: both are refused (`raise`, the default), this one replaces the other
 * (`override`), this one is left out (`skip`), or this one gets a name of its own (`rename`).
 */
export type NameClash = 'raise' | 'override' | 'skip' | 'rename'

export const NAME_CLASHES: readonly NameClash[] = ['raise', 'override', 'skip', 'rename']

/** Which of two tools keeps the name, and whether the other gets a new one; null when both are refused. */
export interface ClashResolution {
  readonly stays: 'first' | 'second'
  readonly isRenamed: boolean
}

/** The later tool's setting wins; without one, the first tool's. */
export function resolveClash(first: NameClash | undefined, second: NameClash | undefined): ClashResolution | null {
  const isSaidBySecond = second !== undefined && second !== 'raise'
  const how = isSaidBySecond ? second : (first ?? 'raise')
  if (how === 'raise') return null
  const [speaker, other] = isSaidBySecond ? (['second', 'first'] as const) : (['first', 'second'] as const)
  return { stays: how === 'override' ? speaker : other, isRenamed: how === 'rename' }
}

const TRIES = 100
const LONGEST = 64
const SUFFIX = 5

/** The name and five more characters. Every process derives the same name, so all have the same tools. */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  for (let at = 0; at < TRIES; at++) {
    const suffix = sha256(`${name}/${at}`).slice(0, SUFFIX)
    const free = `${name.slice(0, LONGEST - SUFFIX - 1)}_${suffix}`
    if (!isTaken(free)) return free
  }
  throw new SubAgentUnavailable('subagent_unavailable', `No name like "${name}" is free after ${TRIES} tries.`)
}
