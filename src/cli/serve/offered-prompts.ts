import { readDefinition } from '../../doors/recipe.ts'
import { type McpPrompt, recipePrompt } from '../../server/protocols/mcp/index.ts'
import type { Call } from '../command/command.ts'
import { missingOf } from '../definition/input.ts'
import { definitionFile } from '../definition/load.ts'
import { isModule } from '../definition/module-agent.ts'
import { asUsageError } from '../definition/notices.ts'

/** The prompts of recipes, and the words that are left for agents. */
export interface SplitWords {
  readonly prompts: readonly McpPrompt[]
  readonly words: readonly string[]
}

/** Takes recipes as prompts. One that needs values of a person is a prompt only: an agent has nobody to ask for them. */
export async function splitPrompts(call: Call): Promise<SplitWords> {
  const prompts: McpPrompt[] = []
  const words: string[] = []
  for (const word of call.words) {
    const prompt = isModule(word) ? undefined : await promptOf(word, call.env)
    if (prompt !== undefined) prompts.push(prompt.prompt)
    if (prompt?.needsValues !== true) words.push(word)
  }
  return { prompts, words }
}

async function promptOf(word: string, env: NodeJS.ProcessEnv) {
  const file = await definitionFile(word, env)
  if (!/\.(?:ya?ml|json)$/i.test(file)) return undefined
  try {
    const prompt = await recipePrompt(file)
    const { parameters } = await readDefinition(file)
    return prompt === undefined ? undefined : { prompt, needsValues: missingOf(new Map(), parameters).length > 0 }
  } catch (error) {
    throw asUsageError(error)
  }
}
