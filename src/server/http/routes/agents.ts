import { NotFoundError } from '../../../index.ts'
import { json, type Route } from '../table/route.ts'
import { answer, bodyOf, bodySchema, param, SHORT } from './parts.ts'

/** Routes of agents. */
export const AGENT_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/agents',
    scope: 'read',
    summary: 'The agents that you may start, with their schemas and the most that a run may use.',
    answers: { 200: answer('Agents', 'The agents, by name.') },
    handler: async ({ runtime }) => json({ agents: await runtime.agents(), next: null }),
  },
  {
    method: 'GET',
    path: '/v1/agents/{name}',
    scope: 'read',
    summary: 'One agent.',
    params: { name: 'name' },
    answers: { 200: answer('Agent', 'The agent.') },
    handler: async (call) => {
      const found = (await call.runtime.agents()).find(({ name }) => name === param(call, 'name'))
      if (found === undefined) throw new NotFoundError('not_found', 'There is no such agent.')
      return json(found)
    },
  },
  {
    method: 'POST',
    path: '/v1/agents/{name}/explain',
    scope: 'read',
    summary: 'Says why a run of this agent may or may not do something.',
    params: { name: 'name' },
    body: bodySchema({ request: { ...SHORT, description: 'The request: `tool:deploy`.' } }, ['request']),
    answers: { 200: answer('Explanation', 'The verdict and the layers that made it.') },
    example: { body: { request: 'tool:deploy' } },
    handler: async (call) => {
      const { request } = bodyOf<{ readonly request: string }>(call)
      return json(await call.runtime.explain({ agent: param(call, 'name') }, request))
    },
  },
]
