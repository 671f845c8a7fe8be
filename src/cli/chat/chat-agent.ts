import type { AnyAgent } from '../../index.ts'
import { type AgentFile, EMPTY_AGENT_FILE } from '../../recipe/index.ts'
import { agentOf, type compatOf } from '../definition/agent-of.ts'

const INSTRUCTIONS = `You talk with a person at a terminal and help with what they ask. Answer briefly, in plain text.
Where a source that you can delegate to fits a request by its description, delegate to it and build your answer on what it says. A message that begins with @name was handed to that source already: tell the person what came of it, and do not repeat all of it.`

/** Whose chat it is when no file is named. */
export const ASSISTANT: AgentFile = {
  ...EMPTY_AGENT_FILE,
  name: 'assistant',
  description: 'Talks with a person at a terminal.',
  instructions: INSTRUCTIONS,
}

type Compat = ReturnType<typeof compatOf>

/** The agent of a chat: it can delegate to every definition that is found from here, each time anew. */
export function chatAgent(definition: AgentFile, model: string, { subagents }: Compat = {}): Promise<AnyAgent> {
  return agentOf(definition, { model, subagents: { ...subagents, surfaces: ['delegate'], discover: true } })
}
