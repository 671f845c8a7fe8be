import type { Model } from '../model.ts'

/**
 * The model where nobody names one: `LEGATE_MODEL`, that of the user's config file, or a local Ollama's. Throws a
 * DefinitionError that lists what to set.
 */
export async function findModel(): Promise<Model> {
  const { defaultModel } = await import('./default-model.ts')
  return defaultModel()
}
