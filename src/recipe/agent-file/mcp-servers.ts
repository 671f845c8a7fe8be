import { isDisallowedVariable } from '../../tool/environment.ts'
import type { ExtensionConfig } from '../recipe/recipe.ts'
import { Fields } from '../text/fields.ts'
import type { Report } from '../text/notice.ts'
import type { Tree } from '../text/tree.ts'

/** MCP servers as agent files name them: a list of names and maps, or a map from names to how they are started. */
export function readServers(tree: Tree, at: string, report: Report): ExtensionConfig[] {
  if (tree.kind === 'leaf')
    return tree.text
      .split(',')
      .map((name) => named(name.trim()))
      .filter(({ name }) => name !== '')
  if (tree.kind === 'list') return tree.items.flatMap((item) => readItem(item, at, report))
  return [...tree.entries].map(([name, { value }]) => readServer(name, value, { at, report }))
}

function readItem(item: Tree, at: string, report: Report): ExtensionConfig[] {
  if (item.kind === 'leaf') return [named(item.text)]
  if (item.kind === 'map') return readServers(item, at, report)
  report.warning({ code: 'extension', message: `${at}: a server is a name or a map`, line: item.line })
  return []
}

interface Reading {
  readonly at: string
  readonly report: Report
}

function readServer(name: string, tree: Tree, { at, report }: Reading): ExtensionConfig {
  if (tree.kind !== 'map') return named(name)
  const fields = new Fields(tree, report, `${at}.${name}`)
  const uri = fields.text('url') ?? fields.text('httpUrl') ?? fields.text('uri') ?? fields.text('serverUrl')
  const command = commandOf(fields)
  const base = {
    name,
    description: fields.text('description') ?? '',
    availableTools: listOf(fields, ['tools', 'includeTools', 'enabled_tools']),
    required: fields.flag('required') ?? false,
  }
  const environment = { ...readEnvironment(fields, report), timeoutSeconds: seconds(fields) }
  if (uri !== null) {
    const headers = { ...fields.textMap('headers'), ...fields.textMap('http_headers') }
    return { type: 'streamable_http', ...base, uri, headers, socket: null, ...environment }
  }
  if (command === undefined) return named(name)
  return { type: 'stdio', ...base, ...command, ...environment }
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

function listOf(fields: Fields, keys: readonly string[]): readonly string[] {
  const key = keys.find((one) => fields.get(one)?.kind === 'list')
  const names = key === undefined ? [] : (fields.texts(key) ?? [])
  return names.includes('*') ? [] : names
}

/** `${NAME}` and `$NAME` are secrets to be asked for, not values. */
function readEnvironment(fields: Fields, report: Report) {
  const given = { ...fields.textMap('env'), ...fields.textMap('environment') }
  const envs: [string, string][] = []
  const envKeys: string[] = [...listOf(fields, ['env_vars'])]
  for (const [name, value] of Object.entries(given)) {
    if (isDisallowedVariable(name)) {
      const message = `${fields.path}: ${name} may not be set by a file; it is dropped`
      report.warning({ code: 'extension', message, line: fields.line })
    } else if (/^\$\{?(?:env:)?\w+\}?$|^\$\{\{.*\}\}$/.test(value)) envKeys.push(name)
    else envs.push([name, value])
  }
  return { envs: Object.fromEntries(envs), envKeys }
}

function seconds(fields: Fields): number | null {
  const milliseconds = fields.number('timeout')
  const whole = fields.number('tool_timeout_sec')
  return whole ?? (milliseconds === null ? null : Math.max(1, Math.ceil(milliseconds / 1_000)))
}
