// Rounds of a call in which a client's person is asked, and runs that a client has lost.

import { agent, type Principal, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type Setting, startServer } from '../../server/support/server.ts'
import { connected, type Forms, newClient, textIn } from './support/clients.ts'

const done: string[] = []

const deploy = tool({
  description: 'Deploys.',
  input: z.object({ to: z.string() }),
  execute: ({ to }) => {
    done.push(to)
    return `deployed to ${to}`
  },
})

const clerk = agent({
  name: 'clerk',
  description: 'Deploys.',
  instructions: 'Deploy.',
  tools: { deploy },
  grant: { use: ['tool:deploy'], ask: ['tool:deploy'] },
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? `It said: ${JSON.stringify(messages.at(-1)?.content)}`
      : { calls: [{ name: 'deploy', input: { to: 'web' } }] },
  ),
})

const asker = agent({
  name: 'asker',
  input: z.object({}),
  grant: { use: ['tool:ask_person'] },
  effect: 'pure',
  reply: async (_, { ask }) => `You like ${await ask('Which colour?')}.`,
})

const counter = agent({
  name: 'counter',
  instructions: 'Count.',
  model: scriptedModel(({ messages }) => `I was told ${messages.filter(({ role }) => role === 'user').length} things.`),
})

const painter = agent({
  name: 'painter',
  instructions: 'Paint.',
  model: scriptedModel(() => ({ blocks: [{ type: 'image', mediaType: 'image/png', data: 'AAAA' }] })),
})

const ANN: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel', 'approve'] }
const MODES = ['auto', 'legacy'] as const

async function opened(): Promise<Setting> {
  const setting = await startServer({}, { agents: [clerk, asker, counter, painter] })
  onTestFinished(() => setting[Symbol.asyncDispose]())
  return setting
}

async function clientOf(setting: Setting, forms?: Forms, mode: (typeof MODES)[number] = 'auto', by = ANN) {
  return connected(setting.server.url, await setting.tokenFor(by), newClient(forms, mode))
}

const CALLS = {
  clerk: { name: 'clerk', arguments: { message: 'Go.' } },
  asker: { name: 'asker', arguments: {} },
} as const

const LEFT: readonly [keyof typeof CALLS, string, ReturnType<Forms>][] = [
  ['clerk', 'cancels', { action: 'cancel' }],
  ['clerk', 'accepts an empty form', { action: 'accept', content: {} }],
  ['clerk', 'gives a reason without a decision', { action: 'accept', content: { reason: 'Hm.' } }],
  ['asker', 'cancels', { action: 'cancel' }],
  ['asker', 'declines', { action: 'decline' }],
  ['asker', 'accepts an empty form', { action: 'accept', content: {} }],
]

for (const mode of MODES) {
  test.each(LEFT)(
    `who is asked by %s and %s is asked once, and the call says how the run stands (${mode})`,
    async (name, _, word) => {
      const setting = await opened()
      done.length = 0
      let asked = 0
      const forms: Forms = () => {
        asked++
        return word
      }
      const client = await clientOf(setting, forms, mode)
      const text = textIn(await client.callTool(CALLS[name]))
      expect(asked).toBe(1)
      expect(text).toMatch(/^The run goes on.*run_id: \S+/s)
      expect(text).toMatch(/^A person answers in a terminal: legate (approvals|answer) /m)
      const runId = /run_id: (\S+)/.exec(text)?.[1] ?? ''
      expect((await setting.runtime.as(ANN).look(runId)).state).not.toBe('ended')
      expect(done).toEqual([])
    },
  )
}

test('a person who left a form is asked again when the model waits for the run', async () => {
  const words: ReturnType<Forms>[] = [{ action: 'cancel' }, { action: 'accept', content: { decision: 'allow_once' } }]
  const client = await clientOf(await opened(), () => words.shift() ?? { action: 'cancel' })
  const run_id = /run_id: (\S+)/.exec(textIn(await client.callTool(CALLS.clerk)))?.[1] ?? ''
  const result = await client.callTool({ name: 'run_wait', arguments: { run_id } })
  expect(textIn(result)).toBe('It said: "deployed to web"')
})

test('a caller who may not answer learns what a person types elsewhere', async () => {
  const setting = await opened()
  const client = await clientOf(setting, undefined, 'auto', { ...ANN, scopes: ['start', 'read'] })
  const text = textIn(await client.callTool(CALLS.clerk))
  const [approval] = await setting.runtime.as(ANN).approvals()
  expect(text).toContain(`A person answers in a terminal: legate approvals ${approval?.nodeId.slice(-8)}`)
})

test('an answer is one text; the session stands in the value beside it', async () => {
  const client = await clientOf(await opened())
  const first = await client.callTool({ name: 'counter', arguments: { message: 'x' } })
  expect(first.content).toEqual([{ type: 'text', text: 'I was told 1 things.' }])
  const { answer, session_id } = first.structuredContent as { answer: string; session_id: string }
  expect(answer).toBe('I was told 1 things.')
  const second = await client.callTool({ name: 'counter', arguments: { message: 'x', session_id } })
  expect(textIn(second)).toBe('I was told 2 things.')
  const picture = await client.callTool({ name: 'painter', arguments: { message: 'x' } })
  expect(picture.content).toEqual([{ type: 'image', data: 'AAAA', mimeType: 'image/png' }])
  expect(picture.structuredContent).toBeUndefined()
})

test('a client that lost a run finds it by run_list, which shows nobody else’s, the newest first', async () => {
  const setting = await opened()
  const lost = await setting.runtime.as(ANN).run('counter', 'first').result
  const asking = setting.runtime.as(ANN).run('asker', {})
  await asking[Symbol.asyncIterator]().next()
  await setting.runtime.as({ ...ANN, id: 'eve' }).run('counter', 'of another').result
  const client = await clientOf(setting)
  const list = async (args: object) => {
    const { structuredContent } = await client.callTool({ name: 'run_list', arguments: { ...args } })
    return (structuredContent as { runs: { run_id: string; state: string; session_id: string }[] }).runs
  }
  expect(await list({})).toMatchObject([
    { agent: 'asker', run_id: asking.id },
    { agent: 'counter', run_id: lost.runId, session_id: lost.conversationId, state: 'completed', asked: 'first' },
  ])
  expect(await list({ limit: 1 })).toHaveLength(1)
  expect(await list({ agent: 'counter' })).toMatchObject([{ run_id: lost.runId }])
  const text = textIn(await client.callTool({ name: 'run_list', arguments: {} }))
  expect(text.split('\n').at(-1)).toBe(
    `run_id ${lost.runId}, session_id ${lost.conversationId}: counter completed: first`,
  )
  const blind = await clientOf(setting, undefined, 'auto', { ...ANN, scopes: ['cancel'] })
  await expect(blind.callTool({ name: 'run_list', arguments: {} })).rejects.toThrow('There is no tool')
})

test('a call of a run tool that leaves out a field learns which', async () => {
  const client = await clientOf(await opened(), undefined, 'auto', {
    ...ANN,
    scopes: [...ANN.scopes, 'approve:model'],
  })
  const said = async (name: string, args: object) => textIn(await client.callTool({ name, arguments: { ...args } }))
  const missing = 'invalid_input: '
  expect(await said('run_answer', { decision: 'deny' })).toBe(
    `${missing}run_answer needs "run_id". The run_id of an earlier result, or of run_list.`,
  )
  expect(await said('run_reply', { answer: 'x' })).toContain('run_reply needs "run_id"')
  expect(await said('run_reply', { run_id: 'x', answer: 'x' })).toContain('run_reply needs "node_id"')
  expect(await said('run_wait', {})).toContain('run_wait needs "run_id"')
})
