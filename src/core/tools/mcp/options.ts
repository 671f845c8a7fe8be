import { DefinitionError } from '../../base/error.ts'
import {
  anything,
  code,
  flag,
  listOf,
  type OptionRule,
  type OptionRules,
  oneOf,
  positive,
  readOptions,
  record,
} from '../../base/options.ts'
import { SOURCE_SCOPES, type SourceScope } from '../../tool/source.ts'
import { TOOL_TIMEOUT_MS } from '../../tool/tool.ts'

interface ServerOptions {
  /**
   * Variables for it. All but keys, passwords and plain data (LANG, LOG_LEVEL, ...) become part of its command line:
   * `exec:env HOME=... node x`.
   */
  readonly env?: Readonly<Record<string, string>>
  /** Names of the secrets it gets. Their values are never stored, shown or logged. */
  readonly envKeys?: readonly string[]
  /**
   * Variables built from secrets: `{ TOKEN: '${GITHUB_PAT}' }` passes the value of GITHUB_PAT as TOKEN.
   * `${NAME:-other}` works too.
   */
  readonly envFrom?: Readonly<Record<string, string>>
  /** Looks up the values of secrets. Default: the environment of this process. */
  readonly secrets?: (name: string) => string | undefined
  /** How long one call may take. Default 5 minutes. */
  readonly timeoutMs?: number
  /** How long it may take to start and list its tools. Default 60 s. */
  readonly startTimeoutMs?: number
  /**
   * Allows only these tools, by the server's own names; `*` stands for any text. Default: all of them. An empty list:
   * none.
   */
  readonly availableTools?: readonly string[]
  /** Excludes these tools, by the server's own names; `*` stands for any text. Stronger than `availableTools`. */
  readonly excludedTools?: readonly string[]
  /**
   * True: a run fails when the server cannot be started. False: the run continues without its tools, and warns. Default
   * true.
   */
  readonly required?: boolean
  /**
   * Who shares it. Default `run`: a run and everything below it. It ends with the last of them; with `runtime` it ends
   * with the runtime.
   */
  readonly scope?: SourceScope
}

/** A program that speaks MCP over its standard input and output. Asks for `exec:` and its whole command line. */
export interface StdioServerOptions extends ServerOptions {
  /** The program. */
  readonly command: string
  /** Its arguments. */
  readonly args?: readonly string[]
  /** The folder it runs in. Default: that of this process. */
  readonly cwd?: string
  readonly url?: never
  readonly headers?: never
}

/** A server over HTTP ("streamable HTTP"). Asks for `net:<host>`. */
export interface HttpServerOptions extends ServerOptions {
  /** `${NAME}` stands for a secret or a variable of `env`, `${NAME:-other}` too. */
  readonly url: string
  /** `${NAME}` works here too. */
  readonly headers?: Readonly<Record<string, string>>
  readonly command?: never
  readonly args?: never
  readonly cwd?: never
}

export type McpServerOptions = StdioServerOptions | HttpServerOptions

const START_TIMEOUT_MS = 60_000

/** All options with their defaults filled in. */
export interface ServerSettings {
  readonly command: string | null
  readonly args: readonly string[]
  readonly cwd: string | null
  readonly url: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  readonly envKeys: readonly string[]
  readonly envFrom: Readonly<Record<string, string>>
  readonly secrets: (name: string) => string | undefined
  readonly timeoutMs: number
  readonly startTimeoutMs: number
  readonly availableTools: readonly string[] | null
  readonly excludedTools: readonly string[]
  readonly required: boolean
  readonly scope: SourceScope
}

const DEFAULTS: ServerSettings = {
  command: null,
  args: [],
  cwd: null,
  url: null,
  headers: {},
  env: {},
  envKeys: [],
  envFrom: {},
  secrets: (name) => process.env[name],
  timeoutMs: TOOL_TIMEOUT_MS,
  startTimeoutMs: START_TIMEOUT_MS,
  availableTools: null,
  excludedTools: [],
  required: true,
  scope: 'run',
}

const isWord: OptionRule = (value) => (typeof value === 'string' && !value.includes('\0') ? null : 'a text')
const words = listOf(isWord, 'texts')
const MOST_MS = 2 ** 31 - 1

function textMap(value: unknown): string | null {
  const isMap = record(value) === null && Object.values(Object(value)).every((one) => typeof one === 'string')
  return isMap ? null : 'an object of texts'
}

function milliseconds(value: unknown): string | null {
  return positive(value) === null && Number(value) <= MOST_MS ? null : 'a number of milliseconds'
}

const OPTIONS: OptionRules<ServerSettings> = {
  command: anything,
  args: words,
  cwd: anything,
  url: anything,
  headers: textMap,
  env: textMap,
  envFrom: textMap,
  envKeys: words,
  secrets: code,
  timeoutMs: milliseconds,
  startTimeoutMs: milliseconds,
  availableTools: words,
  excludedTools: words,
  required: flag,
  scope: oneOf(...SOURCE_SCOPES),
}

/** Reads the options. Refuses those that could never work. */
export function readServerOptions(options: McpServerOptions): ServerSettings {
  if (typeof options !== 'object' || options === null) refuse('give it { command, args } or { url }.')
  const given = Object.entries(readOptions('mcpServer()', options, OPTIONS)).filter(([, value]) => value !== undefined)
  const settings: ServerSettings = { ...DEFAULTS, ...Object.fromEntries(given) }
  checkPlace(settings)
  return Object.freeze(settings)
}

function checkPlace({ command, cwd, url }: ServerSettings): void {
  if ((command === null) === (url === null)) refuse('give it either a command or a url.')
  if (command !== null && (!isText(command) || command.startsWith('-')))
    refuse('command is the name or path of a program.')
  if (cwd !== null && !isText(cwd)) refuse('cwd is the path of a folder.')
  const isAddress = url === null || (isText(url) && (url.includes('${') || serverHost(url) !== undefined))
  if (!isAddress) refuse(`${JSON.stringify(url)} is not an address: give it as https://...`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0')
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `mcpServer(): ${message}`)
}

/** The longest message of a server. A longer one ends the connection, because nobody can tell which call it answers. */
export const MOST_MESSAGE_BYTES = 16_000_000
/** The deepest message. The parts that are stored have the store's own limit. */
export const MOST_MESSAGE_DEPTH = 1_000
export const MOST_TOOLS = 500
export const MOST_PAGES = 50
/** The most characters of a tool's description, and of a server's notes. */
export const MOST_DESCRIPTION = 8_000

/** The host of an address; undefined where HTTP cannot reach it. */
export function serverHost(address: string): string | undefined {
  try {
    const { protocol, hostname } = new URL(address)
    return protocol === 'http:' || protocol === 'https:' ? hostname : undefined
  } catch {
    return undefined
  }
}
