import { DefinitionError } from '../../base/error.ts'
import type { CurrentCall } from '../../tool/current.ts'
import type { StartedInside } from './lines.ts'

/** Finds an agent by its name. */
type FindAgent = (name: string) => object | undefined

/** Starts the agents that code had started when it was recorded, in its place, and waits for those it waited for. */
export async function startAgain(
  children: readonly StartedInside[],
  current: CurrentCall,
  find: FindAgent,
): Promise<void> {
  const outcomes: Promise<unknown>[] = []
  for (const child of children) {
    await Promise.all((child.after ?? []).map((place) => outcomes[place]))
    outcomes.push(start(child, current, find))
  }
  await Promise.all(outcomes)
}

async function start(child: StartedInside, current: CurrentCall, find: FindAgent): Promise<void> {
  const agent = find(child.agent)
  if (agent === undefined) {
    const message = `The recorded call has started the agent "${child.agent}". Its code does not run in a replay, so name the agent: replay(file, { agents: [...] }).`
    throw new DefinitionError('definition', message)
  }
  if (child.mode === 'called') await current.start(agent, child.input).outcome
  else await current.spawn(agent, child.input, { wake: child.wake ?? 'auto', sessionId: null })
}
