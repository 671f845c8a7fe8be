import { type AnyAgent, type RecipeAgentOptions, recipeAgent } from '../../index.ts'
import type { AgentFile } from '../../recipe/index.ts'
import { type Call, CliError, EXIT, textOption } from '../command.ts'
import { oneLine } from '../terminal/clean.ts'
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

/** What `--compat` says of the tools with which a file starts subagents. */
export function compatOf(call: Call): Pick<RecipeAgentOptions, 'subagents'> {
  const compat = textOption(call, 'compat')
  if (compat === undefined) return {}
  if (compat === 'aster') return { subagents: { compat } }
  throw new CliError(`There is no --compat "${oneLine(compat)}". There is: aster.`, EXIT.usage)
}

/** What is in code says there how its subagents are started. */
export function refuseCompat(call: Call): void {
  if (textOption(call, 'compat') === undefined) return
  throw new CliError(
    "--compat is for a recipe or agent file; in code it is openSubagents({ compat: 'aster' }).",
    EXIT.usage,
  )
}
