// Tools by which a client without Tasks finds and looks at its runs: `run_list`, `run_get`, `run_wait`, `run_cancel`, `run_reply`,
// `run_answer`.
//
// Must stay true: a model that calls allows nothing, unless its principal has the scope `approve:model`.

import type { RunInfo } from '../../../doors/rows.ts'
import { DeniedError, InputError, type Json } from '../../../index.ts'
import type { McpArguments, McpCall, McpTool } from './offer.ts'
import { attachRun, type Peer } from './peer.ts'
import { isShownWhole, readDecision, saysYes } from './pending.ts'
import { hasForms } from './read.ts'
import { textContent } from './write.ts'

const WAIT_SECONDS = 50
const MOST_SECONDS = 300
const RUN_ID = { type: 'string', description: 'The run_id of an earlier result, or of run_list.' }

/** The tools that a caller may use. A client with forms asks its person there: the model that calls does not answer for the person. */
export function runTools(peer: Peer, client: McpCall['client']): McpTool[] {
  const { runtime } = peer
  const tools = [runtime.may('read') ? [listTool(peer), getTool(peer), waitTool(peer)] : []]
  if (runtime.may('cancel')) tools.push([cancelTool(peer)])
  if (runtime.may('approve') && !hasForms(client)) {
    tools.push([replyTool(peer)], runtime.may('approve:model') ? [answerTool(peer)] : [])
  }
  return tools.flat().map(withRequired)
}

/** Names a field that a call leaves out, whatever the client checks itself. */
function withRequired(tool: McpTool): McpTool {
  const { required = [], properties = {} } = tool.inputSchema as Partial<ToolFields>
  const call: McpTool['call'] = (args, mcpCall) => {
    const missing = required.find((name) => args[name] === undefined || args[name] === null)
    if (missing === undefined) return tool.call(args, mcpCall)
    const { description = '' } = properties[missing] ?? {}
    throw new InputError('invalid_input', `${tool.name} needs "${missing}". ${description}`.trim())
  }
  return { ...tool, call }
}

interface ToolFields {
  readonly required: readonly string[]
  readonly properties: { readonly [name: string]: { readonly description?: string } }
}

const LISTED = 20
const MOST_LISTED = 100

function listTool(peer: Peer): McpTool {
  const limit = {
    type: 'integer',
    description: `The most runs to give. Default ${LISTED}.`,
    minimum: 1,
    maximum: MOST_LISTED,
  }
  return {
    name: 'run_list',
    description: 'Lists runs, newest first, with their run_id and session_id: finds a run whose call got lost.',
    inputSchema: schemaOf({ agent: { type: 'string', description: 'Only runs of this agent.' }, limit }, []),
    annotations: { readOnlyHint: true },
    call: async ({ agent, limit: most }) => {
      const isMeant = typeof most === 'number' && Number.isInteger(most) && most > 0
      const query = { limit: isMeant ? Math.min(most, MOST_LISTED) : LISTED }
      const runs = await peer.runtime.runs(typeof agent === 'string' ? { ...query, agent } : query)
      const text = runs.length === 0 ? 'There are no runs.' : runs.map(runLine).join('\n')
      return { content: [textContent(text)], structuredContent: { runs: runs.map(runRow) } }
    },
  }
}

function runRow({ runId, conversationId, agent, asked, state, status, startedAt }: RunInfo): Json {
  const started = startedAt === null ? null : new Date(startedAt).toISOString()
  return { run_id: runId, session_id: conversationId, agent, state: status ?? state, started, asked }
}

function runLine({ runId, conversationId, agent, asked, state, status }: RunInfo): string {
  return `run_id ${runId}, session_id ${conversationId}: ${agent} ${status ?? state}: ${asked}`
}

function getTool(peer: Peer): McpTool {
  return {
    name: 'run_get',
    description: 'Says how far a run is, and what it waits for.',
    inputSchema: schemaOf({ run_id: RUN_ID }, ['run_id']),
    annotations: { readOnlyHint: true },
    call: async ({ run_id: id }) => {
      const run = await attachRun(peer, id)
      const { state, agent, outcome } = await peer.runtime.look(run.id)
      const why = state === 'ended' ? [] : [await peer.whyText(run.id)]
      return { content: [textContent([`${agent}: ${outcome?.status ?? state}`, ...why].join('\n'))] }
    },
  }
}

function waitTool(peer: Peer): McpTool {
  const seconds = {
    type: 'number',
    description: `How long to wait. Default ${WAIT_SECONDS}.`,
    minimum: 0,
    maximum: MOST_SECONDS,
  }
  return {
    name: 'run_wait',
    description: 'Waits for the answer of a run. A caller who leaves stops nothing.',
    inputSchema: schemaOf({ run_id: RUN_ID, seconds }, ['run_id']),
    annotations: { readOnlyHint: true },
    call: (args, call) => waitFor(peer, args, call),
  }
}

async function waitFor(peer: Peer, args: McpArguments, call: McpCall): Promise<object> {
  const run = await attachRun(peer, args['run_id'])
  const { agent } = await peer.runtime.look(run.id)
  const shape = { ...(await peer.shapeOf(agent)), output: 'none' } as const
  const waiting = { call, shape, waitMs: secondsIn(args['seconds']) * 1_000, isOwn: false }
  return call.state === undefined ? peer.wait(run, waiting) : peer.goOn(run, waiting)
}

function secondsIn(seconds: Json | undefined): number {
  return typeof seconds === 'number' && seconds >= 0 ? Math.min(seconds, MOST_SECONDS) : WAIT_SECONDS
}

function cancelTool(peer: Peer): McpTool {
  return {
    name: 'run_cancel',
    description: 'Asks a run and all it started to stop.',
    inputSchema: schemaOf({ run_id: RUN_ID, reason: { type: 'string' } }, ['run_id']),
    annotations: { destructiveHint: true, idempotentHint: true },
    call: async ({ run_id: id, reason }) => {
      const run = await attachRun(peer, id)
      await peer.runtime.cancel(run.id, typeof reason === 'string' ? reason : undefined)
      return { content: [textContent('The run was asked to stop.')] }
    },
  }
}

const NODE_ID = { type: 'string', description: 'The node that waits, as run_get names it.' }
const SEEN = { type: 'string', description: 'The hash of what waits, as run_get shows it.' }

function replyTool(peer: Peer): McpTool {
  return {
    name: 'run_reply',
    description:
      'Answers the question of an agent in a run with the words of a person: ask the person first. It allows nothing.',
    inputSchema: schemaOf(
      {
        run_id: RUN_ID,
        node_id: NODE_ID,
        seen: SEEN,
        answer: { type: 'string', description: 'What the person says.' },
      },
      ['run_id', 'node_id', 'answer'],
    ),
    call: async (args) => {
      const { nodeId } = await waitingNode(peer, args, 'question')
      const { seen, answer } = args
      if (typeof answer !== 'string' || answer.trim() === '') throw new InputError('invalid_input', 'Give "answer".')
      await peer.runtime.answer(nodeId, { text: answer, ...(typeof seen === 'string' ? { seen } : {}) })
      return RECORDED
    },
  }
}

const DECISION = {
  run_id: RUN_ID,
  node_id: NODE_ID,
  seen: SEEN,
  decision: { type: 'string', enum: ['allow_once', 'allow_here', 'deny'] },
  reason: { type: 'string' },
}

function answerTool(peer: Peer): McpTool {
  return {
    name: 'run_answer',
    description: 'Allows or denies a request that waits in a run: ask the person first.',
    inputSchema: schemaOf(DECISION, ['run_id', 'node_id', 'seen', 'decision']),
    call: async (args) => {
      const { nodeId, isShown } = await waitingNode(peer, args, 'approval')
      const word = readDecision(args, textOf(args['seen']))
      if (word === undefined) throw new InputError('invalid_input', 'Give "decision": allow_once, allow_here or deny.')
      if (saysYes(word) && !isShown) throw new DeniedError('denied', peer.notWhole)
      await peer.runtime.answer(nodeId, word)
      return RECORDED
    },
  }
}

const RECORDED = { content: [textContent('The answer is recorded.')] }

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

interface WaitingNode {
  readonly nodeId: string
  /** Is all of what it asks shown to the caller? */
  readonly isShown: boolean
}

/** The node that a caller names, where it waits for this in the run. */
async function waitingNode(peer: Peer, args: McpArguments, kind: 'approval' | 'question'): Promise<WaitingNode> {
  const run = await attachRun(peer, args['run_id'])
  const pending = await peer.pending(run.id)
  const found = pending.find((one) => one.kind === kind && one.of.nodeId === args['node_id'])
  if (found !== undefined) {
    return { nodeId: found.of.nodeId, isShown: found.kind === 'question' || isShownWhole(found.of) }
  }
  if (kind === 'question' && pending.some(({ of }) => of.nodeId === args['node_id'])) {
    throw new DeniedError(
      'denied',
      'A person must allow it: the model that calls may not, without the scope approve:model.',
    )
  }
  const what = kind === 'approval' ? 'No request' : 'No question'
  throw new InputError('invalid_input', `${what} of that node waits in this run now.`)
}

function schemaOf(
  properties: { readonly [name: string]: object },
  required: readonly string[],
): McpTool['inputSchema'] {
  return { type: 'object', properties, required, additionalProperties: false } as McpTool['inputSchema']
}
