import path from 'node:path'
import { oneOf, readOptions } from '../base/options.ts'
import type { AgentFile } from './agent-file/agent-file.ts'
import { missingAgents } from './discovery/named-agents.ts'
import { extensionSources, isBuiltIn } from './extension/extension-sources.ts'
import { isRecipeFile, readDefinition, recipeAgent } from './load-definition.ts'
import { type RecipeOptions, readRecipeFile } from './recipe/load-recipe.ts'
import { checkSubRecipes } from './recipe/sub-recipes.ts'
import { type Notice, noticesOf, Report } from './text/notice.ts'

/** What is to be said of a file: all of it, whether it can be used or not. */
export interface Validated {
  /** Null when the file cannot be used. The templates of a recipe are still in it. */
  readonly agent: AgentFile | null
  readonly notices: readonly Notice[]
}

/** Reads a recipe or an agent file and tells everything that is wrong with it. What refuses it is a notice too. */
export async function validateDefinition(file: string, options: Pick<RecipeOptions, 'mode'> = {}): Promise<Validated> {
  readOptions('validateDefinition(file, options)', options, { mode: oneOf('strict', 'lenient') })
  try {
    const agent = isRecipeFile(file) ? await wholeRecipe(file, options) : await readDefinition(file, options)
    const missing = [...missingExtensions(agent), ...(await missingAgents(agent))]
    const isUsable = missing.every(({ level }) => level !== 'error')
    return { agent: isUsable ? agent : null, notices: [...agent.notices, ...missing] }
  } catch (error) {
    const notices = noticesOf(error)
    if (notices.length === 0) throw error
    return { agent: null, notices }
  }
}

/** Extensions that there are not here, and what to use instead. Names that depend on values are known when they have them. */
function missingExtensions({ extensions, file }: AgentFile): readonly Notice[] {
  const known = (extensions ?? []).filter(({ name }) => !/\{[{%]/.test(name) && !isBuiltIn(name))
  return extensionSources(known, { file }).notices
}

/** With its sub-recipes, as far as their paths do not depend on values. */
async function wholeRecipe(file: string, options: Pick<RecipeOptions, 'mode'>): Promise<AgentFile> {
  const { recipe, notices } = await readRecipeFile(file, options)
  const known = recipe.subRecipes.filter((sub) => !/\{[{%]/.test(sub.path))
  await checkSubRecipes({ ...recipe, subRecipes: known }, new Report(path.resolve(file), options.mode === 'lenient'))
  return recipeAgent({ recipe, notices })
}
