// Tools by which a client without Tasks looks at its runs: `run_get`, `run_wait`, `run_cancel`, `run_answer`.

import { InputError, type Json } from '../../../index.ts'
import { hasForms } from '../offer/client.ts'
import type { McpArguments, McpCall, McpTool } from '../offer/offer.ts'
import { type AskWord, readWord } from './asks.ts'
import { textContent } from './content.ts'
import { attachRun, type Peer } from './peer.ts'

const WAIT_SECONDS = 50
const MOST_SECONDS = 300
const RUN_ID = { type: 'string', description: 'The run_id of an earlier result.' }

/** The tools that a caller may use. A client with forms asks its person there: the model that calls does not answer for him. */
export function runTools(peer: Peer, client: McpCall['client']): McpTool[] {
  const { runtime } = peer
  const tools = [runtime.may('read') ? [getTool(peer), waitTool(peer)] : []]
  if (runtime.may('cancel')) tools.push([cancelTool(peer)])
  if (runtime.may('approve') && !hasForms(client)) tools.push([answerTool(peer)])
  return tools.flat()
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
  if (call.state !== undefined) await peer.answer(run.id, call.answers)
  const { agent } = await peer.runtime.look(run.id)
  const shape = { ...(await peer.shapeOf(agent)), output: 'none' } as const
  return peer.wait(run, { call, shape, waitMs: secondsIn(args['seconds']) * 1_000, isOwn: false })
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

const ANSWER = {
  run_id: RUN_ID,
  node_id: { type: 'string', description: 'The node that waits, as run_get names it.' },
  decision: { type: 'string', enum: ['allow_once', 'allow_here', 'deny'], description: 'On what must be allowed.' },
  answer: { type: 'string', description: 'To a question.' },
  reason: { type: 'string' },
}

function answerTool(peer: Peer): McpTool {
  return {
    name: 'run_answer',
    description: 'Gives the word of a person on what waits in a run: ask the person first.',
    inputSchema: schemaOf(ANSWER, ['run_id', 'node_id']),
    call: async (args) => {
      const run = await attachRun(peer, args['run_id'])
      const ask = (await peer.asks(run.id)).find(({ of }) => of.nodeId === args['node_id'])
      const word = ask === undefined ? undefined : readWord(ask, { action: 'accept', content: wordsIn(args) })
      if (ask === undefined) throw new InputError('invalid_input', 'Nothing of that node waits in this run now.')
      await peer.runtime.answer(ask.of.nodeId, needed(word))
      return { content: [textContent('The answer is recorded.')] }
    },
  }
}

function wordsIn({ decision, answer, reason }: McpArguments): object {
  return {
    ...(decision === undefined ? {} : { decision }),
    ...(answer === undefined ? {} : { answer }),
    ...(reason === undefined ? {} : { reason }),
  }
}

function needed(word: AskWord | undefined): AskWord {
  if (word !== undefined) return word
  throw new InputError('invalid_input', 'Give "decision" for what must be allowed, "answer" for a question.')
}

function schemaOf(
  properties: { readonly [name: string]: object },
  required: readonly string[],
): McpTool['inputSchema'] {
  return { type: 'object', properties, required, additionalProperties: false } as McpTool['inputSchema']
}
