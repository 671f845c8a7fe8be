import { DefinitionError } from '../base/error.ts'
import { anything, flag, type Rules, readOptions } from '../base/options.ts'
import type { Forward } from '../graph/child/forward.ts'
import { DURABLE_EVENTS, LIVE_EVENTS, type RunEvent } from '../graph/event.ts'

export type EventType = RunEvent['type']

/** How a child's events are shown to readers of its host. */
export interface StreamOptions {
  /** Default: all types. */
  readonly eventTypes?: readonly EventType[]
  /** False: each delta says all that was streamed so far, instead of what is new. Default: true. */
  readonly incremental?: boolean
}

interface Given {
  readonly forwardEvents?: boolean | readonly EventType[]
  readonly streamOptions?: StreamOptions
}

/** Both settings as one view; null when all is shown as it is. Throws DefinitionError where that is none. */
export function readForward({ forwardEvents = true, streamOptions = {} }: Given, where: string): Forward | null {
  const { eventTypes, incremental = true } = readOptions(`agent(): ${where}.streamOptions`, streamOptions, OPTIONS)
  if (eventTypes !== undefined) checkTypes(eventTypes, `${where}.streamOptions.eventTypes`)
  if (typeof forwardEvents !== 'boolean') checkTypes(forwardEvents, `${where}.forwardEvents`)
  const types = both(typeof forwardEvents === 'boolean' ? chosen(forwardEvents) : forwardEvents, eventTypes)
  return types === undefined && incremental ? null : { types: types ?? null, cumulative: !incremental }
}

const OPTIONS: Rules<StreamOptions> = { eventTypes: anything, incremental: flag }
const TYPES: readonly string[] = [...DURABLE_EVENTS, ...LIVE_EVENTS]

function chosen(isForwarded: boolean): readonly EventType[] | undefined {
  return isForwarded ? undefined : []
}

function both(a: readonly EventType[] | undefined, b: readonly EventType[] | undefined) {
  return a === undefined || b === undefined ? (a ?? b) : a.filter((type) => b.includes(type))
}

function checkTypes(types: unknown, where: string): void {
  if (!Array.isArray(types)) refuse(`${where} is a list of event types, not ${JSON.stringify(types)}.`)
  const unknown = types.find((type) => !TYPES.includes(String(type)))
  if (unknown !== undefined) refuse(`${where}: there is no event "${unknown}". There are ${TYPES.join(', ')}.`)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}
