import { parseJson } from '../../../core/base/json.ts'
import { looksAfter, maySee } from '../../../doors/grant.ts'
import type { OwnerSettings } from '../../hooks/retention.ts'
import { Problem } from '../problem/problem.ts'
import { json, type Route, type RouteCall } from '../table/route.ts'
import { answer, bodyOf, bodySchema, FLAG, given, ID, param, SHORT } from './parts.ts'

const IMPORT_BYTES = 100_000_000

/** Routes for those who look after the server. */
export const ADMIN_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/import',
    scope: 'admin',
    summary: 'Takes a tree that an export gave, with the same hashes, or nothing of it.',
    query: {
      goOn: {
        type: 'boolean',
        description:
          'Lets open runs of the tree go on at once, for who looks after the whole store and is trusted with programs. Else they are stopped.',
      },
    },
    takesLines: true,
    maxBody: IMPORT_BYTES,
    answers: {
      200: answer('Imported', 'The same tree is there already: the id of its root conversation.'),
      201: answer('Imported', 'The id of its root conversation.'),
      409: { description: 'Another tree of this id is there.' },
    },
    handler: async ({ runtime, lines, server, query }) => {
      const found = { isKnown: false }
      const noted = noting(lines, async (first) => {
        found.isKnown = await server.hasTree(rootIn(first))
      })
      return json(
        { conversationId: await runtime.import(noted, { goOn: query.flag('goOn') }) },
        found.isKnown ? 200 : 201,
      )
    },
  },
  {
    method: 'POST',
    path: '/v1/prune',
    scope: 'delete',
    summary: 'Deletes trees without an open run: all but the newest, or those in which nothing happened for long.',
    body: bodySchema({
      keep: { type: 'integer', minimum: 0, description: 'How many trees stay.' },
      olderThanMs: { type: 'integer', minimum: 0, description: 'Only trees that were inactive for this long.' },
      owner: { ...SHORT, description: 'Only trees of this owner.' },
      dryRun: { ...FLAG, description: 'Deletes nothing, and says what it would delete.' },
    }),
    answers: { 200: answer('Tombstones', 'The tombstones that the trees leave.') },
    example: { body: { keep: 1000, dryRun: true } },
    handler: async (call) => {
      const tombstones = await call.runtime.prune(bodyOf<{ readonly keep?: number }>(call))
      return json({ tombstones, next: null })
    },
  },
  {
    method: 'GET',
    path: '/v1/usage',
    scope: 'read',
    summary: 'What you used and what it cost, by day, agent and model; of all owners and agents that you see.',
    query: {
      from: { type: 'string', description: 'The first day, by UTC: `2026-11-17`. Default: today.' },
      to: { type: 'string', description: 'The last day. Default: today.' },
      owner: { type: 'string', description: 'Only of this owner.' },
    },
    answers: { 200: answer('UsageByDay', 'The sums.') },
    handler: async ({ runtime, query }) => {
      const today = new Date().toISOString().slice(0, 10)
      const [from, to] = [query.text('from') ?? today, query.text('to') ?? today]
      const owner = given({ owner: query.text('owner') })
      return json({ usage: await runtime.usageByDay({ from, to, ...owner }), next: null })
    },
  },
  {
    method: 'GET',
    path: '/v1/processes',
    scope: 'audit',
    needsAll: true,
    summary: 'The processes that run nodes of the store. Only for who sees all owners and agents.',
    query: { running: { type: 'boolean', description: 'Also the nodes that each of them runs.' } },
    answers: { 200: answer('Processes', 'The processes.') },
    handler: async ({ runtime, query }) => {
      const processes = await runtime.processes({ running: query.flag('running') })
      return json({ processes, next: null })
    },
  },
  {
    method: 'POST',
    path: '/v1/audit',
    scope: 'audit',
    summary: 'Looks for everything that can be wrong with stored rows. Changes nothing.',
    body: bodySchema({ rootId: ID, verify: FLAG }),
    answers: { 200: answer('Audit', 'The findings.') },
    example: { body: { verify: true } },
    handler: async (call) => json(await call.runtime.audit(bodyOf<{ readonly verify?: boolean }>(call))),
  },
]

/** Routes about one owner, for admins. */
export const OWNER_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/owners/{owner}',
    scope: 'admin',
    summary: 'What is set for an owner.',
    params: { owner: 'text' },
    answers: { 200: answer('Owner', 'The settings.') },
    handler: async (call) => json(await call.server.retention.get(seen(call, param(call, 'owner')))),
  },
  {
    method: 'PUT',
    path: '/v1/owners/{owner}',
    scope: 'admin',
    summary: 'Sets how long trees of an owner are kept. Older ones without an open run are deleted, within an hour.',
    params: { owner: 'text' },
    body: bodySchema(
      {
        keepDays: {
          type: ['integer', 'null'],
          minimum: 1,
          maximum: 36_500,
          description: 'Days after the last activity of a tree; null: as the options of the server say.',
        },
      },
      ['keepDays'],
    ),
    answers: { 200: answer('Owner', 'The settings.') },
    example: { body: { keepDays: 30 } },
    handler: async (call) => {
      const owner = seen(call, param(call, 'owner'))
      if (!looksAfter(call.principal, owner))
        throw new Problem('denied', `${call.principal.id} does not see all agents.`)
      const { keepDays } = bodyOf<Pick<OwnerSettings, 'keepDays'>>(call)
      return json(await call.server.retention.set({ owner, keepDays }))
    },
  },
  {
    method: 'DELETE',
    path: '/v1/owners/{owner}',
    scope: 'admin',
    summary:
      'Cancels and erases everything of an owner: trees, copies of sessions, tokens, webhooks, counters. Needs the scope delete too.',
    params: { owner: 'text' },
    query: { reason: { type: 'string', description: 'The reason that open runs are cancelled for.' } },
    answers: { 200: answer('ForgottenOwner', 'What is gone.') },
    handler: async (call) => {
      const gone = await call.runtime.forgetOwner(param(call, 'owner'), call.query.text('reason'))
      call.server.tokens.refresh()
      await call.server.streams.recheck()
      return json(gone)
    },
  },
]

/** An admin who does not see an owner sets nothing for him. */
function seen({ principal }: Pick<RouteCall, 'principal'>, owner: string): string {
  if (maySee(principal, owner)) return owner
  throw new Problem('denied', `${principal.id} does not see ${owner}.`)
}

/** The lines, and a look at the first of them before it is given on. */
async function* noting(lines: AsyncIterable<string>, look: (first: string) => Promise<void>): AsyncGenerator<string> {
  let isFirst = true
  for await (const line of lines) {
    if (isFirst) await look(line)
    isFirst = false
    yield line
  }
}

/** The root that the first line of an export names; empty where it names none. */
function rootIn(line: string): string {
  const read = parseJson(line)
  const rootId: unknown = read.ok ? Reflect.get(Object(read.value), 'rootId') : undefined
  return typeof rootId === 'string' ? rootId : ''
}
