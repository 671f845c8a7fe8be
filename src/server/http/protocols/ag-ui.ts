import { NotFoundError } from '../../../index.ts'
import { readRunInput } from '../../protocols/ag-ui/read.ts'
import { AgUiThread, capabilitiesOf } from '../../protocols/ag-ui/serve.ts'
import { AG_UI_HEADERS, type AgUiEvent, agUiFrame } from '../../protocols/ag-ui/write.ts'
import type { PlainItem } from '../../stream/frames.ts'
import { json, type Route } from '../table/route.ts'

/** Media comes as data inside of messages. */
const MESSAGE_BYTES = 10_000_000

/** Stores would take half a character for another one. */
const NAME = { type: 'string', minLength: 1, maxLength: 500, format: 'well-formed-unicode' }

const LIST = { type: 'array', maxItems: 10_000, items: { type: 'object' } }

/** Routes for front ends that speak AG-UI. */
export const AG_UI_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/ag-ui/{agent}',
    scope: 'start',
    summary: 'Takes a run of AG-UI: what a person says, or the answers to interrupts. Streams what follows.',
    description:
      'Of the messages only the newest one of the person is taken, and results of tools that the client executes. A repeated request starts nothing twice, and a client that leaves stops nothing.',
    params: { agent: 'name' },
    body: {
      type: 'object',
      properties: {
        threadId: { ...NAME, description: 'The client’s id of the thread.' },
        runId: { ...NAME, description: 'The client’s id of this run.' },
        messages: LIST,
        resume: { ...LIST, type: ['array', 'null'], description: 'The answers to all open interrupts.' },
      },
      required: ['threadId', 'runId', 'messages'],
    },
    maxBody: MESSAGE_BYTES,
    answers: { 200: { description: 'The events of the run.', type: 'text/event-stream' } },
    example: {
      body: { threadId: 'thread-1', runId: 'run-1', messages: [{ id: 'm1', role: 'user', content: 'Hello.' }] },
    },
    handler: async (call) => {
      call.runtime.require('read')
      const input = readRunInput(call.body)
      const { threadId, runId } = input
      const events = await new AgUiThread(call.runtime, { agent: call.params['agent'] ?? '', threadId, runId }).post(
        input,
      )
      const stream = { hello: null, items: framesOf(events), isSlim: false, end: {} }
      return { status: 200, headers: AG_UI_HEADERS, stream }
    },
  },
  {
    method: 'GET',
    path: '/ag-ui/{agent}/capabilities',
    scope: 'read',
    summary: 'What an agent can do, as AG-UI says it.',
    params: { agent: 'name' },
    answers: { 200: { description: 'The capabilities.', shape: 'Capabilities' } },
    handler: async (call) => {
      const name = call.params['agent'] ?? ''
      const found = (await call.runtime.agents()).find((agent) => agent.name === name)
      if (found === undefined) throw new NotFoundError('not_found', `There is no agent ${JSON.stringify(name)} here.`)
      return json(capabilitiesOf(found, call.runtime.may('approve')))
    },
  },
]

function framesOf(events: AsyncGenerator<AgUiEvent>): AsyncIterator<PlainItem> {
  return {
    next: async () => {
      const { done, value } = await events.next()
      return done === true ? { value: undefined, done } : { value: { plain: agUiFrame(value) }, done: false }
    },
    return: async () => {
      await events.return(undefined)
      return { value: undefined, done: true }
    },
  }
}
