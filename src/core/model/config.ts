import { DefinitionError, messageOf } from '../base/error.ts'
import { type Json, parseJson } from '../base/json.ts'
import { nodeFs } from '../base/node-system.ts'
import { settingsFile } from '../base/system/user-folders.ts'
import { trimEnd } from '../base/text.ts'
import type { TableRow } from './price-table.ts'

/** The settings of a user for all programs of this machine. */
export interface UserConfig {
  /** The file's path, whether or not it exists. */
  readonly path: string
  /** For agents without a model. `LEGATE_MODEL` wins. */
  readonly model: string | null
  readonly aliases: ReadonlyMap<string, string>
  readonly providers: ReadonlyMap<string, ProviderConfig>
  readonly prices: ReadonlyMap<string, TableRow>
}

export interface ProviderConfig {
  readonly url: string | null
  /** The name of the variable that holds the key, never the key. */
  readonly keyEnv: string | null
  /** The wire format; null means the format of a known provider, or OpenAI's chat format. */
  readonly api: Api | null
}

export type Api = 'openai' | 'anthropic' | 'google' | 'openai-compatible'

const APIS: readonly string[] = ['openai', 'anthropic', 'google', 'openai-compatible'] satisfies Api[]

/** Reads `$LEGATE_CONFIG`, else `legate/config.json` in `$XDG_CONFIG_HOME` or `~/.config`. A missing file is empty. */
export function readModelConfig(): UserConfig {
  const { file, isNamed } = settingsFile()
  const stamp = stampOf(file)
  if (stamp === undefined) {
    if (isNamed) throw wrong(file, 'it is not there, but LEGATE_CONFIG names it.')
    if (last?.config.path !== file || last.stamp !== NO_FILE)
      last = { stamp: NO_FILE, config: { path: file, ...EMPTY } }
    return last.config
  }
  if (last?.config.path === file && last.stamp === stamp) return last.config
  last = { stamp, config: read(file) }
  return last.config
}

/**
 * For callers that must continue while somebody edits the file: a file that became invalid counts as it was when last
 * read, one that was never valid is undefined. Warns once.
 */
export function lastGoodConfig(): UserConfig | undefined {
  try {
    return readModelConfig()
  } catch (error) {
    const known = last?.config.path === settingsFile().file ? last.config : undefined
    const instead = known === undefined ? 'Prices are not known until it is right.' : 'Prices are as it said before.'
    warnOnce(`${messageOf(error)} ${instead}`)
    return known
  }
}

let warned: string | undefined

function warnOnce(warning: string): void {
  if (warned === warning) return
  warned = warning
  process.emitWarning(warning, { type: 'LegateWarning' })
}

let last: { readonly stamp: string; readonly config: UserConfig } | undefined

const NO_FILE = 'none'
const EMPTY = { model: null, aliases: new Map(), providers: new Map(), prices: new Map() } as const

/** A stamp that changes with the file; undefined when there is none. */
function stampOf(file: string): string | undefined {
  const stats = reading(file, () => nodeFs.statSync(file, { throwIfNoEntry: false }))
  return stats === undefined ? undefined : `${stats.mtimeMs}/${stats.size}/${stats.ino}`
}

function read(file: string): UserConfig {
  const parsed = parseJson(reading(file, () => nodeFs.readFileSync(file, 'utf8')))
  if (!parsed.ok) throw wrong(file, parsed.error)
  const reader = new Reader(file)
  const { model, aliases, providers, prices } = reader.object(parsed.value, 'it', [
    'model',
    'aliases',
    'providers',
    'prices',
  ])
  return {
    path: file,
    model: model === undefined ? null : reader.text(model, 'model'),
    aliases: reader.map(aliases, 'aliases', (value, at) => reader.text(value, at)),
    providers: reader.map(providers, 'providers', (value, at) => providerOf(reader, value, at)),
    prices: reader.map(prices, 'prices', (value, at) => priceOf(reader, value, at)),
  }
}

function reading<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === undefined ? undefined : REASONS[code]
    throw wrong(file, `it cannot be read: ${why === undefined ? messageOf(error) : `${why} (${code}).`}`)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission is denied for it or for a folder above it; change that, or name another file in LEGATE_CONFIG',
  EPERM: 'permission is denied; change that, or name another file in LEGATE_CONFIG',
  ELOOP: 'its symbolic links lead in a circle; put a file there',
  EISDIR: 'it is a folder; name the file in it',
  ENAMETOOLONG: 'its path is too long',
}

function providerOf(reader: Reader, value: Json, at: string): ProviderConfig {
  if (typeof value === 'object' && value !== null && ('key' in value || 'apiKey' in value)) {
    reader.refuse(`${at} holds a key. Put the key into an environment variable, and the variable's name into keyEnv.`)
  }
  const { url, keyEnv, api } = reader.object(value, at, ['url', 'keyEnv', 'api'])
  if (url !== undefined && !URL.canParse(reader.text(url, `${at}.url`))) {
    reader.refuse(`${at}.url is no URL. Write it with its path, such as "http://localhost:8000/v1".`)
  }
  if (url !== undefined && holdsUser(String(url))) {
    reader.refuse(`${at}.url holds a user or password. Take it out: a key goes into the variable that keyEnv names.`)
  }
  if (keyEnv !== undefined && !/^[a-z_]\w*$/i.test(String(keyEnv))) {
    reader.refuse(`${at}.keyEnv must be the name of a variable, such as "MY_KEY", never the key itself.`)
  }
  if (api !== undefined && !APIS.includes(String(api))) reader.refuse(`${at}.api is one of ${APIS.join(', ')}.`)
  return {
    url: url === undefined ? null : trimEnd(String(url), '/'),
    keyEnv: keyEnv === undefined ? null : String(keyEnv),
    api: api === undefined ? null : (api as Api),
  }
}

/** True for `//user:password@`: messages and records show addresses, so they may not hold a password. */
export function holdsUser(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { username, password } = new URL(url)
  return username !== '' || password !== ''
}

function priceOf(reader: Reader, value: Json, at: string): TableRow {
  const given = reader.object(value, at, ['input', 'output', 'cacheRead', 'cacheWrite', 'contextWindow'])
  const number = (key: string) => (given[key] === undefined ? undefined : reader.number(given[key], `${at}.${key}`))
  const [input, output, cacheRead, cacheWrite] = ['input', 'output', 'cacheRead', 'cacheWrite'].map(number)
  if ((input === undefined) !== (output === undefined)) reader.refuse(`${at} needs both input and output, or neither.`)
  return {
    contextWindow: number('contextWindow') ?? null,
    input: input ?? null,
    output: output ?? null,
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
  }
}

/** Reads the parts of the file, and names the part that is wrong. */
class Reader {
  private readonly file: string

  constructor(file: string) {
    this.file = file
  }

  object(value: Json, at: string, keys: readonly string[]): { readonly [key: string]: Json | undefined } {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) this.refuse(`${at} must be an object.`)
    const given = value as { [key: string]: Json }
    const unknown = Object.keys(given).find((key) => !keys.includes(key))
    if (unknown !== undefined) this.refuse(`${at} has no "${unknown}". It has ${keys.join(', ')}.`)
    return given
  }

  map<T>(value: Json | undefined, at: string, each: (value: Json, at: string) => T): ReadonlyMap<string, T> {
    if (value === undefined) return new Map()
    const given = this.object(value, at, Object.keys(value ?? {}))
    return new Map(Object.entries(given).map(([key, one]) => [key, each(one ?? null, `${at}.${key}`)]))
  }

  text(value: Json, at: string): string {
    if (typeof value === 'string' && value.trim() !== '') return value
    return this.refuse(`${at} must be a text that is not empty.`)
  }

  number(value: Json, at: string): number {
    if (typeof value === 'number' && value >= 0) return value
    return this.refuse(`${at} must be a number of at least 0.`)
  }

  refuse(what: string): never {
    throw wrong(this.file, what)
  }
}

function wrong(file: string, what: string): DefinitionError {
  return new DefinitionError('definition', `The config file ${file} is wrong: ${what}`, { details: { path: file } })
}
