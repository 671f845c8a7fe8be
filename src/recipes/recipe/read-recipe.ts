import path from 'node:path'
import type { JsonSchema } from '../../core/base/schema/schema.ts'
import { jsonOf, type TextTree, valueAt } from '../../core/base/text-tree/tree.ts'
import { isDisallowedVariable } from '../../core/tool/environment.ts'
import { readBudget, readGrant } from '../agent-file/draft.ts'
import { isServerRestriction, warnSecrets } from '../agent-file/mcp-servers.ts'
import { closestKey, correctKeys, isRestriction } from '../agent-file/names.ts'
import type { ExtensionConfig, Recipe, RecipeSettings, RetryConfig, SubRecipe } from '../agent-file/recipe.ts'
import { Fields } from '../text/fields.ts'
import type { NoticeReport } from '../text/notice.ts'
import { readParameters } from './parameters.ts'

const KEYS = [
  'version',
  'title',
  'description',
  'instructions',
  'prompt',
  'activities',
  'author',
  'parameters',
  'extensions',
  'settings',
  'response',
  'sub_recipes',
  'retry',
  'grant',
  'budget',
  'neverAsks',
  'disable',
]

/** The keys of one map of a recipe. */
interface KeyRules {
  readonly known: readonly string[]
  /** Those that restrict: they are obeyed even if they are misspelt. */
  readonly restricting: readonly string[]
  /** Advises on an unknown key that restricts elsewhere. */
  readonly adviceOn?: (key: string) => string | undefined
}

const RECIPE_KEYS: KeyRules = {
  known: KEYS,
  restricting: ['grant', 'budget', 'neverAsks', 'disable'],
  adviceOn: (key) =>
    isRestriction(key) || isServerRestriction(key)
      ? 'A recipe restricts with `grant`, such as grant: { deny: ["tool:shell"] }, and with `budget`.'
      : undefined,
}

/** Reads misspelt restrictions as the right ones, as agent files do, and reports the keys that nobody reads. */
function checkKeys(fields: Fields, { known, restricting, adviceOn }: KeyRules, report: NoticeReport): Fields {
  const meantBy = (key: string) => (known.includes(key) ? undefined : closestKey(key, restricting))
  const right = fields.rekeyed((tree) =>
    correctKeys(tree, meantBy, (key, meant, line) => {
      const message = `\`${fields.at(key)}\` is read as \`${meant}\``
      report.warning({ code: 'unknown_key', message, line, hint: `Write \`${meant}\`.` })
    }),
  )
  right.reportUnknown(known, adviceOn)
  return right
}

/** Finds the map of the recipe: the desktop app saves it below `recipe`, beside its own keys. */
export function recipeTree(tree: TextTree): TextTree {
  const inner = valueAt(tree, 'recipe')
  return inner?.kind === 'map' && valueAt(tree, 'title') === undefined ? inner : tree
}

/** Reads every field of a recipe. Problems go to the report; it never throws. */
export function readRecipe(tree: TextTree, file: string, report: NoticeReport): Recipe {
  const written = new Fields(recipeTree(tree), report)
  const fields = written.isMap('a recipe') ? checkKeys(written, RECIPE_KEYS, report) : written
  const recipe: Recipe = {
    file,
    version: fields.text('version') ?? '1.0.0',
    title: fields.requiredText('title'),
    description: fields.requiredText('description'),
    instructions: fields.text('instructions'),
    prompt: fields.text('prompt'),
    activities: fields.texts('activities') ?? [],
    author: readAuthor(fields),
    parameters: readParameters(fields, report),
    extensions: readExtensions(fields, report),
    settings: readSettings(fields, report),
    response: readResponse(fields, report),
    subRecipes: readSubRecipes(fields, file, report),
    retry: readRetry(fields, report),
    grant: readGrant(fields, report),
    budget: readBudget(fields, report),
    neverAsks: fields.flag('neverAsks') ?? false,
    isDisabled: fields.flag('disable') ?? false,
  }
  checkWhole(recipe, fields, report)
  noteDelegation(recipe, fields, report)
  return recipe
}

function checkWhole({ instructions, prompt }: Recipe, fields: Fields, report: NoticeReport): void {
  if ((instructions ?? '').trim() !== '' || (prompt ?? '').trim() !== '') return
  const message = 'Recipe must specify at least one of `instructions` or `prompt`.'
  report.error({ code: 'missing_field', message, line: fields.line, hint: 'Say what the agent is to do.' })
}

/** Notes that in goose a list of extensions removes delegation unless it names it. */
function noteDelegation({ extensions, subRecipes }: Recipe, fields: Fields, report: NoticeReport): void {
  if (extensions === null || subRecipes.length > 0 || extensions.some(({ name }) => name === 'summon')) return
  const message = 'it may start subagents, though its `extensions` do not list `summon`'
  const hint = 'Nothing to do. Where it must not, deny `agent:*` in the grant it is run with.'
  report.note({ code: 'extension', message, line: fields.lineOf('extensions'), hint })
}

function readAuthor(fields: Fields): Recipe['author'] {
  const author = fields.map('author')
  author?.reportUnknown(['contact', 'metadata'])
  return author === null ? null : { contact: author.text('contact'), metadata: author.text('metadata') }
}

const SETTINGS_KEYS: KeyRules = {
  known: ['goose_provider', 'goose_model', 'aster_provider', 'aster_model', 'temperature', 'max_turns'],
  restricting: ['max_turns'],
}

function readSettings(fields: Fields, report: NoticeReport): RecipeSettings {
  const written = fields.map('settings')
  if (written === null) return { provider: null, model: null, temperature: null, maxTurns: null }
  const settings = checkKeys(written, SETTINGS_KEYS, report)
  const both = (name: 'provider' | 'model'): string | null => {
    const [goose, aster] = [settings.text(`goose_${name}`), settings.text(`aster_${name}`)]
    if (goose !== null && aster !== null && goose !== aster) {
      const message = `settings: goose_${name} and aster_${name} differ; goose_${name} wins`
      report.warning({
        code: 'invalid_value',
        message,
        line: settings.lineOf(`aster_${name}`),
        hint: 'Keep one of them.',
      })
    }
    return goose ?? aster
  }
  const maxTurns = settings.wholeNumber('max_turns', 'usize')
  if (maxTurns === 0) {
    const message = 'settings.max_turns must be at least 1'
    report.error({ code: 'invalid_value', message, line: settings.lineOf('max_turns') })
  }
  return { provider: both('provider'), model: both('model'), temperature: settings.number('temperature'), maxTurns }
}

function readResponse(fields: Fields, report: NoticeReport): Recipe['response'] {
  const response = fields.map('response')
  if (response === null) return null
  response.reportUnknown(['json_schema'])
  const tree = response.get('json_schema')
  const schema = tree === undefined ? undefined : jsonOf(tree)
  const isObject = typeof schema === 'object' && schema !== null && !Array.isArray(schema)
  if (isObject && Object.keys(schema).length > 0) return { jsonSchema: schema as JsonSchema }
  const message = 'JSON schema validation failed: `response.json_schema` must be an object with at least one word in it'
  const hint = 'Write the shape of the answer, such as { type: object, properties: { ... } }, or remove `response`.'
  report.error({ code: 'schema', message, line: fields.lineOf('response'), hint })
  return null
}

const SUB_RECIPE_KEYS: KeyRules = {
  known: ['name', 'path', 'values', 'locked_values', 'sequential_when_repeated', 'description'],
  restricting: ['locked_values'],
}

function readSubRecipes(fields: Fields, file: string, report: NoticeReport): readonly SubRecipe[] {
  return (fields.list('sub_recipes') ?? []).flatMap((written) => {
    if (!written.isMap('a sub-recipe with a `name` and a `path`')) return []
    const item = checkKeys(written, SUB_RECIPE_KEYS, report)
    const given = item.requiredText('path')
    return [
      {
        name: item.requiredText('name'),
        path: given === '' ? '' : path.resolve(path.dirname(file), given),
        folder: path.dirname(file),
        values: readValues(item),
        locked: readLocked(item),
        sequentialWhenRepeated: item.flag('sequential_when_repeated') ?? false,
        description: item.text('description'),
        line: item.line,
      },
    ]
  })
}

/** Reads values: texts stay, everything else becomes JSON. */
function readValues(item: Fields): Readonly<Record<string, string>> {
  const values = item.map('values')
  if (values === null) return {}
  return Object.fromEntries(
    values.keys().map((key) => {
      const value = values.json(key) ?? null
      return [key, typeof value === 'string' ? value : JSON.stringify(value)]
    }),
  )
}

function readLocked(item: Fields): SubRecipe['locked'] {
  const tree = item.get('locked_values')
  if (tree?.kind === 'list') return item.texts('locked_values') ?? []
  return item.flag('locked_values') ?? false
}

function readRetry(fields: Fields, report: NoticeReport): RetryConfig | null {
  const retry = fields.map('retry')
  if (retry === null) return null
  const known = ['max_retries', 'checks', 'on_failure', 'timeout_seconds', 'on_failure_timeout_seconds']
  retry.reportUnknown(known)
  if (!retry.has('max_retries')) retry.missing('max_retries')
  if (!retry.has('checks')) retry.missing('checks')
  const read = {
    maxRetries: retry.wholeNumber('max_retries') ?? 1,
    checks: (retry.list('checks') ?? []).flatMap((check) => readCheck(check, report) ?? []),
    onFailure: retry.text('on_failure'),
    timeoutSeconds: retry.wholeNumber('timeout_seconds', 'u64'),
    onFailureTimeoutSeconds: retry.wholeNumber('on_failure_timeout_seconds', 'u64'),
  }
  const atLeastOne = (key: string, value: number | null, more: string): void => {
    if (value !== 0) return
    const message = `Invalid retry configuration: ${key} must be greater than 0${more}`
    report.error({ code: 'retry', message, line: retry.lineOf(key) })
  }
  atLeastOne('max_retries', read.maxRetries, '')
  atLeastOne('timeout_seconds', read.timeoutSeconds, ' if specified')
  atLeastOne('on_failure_timeout_seconds', read.onFailureTimeoutSeconds, ' if specified')
  return read
}

function readCheck(check: Fields, report: NoticeReport): RetryConfig['checks'][number] | undefined {
  if (!check.isMap('a check with a `type` and a `command`')) return undefined
  check.reportUnknown(['type', 'command'])
  const type = check.requiredText('type')
  const command = check.requiredText('command')
  if (type === 'shell' || type === 'Shell') return { type: 'shell', command }
  if (!check.has('type')) return undefined
  const message = `${check.path}: unknown variant \`${type}\`, expected \`shell\``
  report.error({ code: 'retry', message, line: check.lineOf('type') })
  return undefined
}

const TYPES = ['stdio', 'builtin', 'platform', 'streamable_http', 'frontend', 'inline_python'] as const
type ExtensionType = (typeof TYPES)[number]

const BASE = ['type', 'name', 'description', 'bundled', 'available_tools', 'required']
const EXTENSION_KEYS: Readonly<Record<ExtensionType, readonly string[]>> = {
  stdio: [...BASE, 'cmd', 'args', 'envs', 'env_keys', 'timeout'],
  builtin: [...BASE, 'display_name', 'timeout'],
  platform: [...BASE, 'display_name', 'timeout'],
  streamable_http: [...BASE, 'uri', 'envs', 'env_keys', 'headers', 'timeout', 'socket'],
  frontend: [...BASE, 'tools', 'instructions'],
  inline_python: [...BASE, 'code', 'timeout', 'dependencies'],
}

/** Reads the extensions. A missing list is null, which differs from an empty one. */
function readExtensions(recipe: Fields, report: NoticeReport): readonly ExtensionConfig[] | null {
  const items = recipe.list('extensions')
  if (items === null) return null
  return items.flatMap((item) => readExtension(item, report) ?? [])
}

function readExtension(written: Fields, report: NoticeReport): ExtensionConfig | undefined {
  if (!written.isMap('an extension with a `type` and a `name`')) return undefined
  const type = typeOf(written, report)
  if (type === undefined) return undefined
  const adviceOn = (key: string) =>
    isServerRestriction(key) && written.json(key) !== true
      ? 'List the tools to offer in `available_tools`, or leave the extension out.'
      : undefined
  const fields = checkKeys(written, { known: EXTENSION_KEYS[type], restricting: ['available_tools'], adviceOn }, report)
  const extension = READERS[type](fields, report)
  warnSecrets(extension, fields, report)
  if (fields.has('available_tools') && extension.availableTools.length === 0) warnAllTools(fields, report)
  return extension
}

/** Warns that in recipes an empty list means all tools, in case none was meant. */
function warnAllTools(fields: Fields, report: NoticeReport): void {
  const message = `\`${fields.at('available_tools')}\` is empty: in a recipe that means all tools of the extension`
  const hint = 'Leave the extension out to offer none of its tools.'
  report.note({ code: 'extension', message, line: fields.lineOf('available_tools'), hint })
}

function typeOf(fields: Fields, report: NoticeReport): ExtensionType | undefined {
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

const READERS: Readonly<Record<ExtensionType, (fields: Fields, report: NoticeReport) => ExtensionConfig>> = {
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

function environment(fields: Fields, report: NoticeReport) {
  return {
    envs: allowedEnvironment(fields.textMap('envs'), { fields, report }),
    envKeys: fields.writtenTexts('env_keys'),
    timeoutSeconds: fields.wholeNumber('timeout', 'u64'),
  }
}

/** Drops variables that decide which program runs or which code it loads: a file may not set them. */
function allowedEnvironment(
  envs: Readonly<Record<string, string>>,
  { fields, report }: { readonly fields: Fields; readonly report: NoticeReport },
): Readonly<Record<string, string>> {
  const allowed = Object.entries(envs).filter(([name]) => {
    if (!isDisallowedVariable(name)) return true
    const message = `${fields.path}.envs: ${name} may not be set by a file; it is dropped`
    report.warning({ code: 'extension', message, line: fields.lineOf('envs') })
    return false
  })
  return Object.fromEntries(allowed)
}
