import { type AnyAgent, agent, type Model } from '../../index.ts'
import { type AgentFile, type Definition, discover, loadDefinition, noticesOf } from '../../recipe/index.ts'
import { agentOf } from '../definition/agent-of.ts'
import { rootGrant } from '../definition/root-grant.ts'
import { mentionOf, toolName } from './mentions.ts'

/** More than a model chooses from well; whoever is named with an @ is always among them. */
const MOST_OFFERED = 30

const INSTRUCTIONS = `You talk with a person at a terminal and help with what they ask. Answer briefly, in plain text.
Where one of your subagents fits a request by its description, delegate to it and build your answer on what it says. A message that begins with @name was handed to that subagent already: tell the person what came of it, and do not repeat all of it.`

export interface ChatParts {
  /** Whose chat it is; undefined: an assistant's that has the definitions found here as subagents. */
  readonly definition: AgentFile | undefined
  readonly model: Model
  readonly env: NodeJS.ProcessEnv
}

/** The agent of the next turn: definitions are read anew, so that what has changed on disk is seen. */
export async function chatAgent({ definition, model, env }: ChatParts, message: string): Promise<AnyAgent> {
  const found = await subagentsFor(message, env)
  const subagents = Object.fromEntries(found.map(({ tool, agent: one }) => [tool, one]))
  if (definition !== undefined) return agentOf(definition, model, subagents)
  return agent({
    name: 'assistant',
    description: 'Talks with a person at a terminal.',
    instructions: INSTRUCTIONS,
    model,
    subagents,
    grant: rootGrant(),
  }) as AnyAgent
}

interface Offered {
  readonly tool: string
  readonly agent: AnyAgent
}

async function subagentsFor(message: string, env: NodeJS.ProcessEnv): Promise<readonly Offered[]> {
  const { definitions } = await discover({ env })
  const taken = definitions.filter(({ shadowedBy }) => shadowedBy === null)
  const named = mentionOf(message)?.name ?? ''
  const isNamed = ({ name }: Definition) => name === named
  const first = [...taken.filter(isNamed), ...taken.filter((one) => !isNamed(one))].slice(0, MOST_OFFERED)
  const offered = await Promise.all(first.map(offer))
  // Two names may give one tool: the nearer has it.
  const byTool = new Map(offered.flatMap((one) => (one === undefined ? [] : [[one.tool, one] as const])).toReversed())
  return [...byTool.values()].toReversed()
}

/** A file that is broken, hidden, or needs values that nobody gave is not offered: doctor tells of it. */
async function offer({ file, name }: Definition): Promise<Offered | undefined> {
  try {
    const definition = await loadDefinition(file)
    if (definition.isHidden) return undefined
    return { tool: toolName(name), agent: agentOf(definition, undefined) }
  } catch (error) {
    if (noticesOf(error).length === 0) throw error
    return undefined
  }
}
