import { DefinitionError } from '../../base/error.ts'
import { readModelConfig } from '../config.ts'
import { findProvider, providerNames } from './providers.ts'

/**
 * Short names and the models they stand for: those of agent files, and those of providers, which stand for their
 * default models. `aliases` of the config file win.
 */
const ALIASES: Readonly<Record<string, string>> = {
  openai: 'openai/gpt-5.4',
  anthropic: 'anthropic/claude-sonnet-5',
  google: 'google/gemini-3.5-flash',

  sonnet: 'anthropic/claude-sonnet-5',
  opus: 'anthropic/claude-opus-5',
  opusplan: 'anthropic/claude-opus-5',
  haiku: 'anthropic/claude-haiku-4-5',

  pro: 'google/gemini-3.1-pro-preview',
  flash: 'google/gemini-3.5-flash',
  'flash-lite': 'google/gemini-2.5-flash-lite',
}

/** Patterns of model names, and whose they are. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^(?:gpt-|o\d|codex-|chatgpt-)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'google'],
]

/** Names that choose no model: the host's or the user's own is used. */
const NO_MODEL: ReadonlySet<string> = new Set(['', 'inherit', 'default', 'auto'])

export function isNoModel(name: string): boolean {
  return NO_MODEL.has(name.trim().toLowerCase())
}

/**
 * Completes a name to `provider/model`: an alias, a name that shows its provider (`gpt-5`, `claude-opus-5`, `Claude
 * Opus 5 (copilot)`), or a complete one. Undefined where the provider is unknown.
 */
export function fullModelName(name: string): string | undefined {
  const alias = aliasOf(name)
  if (alias !== undefined) return alias
  const plain = plainName(name)
  const family = FAMILIES.find(([pattern]) => pattern.test(plain))
  return family === undefined ? undefined : `${family[1]}/${plain}`
}

/** Like `fullModelName`, but without names that only show their provider: they may mean the host's provider. */
export function aliasOf(name: string): string | undefined {
  const said = resolveAlias(name)
  if (said.includes('/')) return said
  const plain = plainName(said)
  return Object.hasOwn(ALIASES, plain) ? ALIASES[plain] : undefined
}

/** Looks a name up in the aliases of the config file; returns the name itself where they do not have it. */
export function resolveAlias(name: string): string {
  const { aliases, path } = readModelConfig()
  const seen = new Set<string>()
  let current = name
  for (let next = aliasIn(aliases, current); next !== undefined; next = aliasIn(aliases, current)) {
    if (seen.has(current)) {
      throw new DefinitionError('definition', `The alias "${name}" of ${path} leads back to itself.`)
    }
    seen.add(current)
    current = next
  }
  return current
}

function aliasIn(aliases: ReadonlyMap<string, string>, name: string): string | undefined {
  return aliases.get(name) ?? aliases.get(name.toLowerCase())
}

/**
 * Spells a name as providers do: `Claude Sonnet 4.5 (copilot)`, `claude-4.5-sonnet` and `claude-sonnet-4.5[1m]` are
 * `claude-sonnet-4-5`.
 */
function plainName(name: string): string {
  const plain = name
    .toLowerCase()
    .replace(/\s*[([].*$/, '')
    .trim()
    .replaceAll(/\s+/g, '-')
  if (!plain.startsWith('claude-')) return plain
  return plain.replaceAll('.', '-').replace(/^claude-(\d+(?:-\d{1,2})?)-([a-z]+)$/, 'claude-$2-$1')
}

/** The default model of a provider, for a name without a model: the provider's name is an alias too. */
export function defaultModelOf(provider: string): string | undefined {
  const name = fullModelName(provider)
  return name?.startsWith(`${provider}/`) === true ? name.slice(provider.length + 1) : undefined
}

/** The providers whose key is set. */
export function providersWithKey(): string[] {
  return providerNames().filter((name) => findProvider(name)?.key !== undefined)
}

/** A model that works with the keys that are set. */
export function modelWithKey(): string | undefined {
  for (const provider of providersWithKey()) {
    const model = defaultModelOf(provider)
    if (model !== undefined) return `${provider}/${model}`
  }
  return undefined
}

/** Explains why a provider cannot be used; undefined when it can, as far as is known without asking it. */
export function providerTrouble(name: string): string | undefined {
  const provider = findProvider(name)
  if (provider === undefined) return `there is no provider of this name. There are ${providerNames().join(', ')}.`
  if (!provider.needsKey || provider.key !== undefined) return undefined
  return `it needs a key: set ${provider.keyNames.join(' or ')}.`
}
