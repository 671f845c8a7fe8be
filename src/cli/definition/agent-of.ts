import { type AnyAgent, type RecipeAgentOptions, recipeAgent } from '../../index.ts'
import type { AgentFile } from '../../recipe/index.ts'
import { refused } from './refused.ts'
import { rootGrant } from './root-grant.ts'

/** The agent that a definition describes, in this folder. `model` is used instead of what the file names. */
export async function agentOf(
  definition: AgentFile,
  { model, subagents }: Pick<RecipeAgentOptions, 'model' | 'subagents'> = {},
): Promise<AnyAgent> {
  try {
    return (await recipeAgent(definition, {
      grant: rootGrant(),
      ...(model === undefined ? {} : { model }),
      ...(subagents === undefined ? {} : { subagents }),
    })) as AnyAgent
  } catch (error) {
    throw refused(error)
  }
}
