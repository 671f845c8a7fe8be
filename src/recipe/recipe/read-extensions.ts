import { isDisallowedVariable } from '../../tool/environment.ts'
import type { Fields } from '../text/fields.ts'
import type { Report } from '../text/notice.ts'
import type { ExtensionConfig } from './recipe.ts'

const TYPES = ['stdio', 'builtin', 'platform', 'streamable_http', 'frontend', 'inline_python'] as const
type ExtensionType = (typeof TYPES)[number]

const BASE = ['type', 'name', 'description', 'bundled', 'available_tools', 'required']
const KEYS: Readonly<Record<ExtensionType, readonly string[]>> = {
  stdio: [...BASE, 'cmd', 'args', 'envs', 'env_keys', 'timeout'],
  builtin: [...BASE, 'display_name', 'timeout'],
  platform: [...BASE, 'display_name', 'timeout'],
  streamable_http: [...BASE, 'uri', 'envs', 'env_keys', 'headers', 'timeout', 'socket'],
  frontend: [...BASE, 'tools', 'instructions'],
  inline_python: [...BASE, 'code', 'timeout', 'dependencies'],
}

/** Absent is null, and differs from an empty list. */
export function readExtensions(recipe: Fields, report: Report): readonly ExtensionConfig[] | null {
  const items = recipe.list('extensions')
  if (items === null) return null
  return items.flatMap((item) => readExtension(item, report) ?? [])
}

function readExtension(fields: Fields, report: Report): ExtensionConfig | undefined {
  if (!fields.isMap('an extension with a `type` and a `name`')) return undefined
  const type = typeOf(fields, report)
  if (type === undefined) return undefined
  fields.reportUnknown(KEYS[type])
  const extension = READERS[type](fields, report)
  if (fields.has('available_tools') && extension.availableTools.length === 0) tellAll(fields, report)
  return extension
}

/** Recipes mean all tools by an empty list: whoever meant none must know. */
function tellAll(fields: Fields, report: Report): void {
  const message = `\`${fields.at('available_tools')}\` is empty: in a recipe that means all tools of the extension`
  const hint = 'Leave the extension out to offer none of its tools.'
  report.note({ code: 'extension', message, line: fields.lineOf('available_tools'), hint })
}

function typeOf(fields: Fields, report: Report): ExtensionType | undefined {
  const type = fields.requiredText('type')
  const found = TYPES.find((one) => one === type)
  if (found !== undefined || !fields.has('type')) return found
  const expected = TYPES.map((one) => `\`${one}\``).join(', ')
  const hint =
    type === 'sse' ? 'Use `streamable_http` with the same `uri`.' : 'Correct the type, or leave the extension out.'
  const message = `${fields.path}: unknown variant \`${type}\`, expected one of ${expected}`
  report.fault({ code: 'extension', message, line: fields.lineOf('type'), hint })
  return undefined
}

const READERS: Readonly<Record<ExtensionType, (fields: Fields, report: Report) => ExtensionConfig>> = {
  stdio: (fields, report) => ({
    type: 'stdio',
    ...base(fields),
    cmd: fields.requiredText('cmd'),
    args: required(fields, 'args'),
    ...environment(fields, report),
  }),
  builtin: (fields) => ({ type: 'builtin', ...base(fields), ...builtin(fields) }),
  platform: (fields) => ({ type: 'platform', ...base(fields), ...builtin(fields) }),
  streamable_http: (fields, report) => ({
    type: 'streamable_http',
    ...base(fields),
    uri: fields.requiredText('uri'),
    headers: fields.textMap('headers'),
    socket: fields.text('socket'),
    ...environment(fields, report),
  }),
  frontend: (fields) => {
    const tools = fields.json('tools')
    if (!Array.isArray(tools)) fields.missing('tools')
    return {
      type: 'frontend',
      ...base(fields),
      tools: Array.isArray(tools) ? tools : [],
      instructions: fields.text('instructions'),
    }
  },
  inline_python: (fields) => ({
    type: 'inline_python',
    ...base(fields),
    code: fields.requiredText('code'),
    dependencies: fields.texts('dependencies') ?? [],
    timeoutSeconds: fields.wholeNumber('timeout', 'u64'),
  }),
}

function base(fields: Fields) {
  return {
    name: fields.requiredText('name'),
    description: fields.text('description') ?? '',
    availableTools: fields.texts('available_tools') ?? [],
    required: fields.flag('required') ?? false,
  }
}

function builtin(fields: Fields) {
  return { displayName: fields.text('display_name'), timeoutSeconds: fields.wholeNumber('timeout', 'u64') }
}

function required(fields: Fields, key: string): readonly string[] {
  if (!fields.has(key)) fields.missing(key)
  return fields.texts(key) ?? []
}

function environment(fields: Fields, report: Report) {
  return {
    envs: allowedEnvironment(fields.textMap('envs'), { fields, report }),
    envKeys: fields.texts('env_keys') ?? [],
    timeoutSeconds: fields.wholeNumber('timeout', 'u64'),
  }
}

/** What decides which program runs and what is loaded into it is not for a file to set. */
function allowedEnvironment(
  envs: Readonly<Record<string, string>>,
  { fields, report }: { readonly fields: Fields; readonly report: Report },
): Readonly<Record<string, string>> {
  const allowed = Object.entries(envs).filter(([name]) => {
    if (!isDisallowedVariable(name)) return true
    const message = `${fields.path}.envs: ${name} may not be set by a file; it is dropped`
    report.warning({ code: 'extension', message, line: fields.lineOf('envs') })
    return false
  })
  return Object.fromEntries(allowed)
}
