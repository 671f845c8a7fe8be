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
  /** Set for it; names that decide what runs or is loaded (PATH, NODE_OPTIONS, ...) are a part of its command line: `exec:env NODE_OPTIONS=... node x`. */
  readonly env?: Readonly<Record<string, string>>
  /** Names of secrets it gets. Their values are never kept, shown or logged. */
  readonly envKeys?: readonly string[]
  /** Variables made of secrets: `{ TOKEN: '${GITHUB_PAT}' }` gives it the value of GITHUB_PAT as TOKEN. `${NAME:-other}` too. */
  readonly envFrom?: Readonly<Record<string, string>>
  /** Where the values of secrets are. Default: the environment of this process. */
  readonly secrets?: (name: string) => string | undefined
  /** How long one call may take. Default 5 minutes. */
  readonly timeoutMs?: number
  /** How long it may take until it answers and has told its tools. Default 60 s. */
  readonly startTimeoutMs?: number
  /** Only these of its tools, by its own names; `*` stands for any text. Left out: all of them. An empty list: none. */
  readonly availableTools?: readonly string[]
  /** None of these, by its own names; `*` stands for any text. Stronger than `availableTools`. */
  readonly excludedTools?: readonly string[]
  /** Does a run fail when it cannot be started? Default true; else the run goes on without its tools, and says so. */
  readonly required?: boolean
  /** Who shares it. Default `run`: a run and all below it. It ends with the last of them; `runtime`: with the runtime. */
  readonly scope?: SourceScope
}

/** A program that speaks MCP over its standard input and output. Asks `exec:` and its whole command line. */
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

/** A server that is reached over HTTP ("streamable HTTP"). Asks `net:<host>`. */
export interface HttpServerOptions extends ServerOptions {
  /** `${NAME}` stands for a secret or a variable of `env`, `${NAME:-other}` too. */
  readonly url: string
  /** The same. */
  readonly headers?: Readonly<Record<string, string>>
  readonly command?: never
  readonly args?: never
  readonly cwd?: never
}

export type McpServerOptions = StdioServerOptions | HttpServerOptions

const START_TIMEOUT_MS = 60_000

/** Everything said. */
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

/** Refuses what could never work. */
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
  const isAddress = url === null || (isText(url) && (url.includes('${') || hostOf(url) !== undefined))
  if (!isAddress) refuse(`${JSON.stringify(url)} is no address: give it as https://...`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0')
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `mcpServer(): ${message}`)
}

/** One message of a server. What is longer ends the connection: nobody can say what it was an answer to. */
export const MOST_MESSAGE_BYTES = 16_000_000
/** Of a whole message. What is kept of it may be no deeper than all that is kept. */
export const MOST_MESSAGE_DEPTH = 1_000
export const MOST_TOOLS = 500
export const MOST_PAGES = 50
/** Characters of what is told of a tool, and of what a server tells of itself. */
export const MOST_DESCRIPTION = 8_000
/** The end of what a server writes to its standard error is kept for messages. */
export const KEPT_ERROR_CHARS = 2_000

/** Of an address; undefined where it is none that HTTP can reach. */
export function hostOf(address: string): string | undefined {
  try {
    const { protocol, hostname } = new URL(address)
    return protocol === 'http:' || protocol === 'https:' ? hostname : undefined
  } catch {
    return undefined
  }
}
