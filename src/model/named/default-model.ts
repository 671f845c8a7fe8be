import { DefinitionError, messageOf } from '../../base/error.ts'
import type { Model } from '../model.ts'
import { readConfig } from './config.ts'
import { namedModel } from './named-model.ts'
import { ollamaModel, ollamaUrl } from './ollama.ts'
import { findProvider, providerNames } from './providers.ts'

/**
 * The model where nobody named one: `LEGATE_MODEL`, else `model` of the config file, else, when no key is set either,
 * the first model of an Ollama that answers. Throws a DefinitionError that lists what to set.
 */
export async function defaultModel(): Promise<Model> {
  const byVariable = process.env['LEGATE_MODEL']?.trim() ?? ''
  if (byVariable !== '') return named(byVariable, 'LEGATE_MODEL')
  const { model, path } = readConfig()
  if (model !== null) return named(model, `model in ${path}`)
  const withKey = providerNames().filter((name) => findProvider(name)?.key !== undefined)
  if (withKey.length > 0) throw nothingNamed(`There is a key for ${withKey.join(' and ')}, but no model was named.`)
  const found = await ollamaModel()
  if (found === undefined) throw nothingNamed('No key is set, and no Ollama answers.')
  if (found === null) throw nothingNamed(`The Ollama at ${ollamaUrl()} has no model that can chat: ollama pull MODEL.`)
  return namedModel(`ollama/${found}`)
}

/** Read now, so that a wrong name is told before anything is recorded, with where it was written. */
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
  const { path } = readConfig()
  return new DefinitionError(
    'definition',
    `${why} Set LEGATE_MODEL to "provider/model", or model in ${path}. Keys: OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY, OPENROUTER_API_KEY, DASHSCOPE_API_KEY. Without a key: start Ollama (OLLAMA_HOST says where).`,
  )
}
