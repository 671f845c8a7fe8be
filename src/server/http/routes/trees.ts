import { InputError } from '../../../index.ts'
import { json, type Route } from '../table/route.ts'
import { answer, given, param } from './parts.ts'

const LEAST_TYPED = 4
const MOST_TREES = 200

/** Routes for programs that show trees as those with the store do: the command line, above all. */
export const TREE_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/find',
    scope: 'read',
    summary: 'The runs, conversations and nodes that you see whose id ends in this way.',
    query: { ending: { type: 'string', description: 'At least the last 4 characters of an id.', default: '' } },
    answers: { 200: answer('FoundIds', 'What was found, and the newest deleted one where nothing was.') },
    example: { query: 'ending=00000000' },
    handler: async ({ runtime, query }) => {
      const ending = query.text('ending') ?? ''
      if (/^[0-9a-f-]{4,36}$/.test(ending)) return json(await runtime.find(ending))
      throw new InputError(
        'invalid_input',
        `Give at least the last ${LEAST_TYPED} characters of an id: ?ending=1f0c9a2e.`,
      )
    },
  },
  {
    method: 'GET',
    path: '/v1/trees',
    scope: 'read',
    summary: 'The rows of the newest trees that you see, or of those with an open run, with their open nodes.',
    query: {
      state: {
        type: 'string',
        description: '`open`: only trees with an open run.',
        enum: ['open', 'any'],
        default: 'any',
      },
      owner: { type: 'string', description: 'Only those of this owner.' },
      before: { type: 'string', description: 'The `next` of the page before.' },
      limit: { type: 'integer', description: 'The most trees.', minimum: 1, maximum: MOST_TREES, default: 50 },
    },
    answers: { 200: answer('Trees', 'The trees, newest first.') },
    handler: async ({ runtime, query }) => {
      const limit = query.number('limit') ?? 50
      const isOpen = query.text('state') === 'open'
      const parts = given({ owner: query.text('owner'), before: query.text('before') })
      return json(await runtime.trees({ ...parts, limit, isOpen }))
    },
  },
  {
    method: 'GET',
    path: '/v1/trees/{id}',
    scope: 'read',
    summary: 'The rows of one tree, by the id of anything in it.',
    params: { id: 'id' },
    query: {
      nodes: { type: 'string', description: 'All nodes, or the open ones.', enum: ['all', 'open'], default: 'all' },
      after: { type: 'string', description: 'The `next` of the page before.' },
    },
    answers: { 200: answer('Rows', 'Conversations, turns, nodes, edges and links.') },
    handler: async (call) => {
      const nodes = call.query.text('nodes') as 'all' | 'open'
      return json(await call.runtime.treeData(param(call), { nodes, ...given({ after: call.query.text('after') }) }))
    },
  },
  {
    method: 'GET',
    path: '/v1/trees/{id}/events',
    scope: 'read',
    summary: 'Recorded events of a whole tree, and what its running nodes have said so far.',
    params: { id: 'id' },
    query: {
      after: { type: 'integer', description: 'Only events after this `seq`.', default: 0 },
      limit: { type: 'integer', description: 'The most events.', minimum: 1, maximum: 1_000, default: 500 },
    },
    answers: { 200: answer('TreeEvents', 'The events, in order, and the blocks of running nodes.') },
    handler: async (call) => {
      const { query } = call
      const [after, limit] = [query.number('after') ?? 0, query.number('limit') ?? 500]
      return json(await call.runtime.treeEvents(param(call), { after, limit }))
    },
  },
]
