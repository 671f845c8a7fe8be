import type { NodeRun } from '../../agent/node-run.ts'
import { messageOf } from '../../base/error.ts'
import { aliasOf, isNoModel, wholeName } from '../../model/named/model-names.ts'
import { defaultModelOf, providerTrouble } from '../../model/named/provider-default.ts'
import { invalid } from './refusal.ts'

/** What one of those who may choose says; blank is nothing. */
export interface ModelChoice {
  readonly provider?: string | null | undefined
  readonly model?: string | null | undefined
}

/**
 * The model of a child as `provider/model`; null: its host's. The first of the choices that says anything decides. A
 * provider alone stands for the model that is named with it further down, else for its default.
 */
export function chooseModel(run: NodeRun, choices: readonly ModelChoice[]): string | null {
  const said = choices.map(({ provider, model }) => ({ provider: blank(provider), model: withoutInherit(model) }))
  const at = said.findIndex(({ provider, model }) => provider !== null || model !== null)
  const first = said[at]
  if (first === undefined) return null
  const hosts = hostModel(run)
  const rest = [...said.slice(at + 1), hosts]
  const name =
    first.model === null ? byProvider(first.provider ?? '', rest) : byModel(run, first.model, { first, rest })
  if (name === `${hosts.provider}/${hosts.model}`) return null
  check(run, name)
  return name
}

/** What a file says: its model tells its provider, also where its host has another. */
export function choiceOf({ home: { maker } }: NodeRun, { provider, model }: ModelChoice): ModelChoice {
  const said = withoutInherit(model)
  if (said === null || blank(provider) !== null || maker.hasModelNamed(said)) return { provider, model: said }
  return { provider: null, model: wholeName(said) ?? said }
}

interface Said {
  readonly provider: string | null
  readonly model: string | null
}

function byProvider(provider: string, rest: readonly Said[]): string {
  const same = rest.find((one) => one.provider === provider && one.model !== null)
  const model = same?.model ?? defaultModelOf(provider)
  if (model !== undefined) return `${provider}/${model}`
  return invalid(
    `Failed to create provider '${provider}': ${providerTrouble(provider) ?? 'it has no default model; name one'}`,
  )
}

function byModel(run: NodeRun, model: string, { first, rest }: { first: Said; rest: readonly Said[] }): string {
  if (first.provider !== null) return `${first.provider}/${model}`
  if (run.home.maker.hasModelNamed(model) || model.includes('/')) return model
  return aliasOf(model) ?? `${rest.find(({ provider }) => provider !== null)?.provider ?? 'unknown'}/${model}`
}

/** Told before anything is started: a provider that nobody knows, or whose key is not there. */
function check(run: NodeRun, name: string): void {
  if (run.home.maker.hasModelNamed(name)) return
  const provider = name.slice(0, Math.max(0, name.indexOf('/')))
  try {
    const trouble = providerTrouble(provider)
    if (trouble !== undefined) invalid(`Failed to create provider '${provider}': ${trouble}`)
    run.home.maker.modelNamed(name).id.toString()
  } catch (error) {
    invalid(
      `Failed to create provider '${provider}': ${messageOf(error).replace(/^Failed to create provider '[^']*': /, '')}`,
    )
  }
}

function hostModel(run: NodeRun): Said {
  const id = run.home.modelOf(run.agent, run)?.id ?? ''
  const slash = id.indexOf('/')
  return slash < 1 ? { provider: null, model: null } : { provider: id.slice(0, slash), model: id.slice(slash + 1) }
}

function blank(text: string | null | undefined): string | null {
  return text == null || text.trim() === '' ? null : text.trim()
}

/** `inherit` and `default`, however they are spelt, say nothing. */
function withoutInherit(model: string | null | undefined): string | null {
  const said = blank(model)
  return said === null || isNoModel(said) ? null : said
}
