import { refuse } from '../text/notice.ts'
import type { AgentFile } from './agent-file.ts'

/** Whose models are named how, for ids without a provider. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^(?:gpt-|o\d|codex-|chatgpt-)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'google'],
]

/**
 * The model a file asks for, as `provider/model`; null when it asks for its host's. An alias such as `sonnet` is looked up
 * in `aliases`; one that nobody defined gives a RecipeError that names the file.
 */
export function modelOf(
  { model, provider, file }: Pick<AgentFile, 'model' | 'provider' | 'file'>,
  aliases: ReadonlyMap<string, string>,
): string | null {
  if (model === null) return null
  const alias = aliases.get(model) ?? aliases.get(model.toLowerCase())
  if (alias !== undefined) return alias
  if (provider !== null && provider !== '') return `${provider}/${model}`
  if (model.includes('/')) return model
  const family = FAMILIES.find(([pattern]) => pattern.test(model))
  if (family !== undefined) return `${family[1]}/${model}`
  const hint = `Set what it stands for: "aliases": { "${model}": "provider/model" } in the config file.`
  throw refuse({ code: 'model', message: `the model \`${model}\` is no "provider/model" and no alias`, hint }, file)
}
