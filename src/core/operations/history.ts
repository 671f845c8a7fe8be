// Operations that change what was said and done. `conversation.history` offers them to programs, with handles of the runs they begin.

import type { CompressOptions, ForkOptions, RemakeOptions } from '../conversation/history-handle.ts'
import type { Run } from '../conversation/run.ts'
import type { Content } from '../graph/content.ts'
import type { Id } from '../graph/rows.ts'
import { talkOperation } from './operation.ts'
import { bodySchema, ID, OBJECT, SHORT, TEXT } from './schemas.ts'

const NODE = { nodeId: ID }
const BACKGROUND = { background: { enum: ['cancel', 'keep'], description: 'What becomes of background children.' } }
const REASON = { reason: SHORT }
const CONTENT = { type: ['string', 'array'], items: OBJECT, description: 'A text, or a list of blocks.' }
const EXAMPLE_ID = '01890000-0000-7000-8000-000000000000'
const OF_NODE = { body: { nodeId: EXAMPLE_ID } }

/** A run that a change of history began; null where the change began none. */
export interface ChangeAnswer {
  readonly runId: Id | null
  readonly conversationId: Id
}

export const HISTORY = {
  /** Makes a lane that knows everything up to a node. */
  fork: talkOperation({
    summary: 'Makes a lane that knows everything up to a node, and goes on by itself.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/fork',
    beginsRun: true,
    body: bodySchema({ ...NODE, children: { enum: ['reuse', 'rerun'] }, key: SHORT, title: SHORT }, ['nodeId']),
    plain: ['nodeId'],
    gives: ['Change', 'The lane, and the run that goes on in it.'],
    example: OF_NODE,
    serve: async ({ handle }, nodeId: Id, options: ForkOptions = {}): Promise<ChangeAnswer> => {
      const { id, run } = await handle.history.fork(nodeId, options)
      return { conversationId: id, runId: run?.id ?? null }
    },
  }),

  /** Repeats a failed node. */
  retry: talkOperation({
    summary: 'Repeats a failed node.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/retry',
    beginsRun: true,
    body: bodySchema({ ...NODE, ...BACKGROUND }, ['nodeId']),
    plain: ['nodeId'],
    gives: ['Change', 'The run that was made anew.'],
    example: OF_NODE,
    serve: async ({ handle }, nodeId: Id, options: RemakeOptions = {}) =>
      begun(await handle.history.retry(nodeId, options)),
  }),

  /** Asks the model for another last answer. */
  rerun: talkOperation({
    summary: 'Asks the model for another last answer.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/rerun',
    beginsRun: true,
    body: bodySchema({ ...NODE, ...BACKGROUND }, ['nodeId']),
    plain: ['nodeId'],
    gives: ['Change', 'The run that was made anew.'],
    example: OF_NODE,
    serve: async ({ handle }, nodeId: Id, options: RemakeOptions = {}) =>
      begun(await handle.history.rerun(nodeId, options)),
  }),

  /** Says something else instead, and goes on from there. */
  edit: talkOperation({
    summary: 'Replaces a message; the agent answers it anew.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/edit',
    beginsRun: true,
    body: bodySchema({ ...NODE, content: CONTENT, ...BACKGROUND }, ['nodeId', 'content']),
    plain: ['nodeId', 'content'],
    gives: ['Change', 'The run that was made anew.'],
    example: { body: { nodeId: EXAMPLE_ID, content: 'Better words.' } },
    serve: async ({ handle }, nodeId: Id, content: Content, options: RemakeOptions = {}) =>
      begun(await handle.history.edit(nodeId, content, options)),
  }),

  /** Returns to an answer that was replaced. */
  adopt: talkOperation({
    summary: 'Goes back to an answer that was replaced.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/adopt',
    body: bodySchema({ ...NODE, ...BACKGROUND }, ['nodeId']),
    plain: ['nodeId'],
    example: OF_NODE,
    serve: ({ handle }, nodeId: Id, options: RemakeOptions = {}): Promise<void> =>
      handle.history.adopt(nodeId, options),
  }),

  /** Answers with the knowledge of other lanes too. */
  merge: talkOperation({
    summary: 'Merges other lanes of the conversation into this one.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/merge',
    beginsRun: true,
    body: bodySchema({ laneIds: { type: 'array', items: ID, maxItems: 100 }, prompt: TEXT }, ['laneIds']),
    plain: ['laneIds'],
    gives: ['Change', 'The run that answers with knowledge of all lanes.'],
    example: { body: { laneIds: [EXAMPLE_ID] } },
    serve: async ({ handle }, laneIds: readonly Id[], options: { readonly prompt?: string } = {}) =>
      begun(await handle.history.merge(laneIds, options)),
  }),

  /** Allows no new turns in the lane. */
  archive: talkOperation({
    summary: 'Allows no new turns in the lane.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/archive',
    body: bodySchema({ mode: { enum: ['finish', 'cancel'] } }),
    example: { body: {} },
    serve: ({ handle }, options: { readonly mode?: 'finish' | 'cancel' } = {}): Promise<void> =>
      handle.history.archive(options),
  }),

  /** Lets models read a summary instead of turns. */
  compress: talkOperation({
    summary: 'Shows models a summary instead of turns; people see them as before.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/compress',
    body: bodySchema({ fromRunId: ID, toRunId: ID, summary: TEXT }, ['toRunId', 'summary']),
    gives: ['Summary', 'The id of the summary.'],
    example: { body: { toRunId: EXAMPLE_ID, summary: 'Better words.' } },
    serve: async ({ handle }, options: CompressOptions): Promise<{ readonly summaryId: Id }> => ({
      summaryId: await handle.history.compress(options),
    }),
  }),

  /** Removes a summary. */
  uncompress: talkOperation({
    summary: 'Removes a summary.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/uncompress',
    body: bodySchema({ summaryId: ID }, ['summaryId']),
    plain: ['summaryId'],
    example: { body: { summaryId: EXAMPLE_ID } },
    serve: ({ handle }, summaryId: Id): Promise<void> => handle.history.uncompress(summaryId),
  }),

  /** Shows models only these nodes of a run that is over, and gives those that they no longer see. */
  compact: talkOperation({
    summary: 'Shows models only these nodes of a run that is over.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/compact',
    body: bodySchema({ runId: ID, keep: { type: 'array', items: ID, maxItems: 1_000 } }, ['runId']),
    plain: ['runId'],
    gives: ['Hidden', 'The nodes that models no longer see.'],
    example: { body: { runId: EXAMPLE_ID } },
    serve: async (
      { handle },
      runId: Id,
      options: { readonly keep?: readonly Id[] } = {},
    ): Promise<{ readonly nodeIds: readonly Id[] }> => ({ nodeIds: await handle.history.compact(runId, options) }),
  }),

  /** Hides a node from models. */
  exclude: talkOperation({
    summary: 'Hides a node from models; people still see it.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/exclude',
    body: bodySchema(NODE, ['nodeId']),
    plain: ['nodeId'],
    example: OF_NODE,
    serve: ({ handle }, nodeId: Id): Promise<void> => handle.history.exclude(nodeId),
  }),

  /** Shows models a node again. */
  include: talkOperation({
    summary: 'Shows models a node again.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/include',
    body: bodySchema(NODE, ['nodeId']),
    plain: ['nodeId'],
    example: OF_NODE,
    serve: ({ handle }, nodeId: Id): Promise<void> => handle.history.include(nodeId),
  }),

  /** Stops one node. */
  stop: talkOperation({
    summary: 'Stops one node, the work it waits for, and what would come after it.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/stop',
    body: bodySchema({ ...NODE, ...REASON }, ['nodeId']),
    plain: ['nodeId', 'reason'],
    example: OF_NODE,
    serve: ({ handle }, nodeId: Id, reason?: string): Promise<void> => handle.history.stop(nodeId, reason),
  }),

  /** Goes on without one node. */
  skip: talkOperation({
    summary: 'Leaves out a node that has not begun.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/skip',
    body: bodySchema({ ...NODE, ...REASON }, ['nodeId']),
    plain: ['nodeId', 'reason'],
    example: OF_NODE,
    serve: ({ handle }, nodeId: Id, reason?: string): Promise<void> => handle.history.skip(nodeId, reason),
  }),
} as const

function begun({ id, conversationId }: Run): ChangeAnswer {
  return { runId: id, conversationId }
}
