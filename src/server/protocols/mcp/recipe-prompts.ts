// Recipes as prompts: a person chooses one in a client, fills in its parameters, and gets its text.

import path from 'node:path'
import { loadRecipe, type RecipeParameter, readRecipeFile } from '../../../doors/recipe.ts'
import { DeniedError } from '../../../index.ts'
import type { McpPrompt, McpPromptArgument } from './offer.ts'

/** The recipe of a file as a prompt; undefined where it has no prompt. */
export async function recipePrompt(file: string): Promise<McpPrompt | undefined> {
  const { title, description, parameters, prompt } = (await readRecipeFile(file)).recipe
  if (prompt === null) return undefined
  const name = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
  return {
    name: name === '' ? 'recipe' : name,
    title,
    description,
    // An agent of a recipe has the name of its file.
    agent: path.parse(file).name,
    arguments: parameters.map(argumentOf),
    get: async (args) => {
      const { recipe } = await loadRecipe(file, { parameters: args, readFile: refuseFile })
      const text = [recipe.instructions, recipe.prompt].filter((part) => part !== null).join('\n\n')
      return { description, messages: [{ role: 'user', content: { type: 'text', text } }] }
    },
  }
}

function argumentOf({ key, description, requirement, options }: RecipeParameter): McpPromptArgument {
  const values = options.length === 0 ? {} : { values: options }
  return { name: key, description, required: requirement !== 'optional', ...values }
}

/** A caller names no files of this machine. */
function refuseFile(_: string, key: string): Promise<string> {
  throw new DeniedError('denied', `The parameter "${key}" is a file of this machine, which callers cannot name.`)
}
