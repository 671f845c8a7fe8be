import { matchName } from '../../grant/match.ts'
import { isDisallowedVariable } from '../../tool/environment.ts'
import { sourceName } from '../../tool/source.ts'
import { variablesIn } from '../../tools/mcp/environment.ts'
import type { ExtensionConfig } from '../recipe/recipe.ts'
import { Fields } from '../text/fields.ts'
import type { NoticeReport } from '../text/notice.ts'
import type { TextMap, TextTree } from '../text/tree.ts'
import { closestKey, correctKeys } from './names.ts'

export interface ServerReading {
  /** The key that holds the servers. */
  readonly at: string
  readonly report: NoticeReport
  readonly spelling: Spelling
  /** Receives each rule that asks a person. */
  readonly ask: (rule: string) => void
}

/** Reads MCP servers as agent files name them: a list of names and maps, or a map from names to settings. */
export function readServers(tree: TextTree, reading: ServerReading): ExtensionConfig[] {
  if (tree.kind === 'leaf')
    return tree.text
      .split(',')
      .map((name) => named(name.trim()))
      .filter(({ name }) => name !== '')
  if (tree.kind === 'list') return tree.items.flatMap((item) => readItem(item, reading))
  return [...tree.entries].map(([name, { value }]) => readServer(name, value, reading))
}

function readItem(item: TextTree, reading: ServerReading): ExtensionConfig[] {
  if (item.kind === 'leaf') return [named(item.text)]
  if (item.kind === 'map') return readServers(item, reading)
  const { at, report } = reading
  report.warning({ code: 'extension', message: `${at}: a server is a name or a map`, line: item.line })
  return []
}

function readServer(name: string, tree: TextTree, reading: ServerReading): ExtensionConfig {
  if (tree.kind !== 'map') return named(name)
  const fields = new Fields(correctTree(name, tree, reading), reading.report, `${reading.at}.${name}`)
  reportUnread(fields, reading.report)
  readApproval(name, fields, reading)
  const uri = fields.text('url') ?? fields.text('httpUrl') ?? fields.text('uri') ?? fields.text('serverUrl')
  const command = commandOf(fields)
  const base = {
    name,
    description: fields.text('description') ?? '',
    ...readLimit(fields, reading.report),
    required: fields.flag('required') ?? false,
  }
  const environment = { ...readEnvironment(fields, reading), timeoutSeconds: seconds(fields) }
  if (uri !== null) {
    const place = { uri: filled('url', uri, { fields, reading }), headers: readHeaders(fields, reading) }
    const named = [place.uri, ...Object.values(place.headers)].flatMap(variablesIn)
    const known = new Set([...Object.keys(environment.envs), ...Object.keys(environment.envFrom ?? {})])
    const envKeys = [...new Set([...environment.envKeys, ...named.filter((one) => !known.has(one))])]
    return { type: 'streamable_http', ...base, ...place, socket: null, ...environment, envKeys }
  }
  if (command === undefined) return { type: 'named', ...base }
  warnVariables(command, fields, reading)
  return { type: 'stdio', ...base, ...command, ...environment }
}

/** Corrects the spelling of keys: `exclude_tools` becomes `excludeTools`. */
function correctTree(server: string, tree: TextMap, { at, report }: ServerReading): TextMap {
  const meantBy = (key: string) => (READ.has(key) ? undefined : closestKey(key, RESTRICTIONS))
  return correctKeys(tree, meantBy, (key, meant, line) => {
    const message = `\`${at}.${server}.${key}\` is read as \`${meant}\``
    report.warning({ code: 'extension', message, line, hint: `Write \`${meant}\`.` })
  })
}

function named(name: string): ExtensionConfig {
  return { type: 'named', name, description: '', availableTools: [], required: false }
}

/** Reads `command: npx` with `args`, or `command: [npx, ...]`. */
function commandOf(fields: Fields): { cmd: string; args: readonly string[] } | undefined {
  if (fields.get('command')?.kind === 'list') {
    const [cmd, ...args] = fields.texts('command') ?? []
    return cmd === undefined ? undefined : { cmd, args }
  }
  const cmd = fields.text('command') ?? fields.text('cmd')
  return cmd === null ? undefined : { cmd, args: fields.texts('args') ?? [] }
}

/** Warns about variables in a command line: they are not filled in, because it is decided and shown as written. */
function warnVariables(
  { cmd, args }: { cmd: string; args: readonly string[] },
  fields: Fields,
  { report }: ServerReading,
) {
  const found = [cmd, ...args].find((word) => /\$\{\w/.test(word))
  if (found === undefined) return
  const message = `${fields.path}: ${found} stays as it is: variables are not filled in on a command line`
  report.warning({ code: 'extension', message, line: fields.line, hint: 'Give the value with `env`.' })
}

/** Reads which tools of a server may be used: all, some, or none. With none it is not started. */
function readLimit(fields: Fields, report: NoticeReport): Pick<ExtensionConfig, 'availableTools' | 'excludedTools'> {
  const only = listOf(fields, ONLY)
  const isNone = only?.length === 0
  const isOff = fields.flag('enabled') === false || fields.flag('disabled') === true
  if (isNone || isOff) {
    const why = isOff ? 'it is switched off' : 'its list of tools is empty'
    report.note({ code: 'extension', message: `${fields.path}: ${why}, so it is not started`, line: fields.line })
    return { availableTools: [], excludedTools: ['*'] }
  }
  const excluded = NOT.flatMap((key) => listOf(fields, [key]) ?? [])
  const available = only === null || only.includes('*') ? [] : only
  return { availableTools: available, ...(excluded.length === 0 ? {} : { excludedTools: [...new Set(excluded)] }) }
}

const ONLY = ['tools', 'includeTools', 'enabled_tools', 'enabledTools', 'allowedTools', 'available_tools']
const NOT = ['excludeTools', 'excludedTools', 'disabled_tools', 'disabledTools', 'disallowedTools']

const RESTRICTIONS = [...ONLY, ...NOT, 'enabled', 'disabled', 'default_tools_approval_mode']

/** Reads the first of these keys that is a list; names separated by commas count as one. */
function listOf(fields: Fields, keys: readonly string[]): readonly string[] | null {
  const key = keys.find((one) => fields.has(one) && fields.get(one)?.kind !== 'map')
  if (key === undefined) return null
  if (fields.get(key)?.kind === 'list') return fields.texts(key)
  return (fields.text(key) ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** Reads `tools.search.approval_mode: prompt`, which asks a person for each call of that tool. */
function readApproval(server: string, fields: Fields, { ask }: ServerReading): void {
  const source = sourceName(server)
  if (fields.text('default_tools_approval_mode') === 'prompt') ask(`tool:${source}__*`)
  if (fields.get('tools')?.kind !== 'map') return
  const tools = fields.map('tools')
  for (const tool of tools?.keys() ?? []) {
    if (tools?.map(tool)?.text('approval_mode') === 'prompt') ask(`tool:${source}__${tool}`)
  }
}

/** Reads the environment. Values with variables are filled in when the server starts. */
function readEnvironment(fields: Fields, reading: ServerReading) {
  const given = { ...fields.textMap('env'), ...fields.textMap('environment') }
  const envs: [string, string][] = []
  const envFrom: [string, string][] = []
  const envKeys: string[] = [...(listOf(fields, ['env_vars']) ?? [])]
  for (const [name, value] of Object.entries(given)) {
    const text = filled(`env.${name}`, value, { fields, reading })
    if (isDisallowedVariable(name) && variablesIn(text).length > 0) {
      const message = `${fields.path}: ${name} decides what is loaded, and ${value} cannot be shown; it is dropped`
      reading.report.warning({ code: 'extension', message, line: fields.line, hint: 'Write the value itself.' })
    } else if (text === `\${${name}}`) envKeys.push(name)
    else if (variablesIn(text).length > 0) envFrom.push([name, text])
    else envs.push([name, value])
  }
  const made = envFrom.length === 0 ? {} : { envFrom: Object.fromEntries(envFrom) }
  return { envs: Object.fromEntries(envs), envKeys, ...made }
}

function readHeaders(fields: Fields, reading: ServerReading): Record<string, string> {
  const bearer = fields.text('bearer_token_env_var')
  const given = Object.entries({ ...fields.textMap('headers'), ...fields.textMap('http_headers') })
  const named = Object.entries(fields.textMap('env_http_headers'))
  return Object.fromEntries([
    ...given.map(([name, value]) => [name, filled(`headers.${name}`, value, { fields, reading })]),
    ...named.map(([name, variable]) => [name, `\${${variable.trim()}}`]),
    ...(bearer === null ? [] : [['Authorization', `Bearer \${${bearer.trim()}}`]]),
  ])
}

interface ServerPlace {
  readonly fields: Fields
  readonly reading: ServerReading
}

/** Rewrites variables in our form. Reports one that nobody can fill in. */
function filled(key: string, value: string, { fields, reading }: ServerPlace): string {
  const { text, unknown } = filledText(value, reading.spelling)
  for (const one of unknown) {
    const message = `${fields.path}.${key}: ${one} cannot be filled in here: it is passed as it stands`
    reading.report.warning({ code: 'extension', message, line: fields.line, hint: 'Name a variable instead.' })
  }
  return text
}

function seconds(fields: Fields): number | null {
  const milliseconds = fields.number('timeout')
  const whole = fields.number('tool_timeout_sec')
  return whole ?? (milliseconds === null ? null : Math.max(1, Math.ceil(milliseconds / 1_000)))
}

const READ: ReadonlySet<string> = new Set([
  ...['type', 'transport', 'description', 'required', 'enabled', 'disabled', 'command', 'cmd', 'args'],
  ...['url', 'httpUrl', 'uri', 'serverUrl', 'headers', 'http_headers', 'env_http_headers', 'bearer_token_env_var'],
  ...['env', 'environment', 'env_vars', 'timeout', 'tool_timeout_sec', 'default_tools_approval_mode', ...ONLY, ...NOT],
])
/** Keys that would loosen a limit, which no file may, or that do not limit the server. */
const HARMLESS = /^(?:trust|auto_?approve|always_?allow|startup_timeout_(?:sec|ms)|name|title|version|icon)$/i

/** Reports keys that were not read and may be restrictions. */
function reportUnread(fields: Fields, report: NoticeReport): void {
  for (const key of fields.keys().filter((one) => !READ.has(one))) {
    const about = { code: 'extension', message: `\`${fields.at(key)}\` is ignored`, line: fields.lineOf(key) } as const
    if (HARMLESS.test(key)) report.note(about)
    else report.warning({ ...about, hint: 'If it restricts the server, it does not do so here.' })
  }
}

/** Finds the server tools that a word of a list means, in any spelling. */
export function matchServerTools(pattern: string, servers: readonly string[]): readonly ServerToolName[] {
  const exact = servers.flatMap((server) => {
    const alias = aliasesOf(server).find((one) => pattern.startsWith(`${one}__`))
    return alias === undefined ? [] : [{ server, tool: pattern.slice(alias.length + 2) }]
  })
  if (exact.length > 0) return exact
  const [, starred = '', tool = ''] = /^(.*?\*.*?)__(.+)$/.exec(pattern) ?? []
  if (tool !== '')
    return servers.filter((one) => matchName(starred, sourceName(one))).map((server) => ({ server, tool }))
  // Some programs write one underscore between a server and its tool.
  const flat = pattern.replace('__', '_')
  return servers.flatMap((server) => {
    const alias = aliasesOf(server).find((one) => flat.startsWith(`${one}_`))
    return alias === undefined ? [] : [{ server, tool: flat.slice(alias.length + 1) }]
  })
}

export interface ServerToolName {
  /** The server as the file names it. */
  readonly server: string
  readonly tool: string
}

/** The names that programs use for a server in the names of its tools. */
function aliasesOf(server: string): readonly string[] {
  return [server, server.replace(/[^a-zA-Z0-9_-]/g, '_'), sourceName(server)]
}

/** Where a dialect allows `$NAME` beside `${NAME}`: `anywhere` in a text, or `alone` as the whole text. */
export type Spelling = 'anywhere' | 'alone'

export interface FilledText {
  /** The text with `${NAME}` and `${NAME:-other}` only. */
  readonly text: string
  /** Placeholders that are not variables, such as `${input:token}`. */
  readonly unknown: readonly string[]
}

/** Rewrites the variables of a text in the one form that is filled in when a server starts. */
function filledText(given: string, spelling: Spelling): FilledText {
  const unknown: string[] = []
  const braced = given.replace(WRITTEN, (whole: string, ...groups: (string | undefined)[]) => {
    const [action, inner, opencode] = groups
    const name = action?.trim().replace(/^(?:secrets|vars|env)\./, '') ?? opencode ?? inner?.replace(/^env:/, '') ?? ''
    if (/^\w+(?::-[^{}]*)?$/.test(name)) return `\${${name}}`
    unknown.push(whole)
    return whole
  })
  const bare = spelling === 'anywhere' ? BARE : BARE_ALONE
  return { text: braced.replace(bare, (_, name: string) => `\${${name}}`), unknown }
}

/** Matches `${{ secrets.NAME }}`, `${NAME}`, `${env:NAME}`, `{env:NAME}`. */
const WRITTEN = /\$\{\{([^{}]*)\}\}|\$\{([^{}]*)\}|\{env:([^{}]*)\}/g
const BARE = /\$([A-Za-z_]\w*)/g
const BARE_ALONE = /^\$([A-Za-z_]\w*)$/
