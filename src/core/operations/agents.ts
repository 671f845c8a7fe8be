// Operations of the agents that a runtime can start.

import { NotFoundError } from '../base/error.ts'
import type { Explanation } from '../grant/decide.ts'
import { mayStart } from '../grant/principal.ts'
import type { Page } from './form/page.ts'
import type { AgentInfo } from './look/agent-info.ts'
import { operation } from './operation.ts'
import type { Asking } from './port.ts'
import { bodySchema, SHORT } from './schemas.ts'

export const AGENTS = {
  /** The agents that the principal may start, by name. */
  agents: operation({
    summary: 'The agents that you may start, with their schemas and the most that a run may use.',
    scope: 'read',
    http: 'GET /v1/agents',
    gives: ['Agents', 'The agents, by name.'],
    as: agents,
    wire: (found: readonly AgentInfo[]): Page<'agents', AgentInfo> => ({ agents: found, next: null }),
  }),

  /** An agent: its description, its schemas, and what a run of it may cost. */
  agent: operation({
    summary: 'One agent.',
    scope: 'read',
    of: 'agent',
    http: 'GET /v1/agents/{name}',
    gives: ['Agent', 'The agent.'],
    serve: async (who, name: string): Promise<AgentInfo> => {
      const found = (await agents(who)).find((one) => one.name === name)
      if (found === undefined) throw new NotFoundError('not_found', 'There is no such agent.')
      return found
    },
  }),

  /** Why a run of an agent may or may not do something: `tool:deploy`. */
  explain: operation({
    summary: 'Says why a run of this agent may or may not do something.',
    scope: 'read',
    of: 'agent',
    http: 'POST /v1/agents/{name}/explain',
    body: bodySchema({ request: { ...SHORT, description: 'The request: `tool:deploy`.' } }, ['request']),
    plain: ['request'],
    gives: ['Explanation', 'The verdict and the layers that made it.'],
    example: { body: { request: 'tool:deploy' } },
    serve: async (who, name: string, request: string): Promise<Explanation> =>
      who.on.explain(who.agentToStart(name), request),
  }),
} as const

async function agents({ on, principal, isOffered }: Asking): Promise<readonly AgentInfo[]> {
  const known = await on.agents()
  return known.filter(({ name }) => isOffered(name) && mayStart(principal, name))
}
