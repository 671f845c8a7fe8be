import { wholeName } from './model-names.ts'
import { findProvider, providerNames } from './providers.ts'

/** What a provider is asked for where only the provider was named: its name is an alias too. */
export function defaultModelOf(provider: string): string | undefined {
  const name = wholeName(provider)
  return name?.startsWith(`${provider}/`) === true ? name.slice(provider.length + 1) : undefined
}

/** Those whose key is set. */
export function keyedProviders(): string[] {
  return providerNames().filter((name) => findProvider(name)?.key !== undefined)
}

/** A model that can be used with the keys that are set. */
export function keyedModel(): string | undefined {
  for (const provider of keyedProviders()) {
    const model = defaultModelOf(provider)
    if (model !== undefined) return `${provider}/${model}`
  }
  return undefined
}

/** Why a provider cannot be used, in words; undefined when it can, as far as is known before it is asked. */
export function providerTrouble(name: string): string | undefined {
  const provider = findProvider(name)
  if (provider === undefined) return `there is no provider of this name. There are ${providerNames().join(', ')}.`
  if (!provider.needsKey || provider.key !== undefined) return undefined
  return `it needs a key: set ${provider.keyNames.join(' or ')}.`
}
