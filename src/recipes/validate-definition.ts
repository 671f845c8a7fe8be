import path from 'node:path'
import { messageOf } from '../core/base/error.ts'
import { oneOf, readOptions } from '../core/base/options.ts'
import { configuredModel } from '../core/model/named/find-model.ts'
import { fullModelName, modelWithKey, providerTrouble } from '../core/model/named/model-names.ts'
import type { AgentFile } from './agent-file/agent-file.ts'
import { modelOf } from './agent-file/names.ts'
import { missingAgents } from './discovery/discover.ts'
import { agentFileOfRecipe, isRecipeFile, readDefinition, unmetNotice } from './discovery/load-definition.ts'
import { extensionSources, isBuiltIn } from './extension/extension-sources.ts'
import { type RecipeOptions, readRecipeFile } from './recipe/load-recipe.ts'
import { checkSubRecipes } from './recipe/sub-recipes.ts'
import { type Notice, NoticeReport, noticesOf } from './text/notice.ts'

/** All findings about a file, whether it can be used or not. */
export interface ValidationResult {
  /** Null if the file cannot be used. The templates of a recipe stay in place. */
  readonly agent: AgentFile | null
  readonly notices: readonly Notice[]
}

/** Reads a recipe or an agent file and reports every problem, including those that refuse it. */
export async function validateDefinition(
  file: string,
  options: Pick<RecipeOptions, 'mode'> = {},
): Promise<ValidationResult> {
  readOptions('validateDefinition(file, options)', options, { mode: oneOf('strict', 'lenient') })
  try {
    const agent = isRecipeFile(file) ? await wholeRecipe(file, options) : await readDefinition(file, options)
    const missing = [...unmetDemands(agent), ...missingExtensions(agent), ...(await missingAgents(agent))]
    const isUsable = missing.every(({ level }) => level !== 'error')
    return { agent: isUsable ? agent : null, notices: [...agent.notices, ...missing] }
  } catch (error) {
    const notices = noticesOf(error)
    if (notices.length === 0) throw error
    return { agent: null, notices }
  }
}

/** Reports what a file asks for and is not given: it can be read and converted, and it does not start. */
function unmetDemands({ unmet, file }: AgentFile): readonly Notice[] {
  return unmet.map((one) => ({ level: 'error', line: null, hint: null, ...unmetNotice(one, file), file }))
}

/**
 * Reports extensions that do not exist here, and what to use instead. Names that depend on values are checked later.
 */
function missingExtensions({ extensions, file }: AgentFile): readonly Notice[] {
  const known = (extensions ?? []).filter(({ name }) => !/\{[{%]/.test(name) && !isBuiltIn(name))
  return extensionSources(known, { file }).notices
}

/** Reads a recipe with its sub-recipes, unless their paths depend on values. */
async function wholeRecipe(file: string, options: Pick<RecipeOptions, 'mode'>): Promise<AgentFile> {
  const { recipe, includes, notices } = await readRecipeFile(file, options)
  const known = recipe.subRecipes.filter((sub) => !/\{[{%]/.test(sub.path))
  await checkSubRecipes(
    { ...recipe, subRecipes: known },
    new NoticeReport(path.resolve(file), options.mode === 'lenient'),
  )
  return agentFileOfRecipe({ recipe, includes, notices })
}

/** The model a file would run with here, as far as it is known without asking a provider. */
export interface ModelUse {
  /** `provider/model`. Null if none is named, its provider is unknown, or it depends on a parameter. */
  readonly name: string | null
  /** Where the name comes from: `the file`, `LEGATE_MODEL`, or `model in` the config file; null if nowhere. */
  readonly where: string | null
  /** The reason why it cannot be used, and what to set; null if none is known. */
  readonly trouble: string | null
}

export function modelUse(file: Pick<AgentFile, 'model' | 'provider' | 'file'>): ModelUse {
  if (/\{[{%]/.test(`${file.provider} ${file.model}`)) return { name: null, where: 'the file', trouble: null }
  try {
    const own = modelOf(file)
    const said = own === null ? configuredModel() : { name: own, where: 'the file' }
    return said === undefined ? unnamedModel() : { ...said, ...known(said.name) }
  } catch (error) {
    const [notice] = noticesOf(error)
    const trouble = notice === undefined ? messageOf(error) : `${notice.message}. ${notice.hint ?? ''}`.trim()
    return { name: null, where: null, trouble }
  }
}

function known(said: string): Pick<ModelUse, 'name' | 'trouble'> {
  const name = fullModelName(said)
  if (name === undefined) return { name: null, trouble: `"${said}" is no "provider/model" and no alias` }
  const why = providerTrouble(name.slice(0, name.indexOf('/')))
  return { name, trouble: why === undefined ? null : `${name}: ${why}` }
}

function unnamedModel(): ModelUse {
  const model = modelWithKey()
  const trouble = model === undefined ? NOTHING : `no model is named: set LEGATE_MODEL=${model}`
  return { name: null, where: null, trouble }
}

/** Whether an Ollama server answers is known only when it is asked. */
const NOTHING =
  'no model is named and no key is set: set LEGATE_MODEL=provider/model and the key of the provider, or start Ollama'
