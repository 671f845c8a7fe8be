import type { Model } from '../model.ts'
import { callableModel } from './named-model.ts'

/**
 * A model by its name, or where nobody names one that of `LEGATE_MODEL`, of the user's config file, or a local Ollama's.
 * Throws where there is none, or where its key is missing, with what to set: to be told before a run is recorded.
 */
export async function findModel(name?: string): Promise<Model> {
  if (name !== undefined) return callableModel(name)
  const { defaultModel } = await import('./default-model.ts')
  return callableModel((await defaultModel()).id)
}
