import { matchName } from '../../grant/match.ts'
import { isDisallowedVariable } from '../../tool/environment.ts'
import { sourceName } from '../../tool/source.ts'
import { variablesIn } from '../../tools/mcp/environment.ts'
import type { ExtensionConfig } from '../recipe/recipe.ts'
import { Fields } from '../text/fields.ts'
import type { Report } from '../text/notice.ts'
import type { MapTree, Tree } from '../text/tree.ts'
import { meantKey, withMeantKeys } from './names.ts'

export interface ServerReading {
  /** The key that they stand under. */
  readonly at: string
  readonly report: Report
  readonly spelling: Spelling
  /** Called with each rule about what a person is asked for. */
  readonly ask: (rule: string) => void
}

/** MCP servers as agent files name them: a list of names and maps, or a map from names to how they are started. */
export function readServers(tree: Tree, reading: ServerReading): ExtensionConfig[] {
  if (tree.kind === 'leaf')
    return tree.text
      .split(',')
      .map((name) => named(name.trim()))
      .filter(({ name }) => name !== '')
  if (tree.kind === 'list') return tree.items.flatMap((item) => readItem(item, reading))
  return [...tree.entries].map(([name, { value }]) => readServer(name, value, reading))
}

function readItem(item: Tree, reading: ServerReading): ExtensionConfig[] {
  if (item.kind === 'leaf') return [named(item.text)]
  if (item.kind === 'map') return readServers(item, reading)
  const { at, report } = reading
  report.warning({ code: 'extension', message: `${at}: a server is a name or a map`, line: item.line })
  return []
}

function readServer(name: string, tree: Tree, reading: ServerReading): ExtensionConfig {
  if (tree.kind !== 'map') return named(name)
  const fields = new Fields(meantTree(name, tree, reading), reading.report, `${reading.at}.${name}`)
  tellUnread(fields, reading.report)
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
  tellLiteral(command, fields, reading)
  return { type: 'stdio', ...base, ...command, ...environment }
}

/** `exclude_tools` is `excludeTools`. */
function meantTree(server: string, tree: MapTree, { at, report }: ServerReading): MapTree {
  const meantBy = (key: string) => (READ.has(key) ? undefined : meantKey(key, RESTRICTIONS))
  return withMeantKeys(tree, meantBy, (key, meant, line) => {
    const message = `\`${at}.${server}.${key}\` is read as \`${meant}\``
    report.warning({ code: 'extension', message, line, hint: `Write \`${meant}\`.` })
  })
}

function named(name: string): ExtensionConfig {
  return { type: 'named', name, description: '', availableTools: [], required: false }
}

/** `command: npx` with `args`, or `command: [npx, ...]`. */
function commandOf(fields: Fields): { cmd: string; args: readonly string[] } | undefined {
  if (fields.get('command')?.kind === 'list') {
    const [cmd, ...args] = fields.texts('command') ?? []
    return cmd === undefined ? undefined : { cmd, args }
  }
  const cmd = fields.text('command') ?? fields.text('cmd')
  return cmd === null ? undefined : { cmd, args: fields.texts('args') ?? [] }
}

/** A command line is decided and shown as it stands: nothing is put into it. */
function tellLiteral(
  { cmd, args }: { cmd: string; args: readonly string[] },
  fields: Fields,
  { report }: ServerReading,
) {
  const found = [cmd, ...args].find((word) => /\$\{\w/.test(word))
  if (found === undefined) return
  const message = `${fields.path}: ${found} stays as it is: variables are not filled in on a command line`
  report.warning({ code: 'extension', message, line: fields.line, hint: 'Give the value with `env`.' })
}

/** All of its tools, some, or none: then it is not started. */
function readLimit(fields: Fields, report: Report): Pick<ExtensionConfig, 'availableTools' | 'excludedTools'> {
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

/** The first of these keys that is a list; names with commas between them are one. */
function listOf(fields: Fields, keys: readonly string[]): readonly string[] | null {
  const key = keys.find((one) => fields.has(one) && fields.get(one)?.kind !== 'map')
  if (key === undefined) return null
  if (fields.get(key)?.kind === 'list') return fields.texts(key)
  return (fields.text(key) ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** `tools.search.approval_mode: prompt`: a person is asked for each call of it. */
function readApproval(server: string, fields: Fields, { ask }: ServerReading): void {
  const source = sourceName(server)
  if (fields.text('default_tools_approval_mode') === 'prompt') ask(`tool:${source}__*`)
  if (fields.get('tools')?.kind !== 'map') return
  const tools = fields.map('tools')
  for (const tool of tools?.keys() ?? []) {
    if (tools?.map(tool)?.text('approval_mode') === 'prompt') ask(`tool:${source}__${tool}`)
  }
}

/** Values that are made of variables are filled in when the server is started. */
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

interface Place {
  readonly fields: Fields
  readonly reading: ServerReading
}

/** The text with its variables as we write them. One that nobody can fill in is told of. */
function filled(key: string, value: string, { fields, reading }: Place): string {
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
/** They would loosen, which no file can, or say nothing of what a server may do. */
const HARMLESS = /^(?:trust|auto_?approve|always_?allow|startup_timeout_(?:sec|ms)|name|title|version|icon)$/i

/** What may be a restriction and is not kept must be known to whoever runs the file. */
function tellUnread(fields: Fields, report: Report): void {
  for (const key of fields.keys().filter((one) => !READ.has(one))) {
    const about = { code: 'extension', message: `\`${fields.at(key)}\` is ignored`, line: fields.lineOf(key) } as const
    if (HARMLESS.test(key)) report.note(about)
    else report.warning({ ...about, hint: 'If it restricts the server, it does not do so here.' })
  }
}

/** The tools of servers that a word of a list is about, whatever way the list has of writing them. */
export function serverToolsMeant(pattern: string, servers: readonly string[]): readonly ServerToolName[] {
  const exact = servers.flatMap((server) => {
    const alias = aliasesOf(server).find((one) => pattern.startsWith(`${one}__`))
    return alias === undefined ? [] : [{ server, tool: pattern.slice(alias.length + 2) }]
  })
  if (exact.length > 0) return exact
  const [, starred = '', tool = ''] = /^(.*?\*.*?)__(.+)$/.exec(pattern) ?? []
  if (tool !== '')
    return servers.filter((one) => matchName(starred, sourceName(one))).map((server) => ({ server, tool }))
  // Some programs have one underscore between a server and its tool.
  const flat = pattern.replace('__', '_')
  return servers.flatMap((server) => {
    const alias = aliasesOf(server).find((one) => flat.startsWith(`${one}_`))
    return alias === undefined ? [] : [{ server, tool: flat.slice(alias.length + 1) }]
  })
}

export interface ServerToolName {
  /** As the file names it. */
  readonly server: string
  readonly tool: string
}

/** How programs call a server in the names of its tools. */
function aliasesOf(server: string): readonly string[] {
  return [server, server.replace(/[^a-zA-Z0-9_-]/g, '_'), sourceName(server)]
}

/** How a dialect writes variables beside `${NAME}`: `anywhere` has `$NAME` inside of texts, `alone` only as the whole text. */
export type Spelling = 'anywhere' | 'alone'

export interface FilledText {
  /** With `${NAME}` and `${NAME:-other}` only. */
  readonly text: string
  /** What stands for something that is no variable, such as `${input:token}`. */
  readonly unknown: readonly string[]
}

/** The variables of a text in the one form that is filled in when a server is started. */
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

/** `${{ secrets.NAME }}`, `${NAME}`, `${env:NAME}`, `{env:NAME}`. */
const WRITTEN = /\$\{\{([^{}]*)\}\}|\$\{([^{}]*)\}|\{env:([^{}]*)\}/g
const BARE = /\$([A-Za-z_]\w*)/g
const BARE_ALONE = /^\$([A-Za-z_]\w*)$/
