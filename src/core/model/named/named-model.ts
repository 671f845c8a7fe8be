import { DefinitionError, ModelError } from '../../base/error.ts'
import { nearest } from '../../base/options.ts'
import { adapt } from '../ai-sdk/from-ai-sdk.ts'
import { holdsUser, readModelConfig } from '../config.ts'
import type { Model, NamedKey } from '../model.ts'
import { openingIterator } from '../stream-parts.ts'
import { fullModelName, modelWithKey, resolveAlias } from './model-names.ts'
import { findProvider, loadModels, type Provider, providerNames } from './providers.ts'

/**
 * Makes a model from its name: `provider/model`, an alias, or a name that shows its provider, such as `gpt-5`. Resolves
 * nothing before the first use.
 */
export function namedModel(name: string): Model {
  let id: string | undefined
  let loading: Promise<Model> | undefined
  const loaded = (): Promise<Model> => {
    loading ??= load(name)
    // Allows another try: a key that was missing may be there the next time.
    loading.catch(() => {
      loading = undefined
    })
    return loading
  }
  return {
    get id() {
      id ??= resolve(name).id
      return id
    },
    stream(request, options) {
      const stream = loaded().then((model) => model.stream(request, options)[Symbol.asyncIterator]())
      return { [Symbol.asyncIterator]: () => openingIterator(stream) }
    },
    secrets: async () => (await (await loaded()).secrets?.()) ?? [],
    namedKey: () => keyOf(resolve(name).provider),
  }
}

/** A known provider's own key goes to that provider; one that the config file names goes where the file says. */
function keyOf({ keyNames: [variable], isKeyOfFile, key, url }: Provider): NamedKey | null {
  return isKeyOfFile && variable !== undefined && key !== undefined ? { variable, url } : null
}

/** Makes a model from its name and checks, without calling it, that its provider has the key and address it needs. */
export function callableModel(name: string): Model {
  resolveCallable(name)
  return namedModel(name)
}

async function load(name: string): Promise<Model> {
  const { id, provider, modelId } = resolveCallable(name)
  const { key: secret, hint, url } = provider
  const urlName = url === null ? undefined : whereUrlIs(provider)
  const adapted = { id, secret, keyName: provider.keyNames[0], hint, urlName }
  const [first, ...others] = (await loadModels(provider, modelId)).map((model) => adapt(model, adapted))
  if (first === undefined) throw noSuchModel(name, id)
  if (others.length === 0) return first
  const { firstServed } = await import('./first-served.ts')
  return firstServed([first, ...others])
}

interface ModelTarget {
  readonly id: string
  readonly provider: Provider
  readonly modelId: string
}

function resolve(name: string): ModelTarget {
  const id = fullModelName(name) ?? resolveAlias(name)
  const slash = id.indexOf('/')
  const providerName = id.slice(0, Math.max(0, slash))
  const modelId = id.slice(slash + 1)
  const provider = slash > 0 ? findProvider(providerName) : undefined
  if (provider === undefined || modelId === '') throw noSuchModel(name, id)
  if (provider.url !== null && holdsUser(provider.url)) throw userInUrl(provider)
  return { id, provider, modelId }
}

function resolveCallable(name: string): ModelTarget {
  const resolved = resolve(name)
  const { id, provider } = resolved
  if (provider.needsKey && provider.key === undefined) throw noKey(id, provider)
  if (provider.api === 'openai-compatible' && provider.url === null) throw noUrl(provider)
  return resolved
}

function noSuchModel(name: string, id: string): DefinitionError {
  const { aliases, path } = readModelConfig()
  const known = aliases.size === 0 ? `none in ${path}` : [...aliases.keys()].join(', ')
  const what = name === id ? `"${name}"` : `"${name}" (alias of "${id}")`
  const [written = '', ...rest] = id.split('/')
  const meant = rest.length === 0 ? undefined : nearest(written, providerNames())
  const hint = meant === undefined ? '' : ` Did you mean "${[meant, ...rest].join('/')}"?`
  return new DefinitionError(
    'definition',
    `There is no model ${what}.${hint} Write "provider/model", such as "openai/gpt-5", with one of the providers ${providerNames().join(', ')}; any other OpenAI-compatible server is named in ${path}: {"providers":{"NAME":{"url":"https://..."}}}. Aliases: ${known}.`,
  )
}

function noKey(id: string, { name, keyNames }: Provider): ModelError {
  const { path } = readModelConfig()
  const other = modelWithKey()
  const instead =
    other === undefined
      ? 'Without any key: start Ollama and use the model "ollama/NAME"'
      : `Or use a model whose key is set, such as "${other}"`
  return new ModelError(
    'model',
    `${id} needs a key. Set ${keyNames.join(' or ')}, or name another variable in ${path}: {"providers":{"${name}":{"keyEnv":"MY_KEY"}}}. ${instead} (legate takes --model).`,
  )
}

/** The variable or file that sets a provider's address, or could. */
function whereUrlIs({ name, urlNames }: Provider): string {
  const { providers, path } = readModelConfig()
  if (providers.get(name)?.url != null) return path
  return urlNames.find((one) => (process.env[one] ?? '').trim() !== '') ?? urlNames[0] ?? path
}

function userInUrl({ name, urlNames, keyNames }: Provider): DefinitionError {
  return new DefinitionError(
    'definition',
    `The address of the provider "${name}" holds a user or password. Take it out of ${urlNames.join(' or ')}: a key goes into ${keyNames.join(' or ')}.`,
  )
}

function noUrl({ name }: Provider): DefinitionError {
  const { path } = readModelConfig()
  return new DefinitionError('definition', `The provider "${name}" needs its url in ${path}, such as "https://.../v1".`)
}
