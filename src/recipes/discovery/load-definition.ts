import path from 'node:path'
import { readOptions } from '../../core/base/options.ts'
import { smallerBudget } from '../../core/grant/budget.ts'
import { type AgentFile, EMPTY_AGENT_FILE, type UnmetDemand } from '../agent-file/agent-file.ts'
import { loadAgentFile } from '../dialects/load-agent-file.ts'
import {
  type LoadedRecipe,
  loadRecipe,
  RECIPE_OPTIONS,
  type RecipeOptions,
  readRecipeFile,
} from '../recipe/load-recipe.ts'
import { type NoticeParts, refuseFile } from '../text/notice.ts'
import { readTextNow } from '../text/read-text.ts'

/** Loads a recipe or an agent file of any dialect to run it. Throws a RecipeError with file, line and hint. */
export async function loadDefinition(file: string, options: RecipeOptions = {}): Promise<AgentFile> {
  const { mode, folder } = readOptions('loadDefinition(file, options)', options, RECIPE_OPTIONS)
  if (!isRecipeFile(file)) {
    const agent = await loadAgentFile(file, {
      ...(mode === undefined ? {} : { mode }),
      ...(folder === undefined ? {} : { folder }),
    })
    checkStartable(agent)
    return agent
  }
  const agent = agentFileOfRecipe(await loadRecipe(file, options))
  checkStartable(agent)
  return agent
}

/** Refuses a file that is switched off, or asks for what is not given here, whichever way it is started. */
export function checkStartable({ isDisabled, unmet, file }: AgentFile): void {
  if (isDisabled) {
    const finding = { code: 'disabled', message: 'it is switched off by its file' } as const
    throw refuseFile({ ...finding, hint: 'Remove `disable` to run it.' }, file)
  }
  const [first] = unmet
  if (first !== undefined) throw refuseFile(unmetNotice(first, file), file)
}

/** Says that an agent is not started without what its file asks for. */
export function unmetNotice({ field, line, what }: UnmetDemand, file: string): NoticeParts {
  const message = `\`${field}\` in ${path.basename(file)} asks for ${what}, which is not given here: it is not started`
  return { code: 'unmet', message, line, hint: 'Remove the field to run it without.' }
}

/** Reads a recipe or an agent file and leaves the templates of a recipe in place. */
export async function readDefinition(
  file: string,
  options: Pick<RecipeOptions, 'mode' | 'folder' | 'isKept'> = {},
): Promise<AgentFile> {
  return isRecipeFile(file) ? agentFileOfRecipe(await readRecipeFile(file, options)) : loadAgentFile(file, options)
}

/**
 * Recognizes recipes by the file ending; without one, a file is a recipe unless it begins like an agent file. Throws a
 * RecipeError if the ending shows that it is something else.
 */
export function isRecipeFile(file: string): boolean {
  if (/\.(?:ya?ml|json)$/i.test(file)) return true
  if (/\.(?:md|markdown|toml)$/i.test(file)) return false
  const text = readTextNow(path.resolve(file))
  if (path.extname(file) === '') return !/^\ufeff?---\s*\n/.test(text)
  const message = 'neither a recipe (.yaml, .json) nor an agent file (.md, .toml)'
  throw refuseFile({ code: 'unreadable', message, hint: 'Name it by its kind, if it is one.' }, path.resolve(file))
}

export function agentFileOfRecipe({ recipe, includes, notices }: LoadedRecipe): AgentFile {
  const { settings } = recipe
  const file = recipe.file ?? ''
  const { author, activities } = recipe
  const turns = settings.maxTurns === null ? undefined : { modelCalls: settings.maxTurns }
  return {
    ...EMPTY_AGENT_FILE,
    dialect: 'recipe',
    file,
    includes,
    name: recipeName(file),
    title: recipe.title,
    description: recipe.description,
    instructions: recipe.instructions ?? '',
    prompt: recipe.prompt,
    model: settings.model,
    provider: settings.provider,
    settings: settings.temperature === null ? {} : { temperature: settings.temperature },
    extensions: recipe.extensions,
    grant: recipe.grant,
    neverAsks: recipe.neverAsks,
    isDisabled: recipe.isDisabled,
    budget: smallerBudget(turns, recipe.budget ?? undefined) ?? null,
    output: recipe.response?.jsonSchema ?? null,
    retry: recipe.retry,
    parameters: recipe.parameters,
    subRecipes: recipe.subRecipes,
    properties: {
      ...(author === null ? {} : { author: { ...author } }),
      ...(activities.length === 0 ? {} : { activities: [...activities] }),
    },
    notices,
  }
}

/** A recipe is named after its file. */
export function recipeName(file: string): string {
  return path.basename(file).replace(/\.(?:ya?ml|json)$/i, '')
}
