import type { ScopedRuntime } from '../../../index.ts'
import { json, NOTHING, type Route } from '../table/route.ts'
import { answer, bodyOf, bodySchema, DONE, FLAG, FROM, given, LIMIT, listPart, param, TEXT } from './parts.ts'

const ANSWERED = { ...DONE, 409: { description: 'Somebody answered before, or it asks for something else now.' } }

type Word = Parameters<ScopedRuntime['answer']>[1]
type SettleWord = Parameters<ScopedRuntime['settle']>[1]

/** What was seen, as the lists of what waits, the events and the webhooks show it. */
const SEEN = {
  type: 'string',
  minLength: 16,
  maxLength: 64,
  description: 'The hash of what you saw, all 64 hex digits. It answers nothing else.',
}
const HASH = 'b7f9b1d0882a4808b162eb85adf4e80027422d515630769e73c83fd20984ebf4'

/** Routes of what waits for a person. */
export const INBOX_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/inbox',
    scope: 'read',
    summary: 'Everything that needs a person: approvals, questions, uncertain calls, failed and stalled runs.',
    query: { owner: { type: 'string', description: 'Only what belongs to this owner.' }, limit: LIMIT, from: FROM },
    answers: { 200: answer('Inbox', 'The items, the most urgent first.') },
    handler: async (call) => {
      const owner = given({ owner: call.query.text('owner') })
      return json(await listPart(call, (limit) => call.runtime.inbox({ ...owner, limit })))
    },
  },
  {
    method: 'POST',
    path: '/v1/uncertain/{nodeId}',
    scope: 'approve',
    beginsRun: true,
    summary: 'Says what became of a call whose process was lost: it happened, it did not, or leave it.',
    params: { nodeId: 'id' },
    body: bodySchema(
      {
        happened: { ...FLAG, description: 'True: it did, with `result`. False: it runs again.' },
        result: { description: 'The result that the agent reads.' },
        leave: { const: true, description: 'Leave it as it is.' },
        seen: SEEN,
      },
      ['seen'],
    ),
    answers: { 200: answer('SettledCall', 'The run that goes on from there.') },
    example: { body: { leave: true, seen: HASH } },
    handler: async (call) => json(await call.runtime.settle(param(call, 'nodeId'), bodyOf<SettleWord>(call))),
  },
  {
    method: 'GET',
    path: '/v1/approvals',
    scope: 'approve',
    summary: 'The requests that wait for a person, those that expire first before the others.',
    query: { limit: LIMIT, from: FROM },
    answers: { 200: answer('Approvals', 'The requests.') },
    handler: async (call) => {
      const { items, next } = await listPart(call, (limit) => call.runtime.approvals({ limit }))
      return json({ approvals: items, next })
    },
  },
  {
    method: 'POST',
    path: '/v1/approvals/{nodeId}',
    scope: 'approve',
    summary: 'Allows or denies a request. The first answer counts.',
    description:
      '`seen` is the hash that the list showed: an answer to another request than the one you saw is refused. A yes needs it; a no may go without.',
    params: { nodeId: 'id' },
    body: bodySchema(
      {
        allow: FLAG,
        seen: SEEN,
        edit: { description: 'Allow it with these arguments instead.' },
        always: { ...FLAG, description: 'For the rest of the conversation. Needs the scope `approve:always`.' },
        reason: { ...TEXT, description: 'What the model reads when you deny it.' },
      },
      ['allow'],
    ),
    answers: ANSWERED,
    example: { body: { allow: true, seen: HASH } },
    handler: async (call) => {
      await call.runtime.answer(param(call, 'nodeId'), bodyOf<Word>(call))
      return NOTHING
    },
  },
  {
    method: 'GET',
    path: '/v1/questions',
    scope: 'approve',
    summary: 'The questions of agents that wait for a person.',
    query: {
      limit: LIMIT,
      from: FROM,
      outside: { type: 'boolean', description: 'Also calls that wait for who executes them.' },
    },
    answers: { 200: answer('Questions', 'The questions.') },
    handler: async (call) => {
      const outside = call.query.flag('outside')
      const { items, next } = await listPart(call, (limit) => call.runtime.questions({ limit, outside }))
      return json({ questions: items, next })
    },
  },
  {
    method: 'POST',
    path: '/v1/questions/{nodeId}',
    scope: 'approve',
    summary: 'Answers a question. The first answer counts.',
    params: { nodeId: 'id' },
    body: bodySchema({ text: { ...TEXT, minLength: 1 }, seen: SEEN }, ['text']),
    answers: ANSWERED,
    example: { body: { text: 'Forty-two.' } },
    handler: async (call) => {
      await call.runtime.answer(param(call, 'nodeId'), bodyOf<Word>(call))
      return NOTHING
    },
  },
  {
    method: 'POST',
    path: '/v1/calls/{nodeId}/result',
    scope: 'start',
    summary: 'Gives the result of a call that you have executed. The first one counts.',
    description:
      'For tools with `execute: "outside"`. Its events name the call: `tool-call`, then `question` with `to: "outside"` and `seen`. The owner of the conversation executes it, or the principal that the tool names.',
    params: { nodeId: 'id' },
    body: bodySchema(
      {
        result: { description: 'The result, as the tool promises it.' },
        isError: { ...FLAG, description: 'It failed.' },
        seen: SEEN,
      },
      ['result', 'seen'],
    ),
    answers: ANSWERED,
    example: { body: { result: 'done', seen: HASH } },
    handler: async (call) => {
      await call.runtime.answer(param(call, 'nodeId'), bodyOf<Word>(call))
      return NOTHING
    },
  },
]
