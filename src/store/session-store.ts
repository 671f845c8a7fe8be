import { DefinitionError } from '../base/error.ts'
import { anything, int, oneOf, positive, type Rules, readOptions } from '../base/options.ts'
import type { SessionDocument } from '../rules/delegation/session-document.ts'

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
  /** Where copies of its sessions are kept. Default: nowhere but in the rows. */
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
  const settings = readOptions<SessionSettings>(where, given, OPTIONS)
  const { store } = settings
  if (store !== undefined && !isStore(store)) refuse(`${where}.store needs save(session) and load(sessionId).`)
  return settings
}

const OPTIONS: Rules<SessionSettings> = {
  scope: oneOf('host', 'owner'),
  store: anything,
  ttlMs: positive,
  max: int(1, 64),
}
const FORMS = 'Give jsonSession(folder), an object with save and load, or { scope, store, ttlMs, max }.'

function isStore(value: unknown): value is SessionStore {
  const { save, load } = (typeof value === 'object' && value !== null ? value : {}) as Partial<SessionStore>
  return typeof save === 'function' && typeof load === 'function'
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}
