import { DefinitionError, messageOf } from '../../base/error.ts'
import { readModelConfig } from '../config.ts'
import type { Model } from '../model.ts'
import { modelWithKey, providersWithKey } from './model-names.ts'
import { callableModel, namedModel } from './named-model.ts'
import { ollamaUrl } from './providers.ts'

/**
 * Finds a model by its name; without a name, that of `LEGATE_MODEL`, of the user's config file, or of a local Ollama.
 * Throws where there is none or its key is missing, and says what to set, before a run is recorded.
 */
export async function findModel(name?: string): Promise<Model> {
  if (name !== undefined) return callableModel(name)
  return callableModel((await defaultModel()).id)
}

/** The model of an agent that names none. Throws a DefinitionError that says what to set. */
export async function modelFor(agent: string): Promise<Model> {
  try {
    return await defaultModel()
  } catch (error) {
    const message = `"${agent}" has no model: name one in agent({ model }), or one for all in createRuntime({ model }); on the command line --model. ${messageOf(error)}`
    throw new DefinitionError('definition', message)
  }
}

/**
 * Finds the model where nobody named one: `LEGATE_MODEL`, else `model` of the config file, else, when no key is set
 * either, the first model of an Ollama that answers. Throws a DefinitionError that lists the settings.
 */
async function defaultModel(): Promise<Model> {
  const said = configuredModel()
  if (said !== undefined) return named(said.name, said.where)
  const withKey = providersWithKey()
  if (withKey.length > 0) throw nothingNamed(`There is a key for ${withKey.join(' and ')}, but no model was named.`)
  const { ollamaModel } = await import('./ollama.ts')
  const found = await ollamaModel()
  if (found === undefined) throw nothingNamed(`No model was named, no key is set, and no Ollama answers. ${KEYS}`)
  if (found === null) throw nothingNamed(`The Ollama at ${ollamaUrl()} has no model that can chat: ollama pull MODEL.`)
  return namedModel(`ollama/${found}`)
}

/** The model name that the user has set for all programs, and where. */
export function configuredModel(): { readonly name: string; readonly where: string } | undefined {
  const byVariable = process.env['LEGATE_MODEL']?.trim() ?? ''
  if (byVariable !== '') return { name: byVariable, where: 'LEGATE_MODEL' }
  const { model, path } = readModelConfig()
  return model === null ? undefined : { name: model, where: `model in ${path}` }
}

/** Resolved now, so that a wrong name fails before anything is recorded, with the place where it was written. */
function named(name: string, where: string): Model {
  const model = namedModel(name)
  try {
    if (model.id !== '') return model
  } catch (error) {
    throw new DefinitionError('definition', `${where} says "${name}". ${messageOf(error)}`, { cause: error })
  }
  return model
}

function nothingNamed(why: string): DefinitionError {
  const { path } = readModelConfig()
  const model = modelWithKey() ?? 'anthropic/claude-sonnet-5'
  return new DefinitionError(
    'definition',
    `${why} Set LEGATE_MODEL=${model}, or model in ${path}; legate also takes --model ${model}.`,
  )
}

const KEYS =
  'Set a key: OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY, OPENROUTER_API_KEY, DASHSCOPE_API_KEY; or start Ollama (OLLAMA_HOST says where).'
