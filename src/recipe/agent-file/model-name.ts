import { configured, isNoModel, wholeName } from '../../model/named/model-names.ts'
import { defaultModelOf, providerTrouble } from '../../model/named/provider-default.ts'
import { refuse } from '../text/notice.ts'
import type { AgentFile } from './agent-file.ts'

/**
 * The model a file asks for, as `provider/model`; null when it asks for its host's. A provider alone stands for its default
 * model. Throws a RecipeError that names the file where nobody knows whose model it is.
 */
export function modelOf({ model, provider, file }: Pick<AgentFile, 'model' | 'provider' | 'file'>): string | null {
  const said = model === null || isNoModel(model) ? null : model.trim()
  const by = provider?.trim() ?? ''
  if (said === null) return by === '' ? null : providersDefault(by, file)
  const name = by === '' ? wholeName(said) : ofProvider(by, said)
  if (name !== undefined) return name
  const hint = `Say what it stands for: "aliases": { "${said}": "provider/model" } in the config file.`
  throw refuse({ code: 'model', message: `the model \`${said}\` is no "provider/model" and no alias`, hint }, file)
}

/** What the config file makes of a name counts, whoever is said to provide it; another alias where it is of that provider. */
function ofProvider(provider: string, model: string): string {
  const own = configured(model)
  if (own !== model || model.startsWith(`${provider}/`)) return own
  const alias = model.includes('/') ? undefined : wholeName(model)
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
