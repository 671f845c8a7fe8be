import { DefinitionError } from '../../base/error.ts'
import { SOURCE_SCOPES, type SourceScope } from '../source/source.ts'
import { TOOL_TIMEOUT_MS } from '../tool.ts'
import { hostOf } from './host-of.ts'

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
  /** Only these of its tools, by its own names. Left out or empty: all of them. */
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
  readonly command: string
  readonly args?: readonly string[]
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
  readonly availableTools: readonly string[]
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
  availableTools: [],
  excludedTools: [],
  required: true,
  scope: 'run',
}

/** Refuses what could never work. */
export function readServerOptions(options: McpServerOptions): ServerSettings {
  if (typeof options !== 'object' || options === null) refuse('give it { command, args } or { url }.')
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const unknown = given.find(([key]) => !Object.hasOwn(DEFAULTS, key))
  if (unknown !== undefined) refuse(`there is no "${unknown[0]}". There are ${Object.keys(DEFAULTS).join(', ')}.`)
  const settings: ServerSettings = { ...DEFAULTS, ...Object.fromEntries(given) }
  checkPlace(settings)
  for (const key of ['args', 'envKeys', 'availableTools', 'excludedTools'] as const) checkTexts(settings[key], key)
  for (const key of ['env', 'envFrom', 'headers'] as const) checkMap(settings[key], key)
  for (const key of ['timeoutMs', 'startTimeoutMs'] as const) checkTime(settings[key], key)
  if (typeof settings.secrets !== 'function') refuse('secrets is a function of a name.')
  if (typeof settings.required !== 'boolean') refuse('required is true or false.')
  if (!SOURCE_SCOPES.includes(settings.scope)) refuse(`scope is one of ${SOURCE_SCOPES.join(', ')}.`)
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

function checkTexts(list: unknown, key: string): void {
  if (Array.isArray(list) && list.every((item) => typeof item === 'string' && !item.includes('\0'))) return
  refuse(`${key} is a list of texts.`)
}

function checkMap(map: unknown, key: string): void {
  if (typeof map === 'object' && map !== null && Object.values(map).every((value) => typeof value === 'string')) return
  refuse(`${key} is an object of texts.`)
}

function checkTime(value: unknown, key: string): void {
  if (typeof value !== 'number' || !(value > 0) || value > 2 ** 31 - 1) refuse(`${key} is a number of milliseconds.`)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `mcpServer(): ${message}`)
}
