import type { Model } from '../model.ts'
import { callableModel } from './named-model.ts'

/**
 * Finds a model by its name; without a name, that of `LEGATE_MODEL`, of the user's config file, or of a local Ollama.
 * Throws where there is none or its key is missing, and says what to set, before a run is recorded.
 */
export async function findModel(name?: string): Promise<Model> {
  if (name !== undefined) return callableModel(name)
  const { defaultModel } = await import('./default-model.ts')
  return callableModel((await defaultModel()).id)
}
