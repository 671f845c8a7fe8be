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
    return (await recipeAgent(withHostTools(definition), {
      grant: rootGrant(),
      ...(model === undefined ? {} : { model }),
      ...(subagents === undefined ? {} : { subagents }),
    })) as AnyAgent
  } catch (error) {
    throw refused(error)
  }
}

/** A file that says nothing of extensions uses what its host has: here that is the developer toolkit. */
function withHostTools(definition: AgentFile): AgentFile {
  return definition.extensions === null ? { ...definition, extensions: [DEVELOPER] } : definition
}

const DEVELOPER: NonNullable<AgentFile['extensions']>[number] = {
  type: 'builtin',
  name: 'developer',
  description: '',
  availableTools: [],
  required: false,
  displayName: null,
  timeoutSeconds: null,
}
