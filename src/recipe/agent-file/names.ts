import path from 'node:path'
import { nearest } from '../../base/options.ts'
import {
  defaultModelOf,
  fullModelName,
  isNoModel,
  providerTrouble,
  resolveAlias,
} from '../../model/named/model-names.ts'
import { refuse } from '../text/notice.ts'
import type { Entry, MapTree } from '../text/tree.ts'
import type { AgentFile } from './agent-file.ts'

/**
 * The model a file asks for, as `provider/model`; null when it asks for its host's. A provider alone stands for its default
 * model. Throws a RecipeError that names the file where nobody knows whose model it is.
 */
export function modelOf({ model, provider, file }: Pick<AgentFile, 'model' | 'provider' | 'file'>): string | null {
  const said = model === null || isNoModel(model) ? null : model.trim()
  const by = provider?.trim() ?? ''
  if (said === null) return by === '' ? null : providersDefault(by, file)
  const name = by === '' ? fullModelName(said) : ofProvider(by, said)
  if (name !== undefined) return name
  const hint = `Say what it stands for: "aliases": { "${said}": "provider/model" } in the config file.`
  throw refuse({ code: 'model', message: `the model \`${said}\` is no "provider/model" and no alias`, hint }, file)
}

/** What the config file makes of a name counts, whoever is said to provide it; another alias where it is of that provider. */
function ofProvider(provider: string, model: string): string {
  const own = resolveAlias(model)
  if (own !== model || model.startsWith(`${provider}/`)) return own
  const alias = model.includes('/') ? undefined : fullModelName(model)
  return alias?.startsWith(`${provider}/`) === true ? alias : `${provider}/${model}`
}

function providersDefault(provider: string, file: string): string {
  const model = defaultModelOf(provider)
  if (model !== undefined) return `${provider}/${model}`
  const why = providerTrouble(provider) ?? 'it has no default model'
  throw refuse(
    { code: 'model', message: `the provider \`${provider}\` cannot be used: ${why}`, hint: 'Name a model.' },
    file,
  )
}

/** The name where the file itself is one: `reviewer` of `reviewer.agent.md`. */
export function nameByPath(file: string): string {
  return withoutEnding(path.basename(file))
}

/** The name with the folders that it lies in, from the folder of agents: `deep/er`. */
export function nameBelowAgents(file: string): string {
  const place = path.resolve(file).split(path.sep).join('/')
  const [, below] = /.*\/agents?\/(.+)$/.exec(place) ?? []
  return withoutEnding(below ?? path.posix.basename(place))
}

function withoutEnding(name: string): string {
  return name.replace(/(?:\.agent|\.chatmode)?\.(?:md|toml|ya?ml|json)$/, '')
}

/** Keys that take something away from an agent. */
const RESTRICTIONS: readonly string[] = [
  ...['tools', 'disallowedTools', 'permissionMode', 'permission', 'sandbox_mode', 'readonly', 'grant', 'budget'],
  ...['maxTurns', 'max_turns', 'steps', 'timeout_mins', 'disable', 'neverAsks', 'disable-model-invocation'],
]

/** Of a beginning that is told from any other word. */
const SHORTEST = 5

/** The key that restricts and that was probably meant, of those that a dialect reads: in other letters, its beginning, or a slip away. */
export function meantRestriction(key: string, read: ReadonlySet<string>): string | undefined {
  return meantKey(
    key,
    RESTRICTIONS.filter((one) => read.has(one)),
  )
}

/** The one of these keys that was probably meant. */
export function meantKey(key: string, known: readonly string[]): string | undefined {
  const same = known.find((one) => plain(one) === plain(key))
  if (same !== undefined) return same
  // `sandbox` for `sandbox_mode`.
  const longer = key.length < SHORTEST ? undefined : known.find((one) => plain(one).startsWith(plain(key)))
  if (longer !== undefined) return longer
  const near = nearest(plain(key), known.map(plain))
  return near === undefined ? undefined : known.find((one) => plain(one) === near)
}

function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[_-]/g, '')
}

/**
 * The same keys, and instead of one that is nearly one that restricts, that one. Where both stand there, it stays, and is told
 * of as a key that is not known.
 */
export function withMeantKeys(tree: MapTree, meantBy: (key: string) => string | undefined, tell: TellMeant): MapTree {
  const entries = new Map<string, Entry>()
  for (const [key, entry] of tree.entries) {
    const meant = meantBy(key)
    const isTaken = meant === undefined || tree.entries.has(meant) || entries.has(meant)
    const name = isTaken || plain(meant)[0] !== plain(key)[0] ? key : meant
    if (name !== key) tell(key, name, entry.line)
    entries.set(name, entry)
  }
  return { ...tree, entries }
}

type TellMeant = (key: string, meant: string, line: number) => void
