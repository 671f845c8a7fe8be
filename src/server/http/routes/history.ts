import type { ConversationHistory } from '../../../doors/rows.ts'
import type { Id, Run } from '../../../index.ts'
import { type AnswerForm, json, NOTHING, type Route, type RouteCall } from '../table/route.ts'
import { answer, bodyOf, bodySchema, DONE, ID, OBJECT, param, SHORT, TEXT } from './parts.ts'

const NODE = { nodeId: ID }
const BACKGROUND = { background: { enum: ['cancel', 'keep'], description: 'What becomes of background children.' } }
const REASON = { reason: SHORT }
const CONTENT = { type: ['string', 'array'], items: OBJECT, description: 'A text, or a list of blocks.' }

/** Bodies of changes, all checked by their routes. */
interface Change {
  readonly nodeId: Id
  readonly content: string
  readonly reason?: string
  readonly background?: 'cancel' | 'keep'
  readonly children?: 'reuse' | 'rerun'
  readonly key?: string
  readonly title?: string
  readonly laneIds: readonly Id[]
  readonly prompt?: string
  readonly mode?: 'finish' | 'cancel'
  readonly fromRunId?: Id
  readonly toRunId: Id
  readonly summary: string
  readonly summaryId: Id
  readonly runId: Id
  readonly keep?: readonly Id[]
}

type Changer = (history: ConversationHistory, body: Change) => Promise<unknown>

interface ChangeRoute {
  readonly name: string
  readonly summary: string
  readonly properties: Readonly<Record<string, { readonly [key: string]: unknown }>>
  readonly required: readonly string[]
  readonly change: Changer
  readonly beginsRun?: boolean
  /** The answer; left out where there is none. */
  readonly gives?: AnswerForm
}

const EXAMPLE_ID = '01890000-0000-7000-8000-000000000000'

const CHANGES: readonly ChangeRoute[] = [
  {
    name: 'fork',
    beginsRun: true,
    summary: 'Makes a lane that knows everything up to a node, and goes on by itself.',
    properties: { ...NODE, children: { enum: ['reuse', 'rerun'] }, key: SHORT, title: SHORT },
    required: ['nodeId'],
    gives: answer('Change', 'The lane, and the run that goes on in it.'),
    change: async (history, { nodeId, ...options }) => {
      const { id, run } = await history.fork(nodeId, options)
      return { conversationId: id, runId: run?.id ?? null }
    },
  },
  {
    name: 'retry',
    beginsRun: true,
    summary: 'Repeats a failed node.',
    properties: { ...NODE, ...BACKGROUND },
    required: ['nodeId'],
    gives: answer('Change', 'The run that was made anew.'),
    change: async (history, { nodeId, ...options }) => started(await history.retry(nodeId, options)),
  },
  {
    name: 'rerun',
    beginsRun: true,
    summary: 'Asks the model for another last answer.',
    properties: { ...NODE, ...BACKGROUND },
    required: ['nodeId'],
    gives: answer('Change', 'The run that was made anew.'),
    change: async (history, { nodeId, ...options }) => started(await history.rerun(nodeId, options)),
  },
  {
    name: 'edit',
    beginsRun: true,
    summary: 'Replaces a message; the agent answers it anew.',
    properties: { ...NODE, content: CONTENT, ...BACKGROUND },
    required: ['nodeId', 'content'],
    gives: answer('Change', 'The run that was made anew.'),
    change: async (history, { nodeId, content, ...options }) => started(await history.edit(nodeId, content, options)),
  },
  {
    name: 'adopt',
    summary: 'Goes back to an answer that was replaced.',
    properties: { ...NODE, ...BACKGROUND },
    required: ['nodeId'],
    change: (history, { nodeId, ...options }) => history.adopt(nodeId, options),
  },
  {
    name: 'merge',
    beginsRun: true,
    summary: 'Merges other lanes of the conversation into this one.',
    properties: { laneIds: { type: 'array', items: ID, maxItems: 100 }, prompt: TEXT },
    required: ['laneIds'],
    gives: answer('Change', 'The run that answers with knowledge of all lanes.'),
    change: async (history, { laneIds, ...options }) => started(await history.merge(laneIds, options)),
  },
  {
    name: 'archive',
    summary: 'Allows no new turns in the lane.',
    properties: { mode: { enum: ['finish', 'cancel'] } },
    required: [],
    change: (history, options) => history.archive(options),
  },
  {
    name: 'compress',
    summary: 'Shows models a summary instead of turns; people see them as before.',
    properties: { fromRunId: ID, toRunId: ID, summary: TEXT },
    required: ['toRunId', 'summary'],
    gives: answer('Summary', 'The id of the summary.'),
    change: async (history, options) => ({ summaryId: await history.compress(options) }),
  },
  {
    name: 'uncompress',
    summary: 'Removes a summary.',
    properties: { summaryId: ID },
    required: ['summaryId'],
    change: (history, { summaryId }) => history.uncompress(summaryId),
  },
  {
    name: 'compact',
    summary: 'Shows models only these nodes of a run that is over.',
    properties: { runId: ID, keep: { type: 'array', items: ID, maxItems: 1_000 } },
    required: ['runId'],
    gives: answer('Hidden', 'The nodes that models no longer see.'),
    change: async (history, { runId, ...options }) => ({ nodeIds: await history.compact(runId, options) }),
  },
  {
    name: 'exclude',
    summary: 'Hides a node from models; people still see it.',
    properties: NODE,
    required: ['nodeId'],
    change: (history, { nodeId }) => history.exclude(nodeId),
  },
  {
    name: 'include',
    summary: 'Shows models a node again.',
    properties: NODE,
    required: ['nodeId'],
    change: (history, { nodeId }) => history.include(nodeId),
  },
  {
    name: 'stop',
    summary: 'Stops one node, the work it waits for, and what would come after it.',
    properties: { ...NODE, ...REASON },
    required: ['nodeId'],
    change: (history, { nodeId, reason }) => history.stop(nodeId, reason),
  },
  {
    name: 'skip',
    summary: 'Leaves out a node that has not begun.',
    properties: { ...NODE, ...REASON },
    required: ['nodeId'],
    change: (history, { nodeId, reason }) => history.skip(nodeId, reason),
  },
]

/** Routes that change what was said and done. */
export const HISTORY_ROUTES: readonly Route[] = CHANGES.map(
  ({ name, beginsRun = false, summary, properties, required, change, gives }): Route => ({
    method: 'POST',
    path: `/v1/conversations/{id}/${name}`,
    scope: 'history',
    beginsRun,
    summary,
    params: { id: 'id' },
    body: bodySchema(properties, required),
    answers: gives === undefined ? DONE : { 200: gives },
    example: { body: Object.fromEntries(required.map((key) => [key, exampleOf(key)])) },
    handler: async (call) => {
      const given = await change(await historyOf(call), bodyOf<Change>(call))
      return gives === undefined ? NOTHING : json(given)
    },
  }),
)

function exampleOf(key: string) {
  if (key === 'laneIds') return [EXAMPLE_ID]
  return key.endsWith('Id') ? EXAMPLE_ID : 'Better words.'
}

async function historyOf(call: RouteCall): Promise<ConversationHistory> {
  return (await call.runtime.conversation(param(call))).history
}

function started({ id, conversationId }: Run): object {
  return { runId: id, conversationId }
}
