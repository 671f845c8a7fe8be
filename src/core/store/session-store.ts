import { DefinitionError } from '../base/error.ts'
import { anything, int, type OptionRules, oneOf, positive, readOptions } from '../base/options.ts'
import type { SessionDocument } from '../rules/delegation/session-document.ts'

/** Keeps copies of conversations with a subagent, from which they can continue where their rows are missing. */
export interface SessionStore {
  /** Called after every turn with the whole conversation, never twice at a time for one session. */
  save(session: SessionDocument): void | Promise<void>
  /** The document saved under this id; undefined when there is none. The id comes from a model: it may be any text. */
  load(sessionId: string): unknown | Promise<unknown>
  /** Deletes the document of this id. Without it, `runtime.forgetOwner` leaves the copies. */
  delete?(sessionId: string): unknown | Promise<unknown>
}

/** The sessions of one subagent with one conversation of its host. */
export interface SessionSettings {
  /**
   * Who can continue a session: `host` (default), the conversation that began it; `owner`, all conversations of the same owner,
   * each other one with a copy of its own.
   */
  readonly scope?: 'host' | 'owner'
  /** Where copies of its sessions are kept. Default: nowhere but in the rows. */
  readonly store?: SessionStore
  /** A session that was idle for longer cannot be continued. Default: never. */
  readonly ttlMs?: number
  /** How many may be open at once, 1 to 64: a further one closes the one that was idle longest. Default: any number. */
  readonly max?: number
}

/** Reads both forms as one. Throws DefinitionError for any other. */
export function readSessionSettings(given: unknown, where: string): SessionSettings {
  if (given === undefined || given === null) return {}
  if (typeof given !== 'object') refuse(`${where} is ${JSON.stringify(given)}. ${FORMS}`)
  if (isStore(given)) return { store: given }
  const settings = readOptions<SessionSettings>(where, given, OPTIONS)
  const { store } = settings
  if (store !== undefined && !isStore(store)) refuse(`${where}.store needs save(session) and load(sessionId).`)
  return settings
}

const OPTIONS: OptionRules<SessionSettings> = {
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
