import { readDefinition } from '../../doors/recipe.ts'
import { type McpPrompt, recipePrompt } from '../../server/protocols/mcp/index.ts'
import type { Call } from '../command/command.ts'
import { missingOf } from '../definition/input.ts'
import { definitionFile } from '../definition/load.ts'
import { isModule } from '../definition/module-agent.ts'
import { asUsageError } from '../definition/notices.ts'
import { oneLine } from '../terminal/clean.ts'

/** The prompts of recipes, and the words that are left for agents. */
export interface SplitWords {
  readonly prompts: readonly McpPrompt[]
  readonly words: readonly string[]
  /** One line for each recipe that is no agent here, and why. */
  readonly notices: readonly string[]
}

/** Takes recipes as prompts. One that needs values of a person is a prompt only: an agent has nobody to ask for them. */
export async function splitPrompts(call: Call): Promise<SplitWords> {
  const prompts: McpPrompt[] = []
  const words: string[] = []
  const notices: string[] = []
  for (const word of call.words) {
    const prompt = isModule(word) ? undefined : await promptOf(word, call.env)
    if (prompt !== undefined) prompts.push(prompt.prompt)
    if (prompt === undefined || prompt.missing.length === 0) words.push(word)
    else notices.push(noticeOf(word, prompt.missing))
  }
  return { prompts, words, notices }
}

function noticeOf(file: string, missing: readonly string[]): string {
  const listed = missing.map(oneLine).join(', ')
  return `${oneLine(file)} needs values of a person (${listed}), so clients of MCP get it as a prompt, and nobody gets it as an agent. Give each of these parameters a default to serve it as an agent.`
}

async function promptOf(word: string, env: NodeJS.ProcessEnv) {
  const file = await definitionFile(word, env)
  if (!/\.(?:ya?ml|json)$/i.test(file)) return undefined
  try {
    const prompt = await recipePrompt(file)
    const { parameters } = await readDefinition(file)
    return prompt === undefined
      ? undefined
      : { prompt, missing: missingOf(new Map(), parameters).map(({ key }) => key) }
  } catch (error) {
    throw asUsageError(error)
  }
}
