import path from 'node:path'
import { nearest } from '../../core/base/options.ts'
import type { TextEntry, TextMap } from '../../core/base/text-tree/tree.ts'
import {
  defaultModelOf,
  fullModelName,
  isNoModel,
  providerTrouble,
  resolveAlias,
} from '../../core/model/named/model-names.ts'
import { refuseFile } from '../text/notice.ts'
import type { AgentFile } from './agent-file.ts'

/**
 * Resolves the model of a file to `provider/model`; null for the host's. A provider alone means its default model.
 * Throws a RecipeError that names the file if the provider of the model is unknown.
 */
export function modelOf({ model, provider, file }: Pick<AgentFile, 'model' | 'provider' | 'file'>): string | null {
  const said = model === null || isNoModel(model) ? null : model.trim()
  const by = provider?.trim() ?? ''
  if (said === null) return by === '' ? null : providersDefault(by, file)
  const name = by === '' ? fullModelName(said) : resolveForProvider(by, said)
  if (name !== undefined) return name
  const hint = `Say what it stands for: "aliases": { "${said}": "provider/model" } in the config file.`
  throw refuseFile({ code: 'model', message: `the model \`${said}\` is no "provider/model" and no alias`, hint }, file)
}

/**
 * Resolves a model of a given provider. An alias in the config file wins, whatever provider is named; a built-in alias
 * counts only if it is of that provider.
 */
function resolveForProvider(provider: string, model: string): string {
  const own = resolveAlias(model)
  if (own !== model || model.startsWith(`${provider}/`)) return own
  const alias = model.includes('/') ? undefined : fullModelName(model)
  return alias?.startsWith(`${provider}/`) === true ? alias : `${provider}/${model}`
}

function providersDefault(provider: string, file: string): string {
  const model = defaultModelOf(provider)
  if (model !== undefined) return `${provider}/${model}`
  const why = providerTrouble(provider) ?? 'it has no default model'
  throw refuseFile(
    { code: 'model', message: `the provider \`${provider}\` cannot be used: ${why}`, hint: 'Name a model.' },
    file,
  )
}

/** Makes a name that an agent can have: `my recipe (copy)` becomes `my recipe _copy_`. */
export function safeName(name: string): string {
  const safe = name
    .slice(0, 128)
    .replace(/[^\p{L}\p{N}_ .:@-]+/gu, '_')
    .replace(/^[^\p{L}\p{N}_]+/u, '')
  return safe === '' ? 'subagent' : safe
}

/** Reads the name from the file name: `reviewer` for `reviewer.agent.md`. */
export function nameByPath(file: string): string {
  return withoutEnding(path.basename(file))
}

/** Reads the name with the folders below the folder of agents: `deep/er`. */
export function nameBelowAgents(file: string): string {
  const place = path.resolve(file).split(path.sep).join('/')
  const [, below] = /.*\/agents?\/(.+)$/.exec(place) ?? []
  return withoutEnding(below ?? path.posix.basename(place))
}

function withoutEnding(name: string): string {
  return name.replace(/(?:\.agent|\.chatmode)?\.(?:md|toml|ya?ml|json)$/, '')
}

/** Keys that restrict an agent. */
const RESTRICTIONS: readonly string[] = [
  ...[
    'tools',
    'disallowedTools',
    'permissionMode',
    'permission',
    'permissions',
    'sandbox_mode',
    'sandbox',
    'readonly',
    'grant',
    'budget',
  ],
  ...['maxTurns', 'max_turns', 'steps', 'timeout_mins', 'disable', 'neverAsks', 'disable-model-invocation'],
  ...['hooks', 'isolation', 'workspace'],
]

/** The shortest beginning of a key that is distinct enough to be recognized. */
const SHORTEST = 5

/**
 * Finds the restricting key, among those a dialect reads, that was probably meant: in another case, cut short, or
 * misspelt.
 */
export function closestRestriction(key: string, read: ReadonlySet<string>): string | undefined {
  return closestKey(
    key,
    RESTRICTIONS.filter((one) => read.has(one)),
  )
}

/** Tells whether a key restricts an agent in some dialect, or was probably meant to. */
export function isRestriction(key: string): boolean {
  return closestKey(key, RESTRICTIONS) !== undefined
}

/** Finds the known key that was probably meant. */
export function closestKey(key: string, known: readonly string[]): string | undefined {
  const same = known.find((one) => plain(one) === plain(key))
  if (same !== undefined) return same
  // `sandbox` means `sandbox_mode`.
  const longer = key.length < SHORTEST ? undefined : known.find((one) => plain(one).startsWith(plain(key)))
  if (longer !== undefined) return longer
  const near = nearest(plain(key), known.map(plain))
  return near === undefined ? undefined : known.find((one) => plain(one) === near)
}

function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[_-]/g, '')
}

/**
 * Replaces misspelt restricting keys by the right ones. If both are present, the misspelt one stays and is reported as
 * unknown.
 */
export function correctKeys(
  tree: TextMap,
  meantBy: (key: string) => string | undefined,
  tell: (key: string, meant: string, line: number) => void,
): TextMap {
  const entries = new Map<string, TextEntry>()
  for (const [key, entry] of tree.entries) {
    const meant = meantBy(key)
    const isTaken = meant === undefined || tree.entries.has(meant) || entries.has(meant)
    const name = isTaken || plain(meant)[0] !== plain(key)[0] ? key : meant
    if (name !== key) tell(key, name, entry.line)
    entries.set(name, entry)
  }
  return { ...tree, entries }
}
