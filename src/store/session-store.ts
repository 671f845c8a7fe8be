import { DefinitionError } from '../base/error.ts'
import type { SessionDocument } from '../graph/child/session-document.ts'

/** Where conversations with a subagent are copied to, and read back from when their rows are not known here. */
export interface SessionStore {
  /** Called after every turn, with all of the conversation; for one session never twice at the same time. */
  save(session: SessionDocument): void | Promise<void>
  /** What was saved under this id; undefined when there is none. The id is what a model said: it may be any text. */
  load(sessionId: string): unknown | Promise<unknown>
}

/** The sessions of one subagent with one conversation of its host. */
export interface SessionSettings {
  /**
   * Which conversations can go on with a session: `host` (default), the one that began it; `owner`, all of the same owner,
   * each other with a copy of its own.
   */
  readonly scope?: 'host' | 'owner'
  readonly store?: SessionStore
  /** A session that was idle for longer cannot be gone on with. Default: never. */
  readonly ttlMs?: number
  /** How many may be open at once, 1 to 64: for one more, the one that was idle longest is closed. Default: any number. */
  readonly max?: number
}

/** Both forms as one. Throws DefinitionError where that is neither. */
export function readSessionSettings(given: unknown, where: string): SessionSettings {
  if (given === undefined || given === null) return {}
  if (typeof given !== 'object') refuse(`${where} is ${JSON.stringify(given)}. ${FORMS}`)
  if (isStore(given)) return { store: given }
  const unknown = Object.keys(given).find((key) => !KEYS.includes(key))
  if (unknown !== undefined) refuse(`${where} has no "${unknown}". ${FORMS}`)
  const { scope, store, ttlMs, max }: SessionSettings = given
  if (scope !== undefined && scope !== 'host' && scope !== 'owner') refuse(`${where}.scope must be "host" or "owner".`)
  if (store !== undefined && !isStore(store)) refuse(`${where}.store needs save(session) and load(sessionId).`)
  if (ttlMs !== undefined && !(Number.isFinite(ttlMs) && ttlMs > 0)) refuse(`${where}.ttlMs must be a number above 0.`)
  if (max !== undefined && !(Number.isInteger(max) && max >= 1 && max <= 64)) {
    refuse(`${where}.max must be a whole number from 1 to 64.`)
  }
  return given
}

const KEYS = ['scope', 'store', 'ttlMs', 'max']
const FORMS = 'Give jsonSession(folder), an object with save and load, or { scope, store, ttlMs, max }.'

function isStore(value: unknown): value is SessionStore {
  const { save, load } = (typeof value === 'object' && value !== null ? value : {}) as Partial<SessionStore>
  return typeof save === 'function' && typeof load === 'function'
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}
