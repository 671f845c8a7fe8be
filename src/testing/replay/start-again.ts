import type { AnyAgent } from '../../agent/agent.ts'
import { DefinitionError } from '../../base/error.ts'
import type { CurrentCall } from '../../tool/current.ts'
import type { StartedInside } from './lines.ts'

/** Agents by their names. */
export type KnownAgents = ReadonlyMap<string, AnyAgent>

/** Starts the agents that code had started when it was recorded, in its place, and waits for those it waited for. */
export async function startAgain(
  children: readonly StartedInside[],
  current: CurrentCall,
  agents: KnownAgents,
): Promise<void> {
  const outcomes: Promise<unknown>[] = []
  for (const child of children) {
    await Promise.all((child.after ?? []).map((place) => outcomes[place]))
    outcomes.push(start(child, current, agents))
  }
  await Promise.all(outcomes)
}

async function start(child: StartedInside, current: CurrentCall, agents: KnownAgents): Promise<void> {
  const agent = agents.get(child.agent)
  if (agent === undefined) {
    const message = `The recorded call has started the agent "${child.agent}". Its code does not run in a replay, so name the agent: replay(file, { agents: [...] }).`
    throw new DefinitionError('definition', message)
  }
  if (child.mode === 'called') await current.start(agent, child.input).outcome
  else await current.spawn(agent, child.input, { wake: child.wake ?? 'auto', sessionId: null })
}
