import { nearest } from '../../core/base/options.ts'
import { secretsInCommand, shownWords } from '../../core/base/secrets/command-secrets.ts'
import { isSecretName, SECRET_MARK, withoutShapes } from '../../core/base/secrets/shapes.ts'
import { isAbsent, type TextMap, type TextTree, valueAt } from '../../core/base/text-tree/tree.ts'
import { plainHost } from '../../core/grant/host.ts'
import { matchName } from '../../core/grant/match.ts'
import { decidedWords } from '../../core/grant/request.ts'
import { quoteWords } from '../../core/grant/words.ts'
import { isDisallowedVariable, isLoadingVariable } from '../../core/tool/environment.ts'
import { sourceName } from '../../core/tool/source.ts'
import { serverVariables, variablesIn } from '../../core/tools/mcp/environment.ts'
import { Fields } from '../text/fields.ts'
import type { NoticeReport } from '../text/notice.ts'
import type { AgentFile } from './agent-file.ts'
import { wordsOfHook } from './file-hook.ts'
import { closestKey, correctKeys } from './names.ts'
import type { OwnNeeds } from './patterns.ts'
import type { ExtensionConfig, StdioExtension } from './recipe.ts'
import { forbiddenWords } from './tool-words.ts'

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
  const server = serverIn(name, fields, reading)
  warnSecrets(server, fields, reading.report)
  return server
}

function serverIn(name: string, fields: Fields, reading: ServerReading): ExtensionConfig {
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

/** Warns about a secret that stands in the file itself: rows keep the definition, and exports keep the rows. */
export function warnSecrets(extension: ExtensionConfig, fields: Fields, report: NoticeReport): void {
  const shown = new Map<string, unknown>(Object.entries(shownExtension(extension)))
  const holds = Object.entries(extension).filter(([key, value]) => {
    return JSON.stringify(shown.get(key)) !== JSON.stringify(value)
  })
  for (const [key] of holds) {
    const message = `${fields.path}: a secret stands in its \`${key}\`: the store keeps it as text, and so does an export`
    const hint = `Take it from the environment: \`env_keys\` in a recipe, \${NAME} in \`env\`, \`url\` and \`headers\`.`
    report.warning({ code: 'extension', message, line: fields.line, hint })
  }
}

/** Gives an extension as people may see it: `***` stands for each value whose name marks it as a secret. */
export function shownExtension(extension: ExtensionConfig): ExtensionConfig {
  if (extension.type === 'stdio') {
    const [, ...args] = withoutSecrets([extension.cmd, ...extension.args])
    return { ...extension, args, envs: shownValues(extension.envs) }
  }
  if (extension.type !== 'streamable_http') return extension
  const uri = withoutShapes(extension.uri)
  return { ...extension, uri, envs: shownValues(extension.envs), headers: shownValues(extension.headers) }
}

/** Hides every value whose name says that it is a secret: nobody decides on these words. */
function withoutSecrets(words: readonly string[]): string[] {
  return shownWords(words, secretsInCommand(words))
}

function shownValues(values: Readonly<Record<string, string>>): Record<string, string> {
  const isKept = (name: string, value: string) => !isSecretName(name) || value === '' || /\$\{|\{\{/.test(value)
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, isKept(name, value) ? value : SECRET_MARK]),
  )
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
  const lists = ONLY.map((key) => onlyTools(fields, key, report)).filter((list) => list !== null)
  const only = lists.length === 0 ? null : lists.reduce(inBoth)
  const isNone = only?.length === 0
  const isOff = fields.flag('enabled') === false || fields.flag('disabled') === true
  if (isNone || isOff) {
    const why = isOff ? 'it is switched off' : 'its list of tools is empty'
    report.note({ code: 'extension', message: `${fields.path}: ${why}, so it is not started`, line: fields.line })
    return { availableTools: [], excludedTools: ['*'] }
  }
  const listed = NOT.flatMap((key) => excludedIn(fields, key, report))
  const excluded = [...listed, ...closedTools(fields, report)]
  const available = only === null || only.includes('*') ? [] : only
  return { availableTools: available, ...(excluded.length === 0 ? {} : { excludedTools: [...new Set(excluded)] }) }
}

/** Reads a list of the only tools that may be used. A map allows what is true in it; `tools` may hold settings instead. */
function onlyTools(fields: Fields, key: string, report: NoticeReport): readonly string[] | null {
  const tree = fields.get(key)
  if (tree?.kind !== 'map') return listOf(fields, key)
  const flags = [...tree.entries].filter(([, { value }]) => value.kind === 'leaf')
  const open = flags.filter(([, { value }]) => value.kind === 'leaf' && value.value === true).map(([tool]) => tool)
  if (key === 'tools' && open.length === 0) return null
  const message = `\`${fields.at(key)}\` is a map: only the tools that are true in it may be used`
  report.warning({ code: 'extension', message, line: fields.lineOf(key), hint: 'Write a list.' })
  return open
}

function inBoth(one: readonly string[], other: readonly string[]): readonly string[] {
  if (one.includes('*')) return other
  return other.includes('*') ? one : one.filter((name) => other.includes(name))
}

/** Reads a list of excluded tools. Signs between names that are no commas separate too; where they are unclear, all tools go. */
function excludedIn(fields: Fields, key: string, report: NoticeReport): readonly string[] {
  const tree = fields.get(key)
  if (tree === undefined || !fields.has(key)) return []
  const isAll = tree.kind === 'leaf' && tree.value === true
  const words = isAll ? ['*'] : forbiddenWords(tree)
  const between = tree.kind === 'leaf' ? /[\s;|&+/:]+/ : /[\s;|&+]+/
  const names = words.flatMap((word) => [word, ...word.split(between).filter((one) => one !== '')])
  const odd = isAll ? 'true' : names.find((name) => !words.includes(name) && !TOOL_NAME.test(name))
  const line = fields.lineOf(key)
  if (odd !== undefined) {
    const message = `\`${fields.at(key)}\`: ${odd} names no tool, so all tools of the server are forbidden`
    report.warning({ code: 'permission', message, line, hint: 'Write a list of names.' })
    return ['*']
  }
  const isPlain = tree.kind !== 'map' && names.length === words.length * 2
  if (!isPlain) {
    const message = `\`${fields.at(key)}\` is read as ${[...new Set(names)].filter((one) => TOOL_NAME.test(one)).join(', ')}`
    report.warning({ code: 'permission', message, line, hint: 'Write a list of names.' })
  }
  return names
}

const TOOL_NAME = /^[\w.*/:-]+$/

const ONLY = ['tools', 'includeTools', 'enabled_tools', 'enabledTools', 'allowedTools', 'available_tools']
const NOT = ['excludeTools', 'excludedTools', 'disabled_tools', 'disabledTools', 'disallowedTools']

const RESTRICTIONS = [...ONLY, ...NOT, 'enabled', 'disabled', 'default_tools_approval_mode']

/** Tells whether a key restricts a server in some dialect, or was probably meant to. */
export function isServerRestriction(key: string): boolean {
  return closestKey(key, RESTRICTIONS) !== undefined
}

/** Reads a list; names separated by commas count as one. */
function listOf(fields: Fields, key: string): readonly string[] | null {
  if (!fields.has(key)) return null
  if (fields.get(key)?.kind === 'list') return fields.texts(key)
  return (fields.text(key) ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** Reads `tools.search.approval_mode: prompt`, which asks a person for each call of that tool. */
function readApproval(server: string, fields: Fields, { ask }: ServerReading): void {
  const source = sourceName(server)
  if (modeIn(fields.get('default_tools_approval_mode')) === 'prompt') ask(`tool:${source}__*`)
  for (const [tool, settings] of toolSettings(fields)) {
    if (modeIn(valueAt(settings, 'approval_mode') ?? settings) === 'prompt') ask(`tool:${source}__${tool}`)
  }
}

/** Lists the tools that their settings close: by `enabled: false`, or by a word that is not understood. */
function closedTools(fields: Fields, report: NoticeReport): readonly string[] {
  const all = 'default_tools_approval_mode'
  const closed = isClosing(fields.at(all), fields.get(all), { report, line: fields.lineOf(all) }) ? ['*'] : []
  for (const [tool, settings] of toolSettings(fields)) {
    const at = `${fields.at('tools')}.${tool}`
    const place = { report, line: fields.lineOf('tools') }
    const parts = settings.kind === 'map' ? [...settings.entries] : []
    const isOff = parts.some(([key, { value }]) => isSwitchedOff(key, value)) || isFlag(settings, false)
    const unread = parts.filter(([key]) => key !== 'approval_mode' && !/^(?:enabled|disabled)$/i.test(key))
    for (const [key] of unread) {
      const hint = 'If it restricts the tool, it does not do so here.'
      report.warning({ code: 'extension', message: `\`${at}.${key}\` is ignored`, line: place.line, hint })
    }
    const mode = settings.kind === 'leaf' ? settings : valueAt(settings, 'approval_mode')
    if (isOff || settings.kind === 'list' || (!isFlag(settings, true) && isClosing(at, mode, place))) closed.push(tool)
  }
  return closed
}

function toolSettings(fields: Fields): readonly (readonly [string, TextTree])[] {
  const tree = fields.get('tools')
  const entries = tree?.kind === 'map' ? [...tree.entries] : []
  return entries.map(([tool, { value }]) => [tool, value.kind === 'map' ? withMode(value) : value] as const)
}

/** Corrects the spelling of `approval_mode`. */
function withMode(tree: TextMap): TextMap {
  const entries = [...tree.entries].map(([key, entry]) => {
    return [closestKey(key, ['approval_mode']) ?? key, entry] as const
  })
  return { ...tree, entries: new Map(entries) }
}

function isSwitchedOff(key: string, tree: TextTree): boolean {
  if (/^enabled$/i.test(key)) return !isFlag(tree, true)
  return /^disabled$/i.test(key) && !isFlag(tree, false)
}

function isFlag(tree: TextTree, value: boolean): boolean {
  return tree.kind === 'leaf' && tree.value === value
}

function modeIn(tree: TextTree | undefined): string {
  return tree?.kind === 'leaf' ? tree.text.trim().toLowerCase() : ''
}

/** Tells whether a mode of approval is not understood: then nothing may be called. */
function isClosing(
  at: string,
  tree: TextTree | undefined,
  { report, line }: { readonly report: NoticeReport; readonly line: number | null },
): boolean {
  if (isAbsent(tree) || MODES.includes(modeIn(tree))) return false
  const message = `\`${at}\`: the mode of approval is not one of ${MODES.join(', ')}; it is taken as forbidden`
  report.warning({ code: 'permission', message, line, hint: 'Write "prompt" to be asked.' })
  return true
}

const MODES = ['auto', 'prompt', 'approve']

/** Reads the environment. Values with variables are filled in when the server starts. */
function readEnvironment(fields: Fields, reading: ServerReading) {
  const given = { ...fields.textMap('env'), ...fields.textMap('environment') }
  const envs: [string, string][] = []
  const envFrom: [string, string][] = []
  const envKeys: string[] = [...(listOf(fields, 'env_vars') ?? [])]
  for (const [name, value] of Object.entries(given)) {
    const text = filled(`env.${name}`, value, { fields, reading })
    const isOwn = text === `\${${name}}`
    const isHidden = variablesIn(text).length > 0
    if (isHidden && (isOwn ? isDisallowedVariable(name) : isLoadingVariable(name))) {
      const message = `${fields.path}: ${name} may decide what is loaded, and ${value} cannot be shown; it is dropped`
      reading.report.warning({ code: 'extension', message, line: fields.line, hint: 'Write the value itself.' })
    } else if (isOwn) envKeys.push(name)
    else if (isHidden) envFrom.push([name, text])
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

/** Rewrites variables in our form. Reports one that nobody can fill in. */
function filled(
  key: string,
  value: string,
  { fields, reading }: { readonly fields: Fields; readonly reading: ServerReading },
): string {
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
    const meant = nearest(key, [...READ])
    if (HARMLESS.test(key)) report.note(about)
    else if (meant !== undefined) report.warning({ ...about, hint: `Did you mean \`${meant}\`?` })
    else report.warning({ ...about, hint: 'If it restricts the server, it does not do so here.' })
  }
}

/** Finds the server tools that a denied word means: also in another letter case, and all tools of a server that it names. */
export function serverToolsDenied(pattern: string, servers: readonly string[]): readonly ServerToolName[] {
  const found = matchServerTools(pattern, servers)
  if (found.length > 0) return found
  const plain = pattern.toLowerCase()
  return servers.flatMap((server) => {
    const aliases = aliasesOf(server).map((one) => one.toLowerCase())
    if (aliases.includes(plain)) return [{ server, tool: '*' }]
    return matchServerTools(plain, aliases).map(({ server: alias }) => {
      const tool = pattern.slice(alias.length).replace(/^_{1,2}/, '')
      return { server, tool }
    })
  })
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

/**
 * Lists the command lines and hosts of the MCP servers and hooks that a file brings along. Its limits apply to its tools, not
 * to these.
 */
export function ownNeeds({ extensions, hooks }: Pick<AgentFile, 'extensions' | 'hooks'>): OwnNeeds {
  const all = (extensions ?? []).filter(({ excludedTools = [] }) => !excludedTools.includes('*'))
  return {
    exec: [
      ...all.flatMap((extension) => (extension.type === 'stdio' ? [commandLineOf(extension)] : [])),
      ...hooks.map((hook) => quoteWords(wordsOfHook(hook))),
    ],
    net: all.flatMap((extension) => (extension.type === 'streamable_http' ? hostOf(extension.uri) : [])),
  }
}

function commandLineOf({ cmd, args, envs: env, envFrom = {} }: StdioExtension): string {
  return quoteWords(decidedWords([cmd, ...args], serverVariables({ env, envFrom }, { by: 'file' })))
}

function hostOf(uri: string): string[] {
  const host = plainHost(uri)
  return host === undefined ? [] : [host]
}
