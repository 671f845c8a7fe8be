// Parts that rows of the table share: forms of answers, parts of queries and bodies, and views of rows.

import { fitting } from '../../../core/base/page/json-bytes.ts'
import { PageRoom } from '../../../core/base/page/room.ts'
import type { Conversation, Node } from '../../../doors/rows.ts'
import type { Answers, ConversationAnswer, NodeAnswer } from '../../client/index.ts'
import type { AnswerForm, QuerySchema, RouteCall, RouteQuery } from '../table/route.ts'

export const OBJECT: { readonly [key: string]: unknown } = { type: 'object' }

/** An answer in JSON, by the name of its type in `Answers`. */
export function answer(shape: keyof Answers, description: string): AnswerForm {
  return { description, shape }
}

export const DONE: Readonly<Record<number, AnswerForm>> = { 204: { description: 'Done.' } }

export const LIMIT: QuerySchema = {
  type: 'integer',
  description: 'The most items of the page.',
  minimum: 1,
  maximum: 1_000,
  default: 50,
}

/** Where a list without a cursor of its own goes on. */
export const FROM: QuerySchema = {
  type: 'integer',
  description: 'The place of the first item: the `next` of the page before.',
  minimum: 0,
  maximum: 100_000,
  default: 0,
}

/** A part of a list that is read from its beginning: as many items as the caller wants and as fit into 8 MB. */
export async function listPart<Item>(
  { query }: Pick<RouteCall, 'query'>,
  read: (limit: number) => Promise<readonly Item[]>,
): Promise<{ readonly items: readonly Item[]; readonly next: number | null }> {
  const [from, limit] = [query.number('from') ?? 0, query.number('limit') ?? 50]
  const found = await read(from + limit)
  const items = fitting(found.slice(from), new PageRoom())
  const end = from + items.length
  return { items, next: items.length > 0 && (end < found.length || items.length === limit) ? end : null }
}

/** The query of lists of runs and conversations. */
export const LIST_QUERY: Readonly<Record<string, QuerySchema>> = {
  owner: { type: 'string', description: 'Only those of this owner.' },
  agent: { type: 'string', description: 'Only those of the agent with this name.' },
  before: { type: 'string', description: 'The `next` of the page before.' },
  limit: LIMIT,
}

/** Reads it. */
export function listQuery(query: RouteQuery): {
  readonly owner?: string
  readonly agent?: string
  readonly before?: string
} {
  return given({ owner: query.text('owner'), agent: query.text('agent'), before: query.text('before') })
}

export const ID: { readonly [key: string]: unknown } = { type: 'string', format: 'uuid', maxLength: 36 }
export const TEXT: { readonly [key: string]: unknown } = { type: 'string', maxLength: 100_000 }
/** Texts that become ids, keys and titles: stores would take half a character for another one. */
export const UNICODE = 'well-formed-unicode'
export const SHORT: { readonly [key: string]: unknown } = { type: 'string', maxLength: 500, format: UNICODE }
export const FLAG: { readonly [key: string]: unknown } = { type: 'boolean' }

/** The schema of a body: these properties, these of them needed, and no others. */
export function bodySchema(
  properties: Readonly<Record<string, { readonly [key: string]: unknown }>>,
  required: readonly string[] = [],
): { readonly [key: string]: unknown } {
  return { type: 'object', properties, required, additionalProperties: false }
}

/** The body, which has passed the schema of its route. */
export function bodyOf<Body>({ body }: RouteCall): Body {
  return body as unknown as Body
}

/** The parameter of a path, which has passed the form of its route. */
export function param({ params }: RouteCall, name = 'id'): string {
  return params[name] ?? ''
}

/** Leaves out what is undefined. */
export function given<Options extends object>(
  options: {
    readonly [Name in keyof Options]: Options[Name] | undefined
  },
): Partial<Options> {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Partial<Options>
}

/** A conversation as callers see it: without what only the runtime needs. */
export function conversationView(row: Conversation): ConversationAnswer {
  const { id, rootId, agent, path, owner, title, depth, turnCount, createdAt, activeTurnId } = row
  const { parentConversationId, parentTurnId, parentTaskId, lane, groups } = row
  return {
    id,
    rootId,
    agent: agent.name,
    path,
    owner,
    title,
    depth,
    turnCount,
    createdAt,
    activeRunId: activeTurnId,
    parentConversationId,
    parentRunId: parentTurnId,
    parentTaskId,
    archivedAt: lane?.archivedAt ?? null,
    forkedAt: lane?.from?.nodeId ?? null,
    groups,
  }
}

/** A node as callers see it. */
export function nodeView(node: Node): NodeAnswer {
  const { id, rootId, conversationId, laneId, turnId, ordinal, kind, purpose, state, input, output, preview } = node
  const { failure, versionSet, attempt, retryOf, blockers, wait, wakeAt, effect, usage, marks } = node
  const { createdAt, startedAt, endedAt, metadata } = node
  return {
    ...{ id, rootId, conversationId, laneId, runId: turnId, ordinal, kind, purpose, state, input, output, preview },
    ...{ failure, versionSet, attempt, retryOf, blockers, wait, wakeAt, effect, usage, marks },
    ...{ createdAt, startedAt, endedAt, metadata },
  }
}

/** Any JSON value, as the input of an agent. */
export const ANY_JSON: { readonly [key: string]: unknown } = { description: 'Any JSON value.' }
