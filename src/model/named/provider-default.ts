import { readConfig } from './config.ts'
import { findProvider, providerNames } from './providers.ts'

/** What a provider is asked for where only the provider was named. `aliases` of the config file win: `"openai": "..."`. */
const DEFAULTS: Readonly<Record<string, string>> = {
  openai: 'gpt-5.4',
  anthropic: 'claude-sonnet-5',
  google: 'gemini-3.5-flash',
}

export function defaultModelOf(provider: string): string | undefined {
  const alias = readConfig().aliases.get(provider)
  if (alias?.startsWith(`${provider}/`) === true) return alias.slice(provider.length + 1)
  return Object.hasOwn(DEFAULTS, provider) ? DEFAULTS[provider] : undefined
}

/** Why a provider cannot be used, in words; undefined when it can, as far as is known before it is asked. */
export function providerTrouble(name: string): string | undefined {
  const provider = findProvider(name)
  if (provider === undefined) return `there is no provider of this name. There are ${providerNames().join(', ')}.`
  if (!provider.needsKey || provider.key !== undefined) return undefined
  return `it needs a key: set ${provider.keyNames.join(' or ')}.`
}
