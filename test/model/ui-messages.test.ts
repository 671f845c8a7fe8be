import {
  AbstractChat,
  type ChatState,
  type ChatStatus,
  isToolUIPart,
  readUIMessageStream,
  type UIMessage,
  validateUIMessages,
} from 'ai'
import { agent, createRuntime, type Run, type Runtime, tool } from 'legate'
import { toUIMessageStream, toUIMessages, type UiDataParts, type UiMetadata } from 'legate/ai-sdk'
import { askTools, backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { lasting } from '../support/stores.ts'

type PageMessage = UIMessage<UiMetadata, UiDataParts>

const weather = tool({
  description: 'The weather.',
  input: z.object({ city: z.string() }),
  effect: 'pure',
  execute: ({ city }) => ({ city, degrees: 21 }),
})

const deploy = tool({
  description: 'Deploys.',
  input: z.object({ to: z.string() }),
  execute: ({ to }) => `deployed to ${to}`,
})

/** The message that a page has built when the stream ends, without what JSON does not carry. */
async function built(run: Run): Promise<PageMessage> {
  let message: PageMessage | undefined
  const stream = toUIMessageStream(run)
  for await (const state of readUIMessageStream<PageMessage>({ stream, onError: () => undefined })) message = state
  return plain(message as PageMessage)
}

function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value))
}

function dataOf<Name extends keyof UiDataParts>(message: { parts: readonly { type: string }[] }, name: Name) {
  const parts = message.parts.filter(({ type }) => type === `data-${name}`)
  return parts.map((part) => (part as unknown as { data: UiDataParts[Name] }).data)
}

/** A host whose grandchild must be allowed to deploy, and asks a person. */
function threeDeep() {
  const calls = [{ name: 'deploy', input: { to: 'prod' } }]
  const below = agent({
    name: 'below',
    instructions: 'x',
    tools: { deploy, ...askTools() },
    grant: { ask: ['tool:deploy'] },
    model: scriptedModel([
      { calls },
      { calls: [{ name: 'ask_person', input: { question: 'Which colour?' } }] },
      'It is out.',
    ]),
  })
  const between = agent({
    name: 'between',
    instructions: 'x',
    subagents: { below },
    model: scriptedModel([{ calls: [{ name: 'below', input: { message: 'go' } }] }, 'Done below.']),
  })
  return agent({
    name: 'host',
    instructions: 'x',
    tools: { weather },
    subagents: { between },
    model: scriptedModel([
      { reasoning: 'Hm.', text: 'One moment.', calls: [{ name: 'weather', input: { city: 'Rome' } }] },
      { calls: [{ name: 'between', input: { message: 'go' } }] },
      { text: 'All is done.', blocks: [{ type: 'image', mediaType: 'image/png', data: 'AAAA' }] },
    ]),
  })
}

async function untilAsked(runtime: Runtime) {
  for (;;) {
    const [approval] = await runtime.approvals()
    const [question] = await runtime.questions()
    if (approval !== undefined || question !== undefined) return { approval, question }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe.each(lasting)('a conversation in a store in %s is shown again', (_, create) => {
  test('as its stream had built it, while people are asked and afterwards, by another process', async () => {
    const rows = create()
    onTestFinished(() => rows.drop())
    const host = threeDeep()
    const first = createRuntime({ store: rows.open() })
    const run = first.run(host, 'Go.')
    const { approval } = await untilAsked(first)
    await first.close()

    const second = createRuntime({ store: rows.open(), agents: [host] })
    const waiting = await toUIMessages(await second.conversation(run.conversationId))
    expect(waiting.map(({ id, role }) => [id, role])).toEqual([
      [expect.any(String), 'user'],
      [run.id, 'assistant'],
    ])
    const [asked] = waiting.flatMap((message) => dataOf(message, 'approval'))
    expect(asked).toMatchObject({
      nodeId: approval?.nodeId,
      seen: approval?.seen,
      path: ['host', 'between', 'below'],
      request: 'tool:deploy',
      tool: 'deploy',
      input: { to: 'prod' },
      toolCallId: null,
      status: 'open',
    })
    await validateUIMessages({ messages: plain(waiting) })

    const shown = built(await second.attach(run.id))
    await second.resume()
    await second.answer(asked?.nodeId ?? '', { allow: true, seen: asked?.seen ?? '' })
    await untilAsked(second)
    const [question] = dataOf(
      (await toUIMessages(await second.conversation(run.conversationId)))[1] as never,
      'question',
    )
    expect(question).toMatchObject({ text: 'Which colour?', to: 'person', path: ['host', 'between', 'below'] })
    await second.answer(question?.nodeId ?? '', { text: 'Blue.' })
    const streamed = await shown
    await second.close()

    const third = createRuntime({ store: rows.open() })
    onTestFinished(() => third.close())
    const messages = await toUIMessages(await third.conversation(run.conversationId))
    expect(plain(messages[1])).toEqual(streamed)
    expect(await built(await third.attach(run.id))).toEqual(streamed)
    expect(streamed.parts.map(({ type }) => type)).toEqual([
      'step-start',
      'reasoning',
      'text',
      'tool-weather',
      'step-start',
      'tool-between',
      'data-subagent',
      'data-subagent-call',
      'data-subagent',
      'data-subagent-call',
      'data-approval',
      'data-subagent-call',
      'data-question',
      'step-start',
      'text',
      'file',
    ])
    expect(dataOf(streamed, 'approval')).toMatchObject([{ status: 'allowed', by: 'user' }])
    expect(dataOf(streamed, 'question')).toMatchObject([{ status: 'answered', by: 'user', answer: 'Blue.' }])
    expect(dataOf(streamed, 'subagent')).toMatchObject([{ status: 'completed' }, { status: 'completed' }])
    expect(dataOf(streamed, 'subagent-call')).toMatchObject([
      { tool: 'below', path: ['host', 'between'], state: 'output-available' },
      { tool: 'deploy', path: ['host', 'between', 'below'], input: { to: 'prod' }, output: 'deployed to prod' },
      { tool: 'ask_person', state: 'output-available', output: 'Blue.' },
    ])
    await validateUIMessages({ messages: plain(messages) })
  })
})

test('a result that is data is a value, one that only looks like it is a text', async () => {
  const note = tool({ description: 'x', input: z.object({}), effect: 'pure', execute: () => '{"a":1}' })
  const child = agent({
    name: 'child',
    instructions: 'x',
    input: z.object({ q: z.string() }),
    output: z.object({ score: z.number(), label: z.string().default('none') }),
    model: scriptedModel(['<think>Hm</think>{"score": 3}']),
  })
  const names = ['weather', 'note', 'child'] as const
  const inputs = { weather: { city: 'Rome' }, note: {}, child: { q: 'x' } }
  const host = agent({
    name: 'host',
    instructions: 'x',
    tools: { weather, note },
    subagents: { child },
    model: scriptedModel([{ calls: names.map((name) => ({ name, input: inputs[name] })) }, 'done']),
  })
  const runtime = openRuntime()
  const run = runtime.run(host, 'go')

  const message = await built(run)

  const outputs = message.parts.flatMap((part) => (isToolUIPart(part) ? [part.output] : []))
  expect(outputs).toEqual([{ city: 'Rome', degrees: 21 }, '{"a":1}', { score: 3, label: 'none' }])
  const messages = await toUIMessages(await runtime.conversation(run.conversationId))
  await validateUIMessages({
    messages: plain(messages),
    tools: {
      weather: {
        inputSchema: z.object({ city: z.string() }),
        outputSchema: z.object({ city: z.string(), degrees: z.number() }),
      },
      note: { inputSchema: z.object({}), outputSchema: z.string() },
      child: { inputSchema: z.object({ q: z.string() }), outputSchema: z.object({ score: z.number() }) },
    },
  })
})

class PageState implements ChatState<PageMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined
  messages: PageMessage[] = []
  pushMessage = (message: PageMessage) => {
    this.messages = [...this.messages, message]
  }
  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: PageMessage) => {
    this.messages = this.messages.map((old, at) => (at === index ? this.snapshot(message) : old))
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

class Page extends AbstractChat<PageMessage> {}

describe('a page of useChat whose person is asked', () => {
  /** A page, and the server it talks to. */
  function page(answer: { approved: boolean; reason?: string }) {
    const runtime = openRuntime()
    const model = scriptedModel([{ calls: [{ name: 'deploy', input: { to: 'prod' } }] }, 'Then that.'])
    const host = agent({ name: 'host', instructions: 'x', model, tools: { deploy }, grant: { ask: ['tool:deploy'] } })
    const errors: unknown[] = []
    const runs: Run[] = []
    const chat = new Page({
      id: 'my-chat',
      state: new PageState(),
      transport: {
        sendMessages: async ({ chatId, messages }) => {
          const part = messages.at(-1)?.parts[0]
          const run = runtime.run(host, part?.type === 'text' ? part.text : '', { conversationKey: chatId })
          runs.push(run)
          return toUIMessageStream(run) as never
        },
        reconnectToStream: async () => null,
      },
      onError: (error) => errors.push(error),
    })
    const click = async () => {
      for (;;) {
        const asking = chat.lastMessage?.parts.find((part) => isToolUIPart(part) && part.state === 'approval-requested')
        const [open] = chat.lastMessage === undefined ? [] : dataOf(chat.lastMessage, 'approval')
        if (asking !== undefined && isToolUIPart(asking) && open !== undefined) {
          const id = asking.approval?.id ?? ''
          expect(open).toMatchObject({ nodeId: id, toolCallId: asking.toolCallId, status: 'open' })
          await chat.addToolApprovalResponse({ id, ...answer })
          const { approved: allow, ...reason } = answer
          return runtime.answer(id, { allow, seen: open.seen, ...reason })
        }
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
    return { runtime, chat, click, errors, runs }
  }

  test.each([
    ['allows', { approved: true }, 'output-available'],
    ['denies', { approved: false, reason: 'Not on a Friday.' }, 'output-denied'],
  ] as const)('and %s holds what a reload gives', async (_, answer, state) => {
    const { runtime, chat, click, errors, runs } = page(answer)

    await Promise.all([chat.sendMessage({ text: 'Go.' }), click()])

    expect(errors).toEqual([])
    expect(chat.lastMessage?.parts[1]).toMatchObject({ type: 'tool-deploy', state })
    const [run] = runs
    const messages = await toUIMessages(await runtime.conversation(run?.conversationId ?? ''))
    expect(plain(messages[1])).toEqual(plain(chat.lastMessage))
    await validateUIMessages({ messages: plain(chat.messages) })
    await validateUIMessages({ messages: plain(messages) })
  })
})

test('arguments that a person has changed are shown as they were used, and a call that was stopped is a valid part', async () => {
  const runtime = openRuntime()
  const call = { calls: [{ name: 'deploy', input: { to: 'prod' } }] }
  const host = () =>
    agent({
      name: 'host',
      instructions: 'x',
      model: scriptedModel([call, 'done']),
      tools: { deploy },
      grant: { ask: ['tool:deploy'] },
    })
  const edited = runtime.run(host(), 'go')
  const { approval } = await untilAsked(runtime)
  await runtime.answer(approval?.nodeId ?? '', { allow: true, edit: { to: 'test' } })
  await edited.result
  const stopped = runtime.run(host(), 'go', { conversationId: edited.conversationId })
  await untilAsked(runtime)
  await stopped.cancel('enough')
  await stopped.result

  const messages = await toUIMessages(await runtime.conversation(edited.conversationId))

  const parts = messages.flatMap((message) => message.parts.filter(({ type }) => type === 'tool-deploy'))
  expect(parts).toMatchObject([
    { state: 'output-available', input: { to: 'test' }, output: 'deployed to test', approval: { approved: true } },
    { state: 'output-error' },
  ])
  expect(messages.at(-1)?.metadata).toMatchObject({ status: 'cancelled', error: { message: expect.any(String) } })
  expect(dataOf(messages.at(-1) as never, 'approval')).toMatchObject([{ status: 'over' }])
  await validateUIMessages({ messages: plain(messages) })
  expect((await built(await runtime.attach(edited.id))).parts[1]).toMatchObject({ input: { to: 'test' } })
})

describe('a page of messages', () => {
  async function chatOf(count: number) {
    const runtime = openRuntime()
    const host = agent({ name: 'host', instructions: 'x', model: scriptedModel(() => 'yes') })
    const runs: Run[] = []
    for (let at = 0; at < count; at++) {
      const [first] = runs
      runs.push(runtime.run(host, `say ${at}`, first === undefined ? {} : { conversationId: first.conversationId }))
      await runs.at(-1)?.result
    }
    return { runtime, runs, conversation: await runtime.conversation(runs[0]?.conversationId ?? '') }
  }

  const texts = (messages: readonly { parts: readonly unknown[] }[]) =>
    messages.flatMap(({ parts }) => (parts as { type: string; text: string }[]).flatMap(({ text }) => text ?? []))

  test('holds the turns that are asked for, and no others', async () => {
    const { runs, conversation } = await chatOf(5)

    expect(texts(await toUIMessages(conversation, { limitTurns: 2 }))).toEqual(['say 3', 'yes', 'say 4', 'yes'])
    const beforeTurnId = runs[3]?.id ?? ''
    expect(texts(await toUIMessages(conversation, { limitTurns: 1, beforeRunId: beforeTurnId }))).toEqual([
      'say 2',
      'yes',
    ])
    expect(await toUIMessages(conversation, { limitTurns: 0 })).toEqual([])
    await expect(toUIMessages(conversation, { limitTurns: 'all' as never })).rejects.toThrow(/limitTurns/)
  })

  test('has what counts of a changed history: what was kept of a turn, and nothing that was deleted', async () => {
    const runtime = openRuntime()
    const answers = ['first answer', 'second answer']
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? (answers.shift() ?? 'more')
        : { calls: [{ name: 'weather', input: { city: 'Rome' } }] },
    )
    const host = agent({ name: 'host', instructions: 'x', model, tools: { weather } })
    const run = runtime.run(host, 'go')
    await run.result
    const conversation = await runtime.conversation(run.conversationId)
    const last = localStore(runtime).nodesOf(run.id).at(-1)
    const again = await conversation.history.rerun(last?.id ?? '')
    await again.result

    const messages = await toUIMessages(conversation)
    expect(messages.map(({ id }) => id)).toEqual([expect.any(String), again.id])
    expect(messages[1]?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-weather', state: 'output-available', output: { degrees: 21 } },
      { type: 'step-start' },
      { type: 'text', text: 'second answer' },
    ])

    await conversation.history.softDelete(localStore(runtime).nodesOf(again.id).at(-1)?.id ?? '')
    expect(texts(await toUIMessages(conversation))).toEqual(['go'])
  })

  test('has what was observed, and what failed', async () => {
    const { conversation, runtime } = await chatOf(1)
    await conversation.observe('By the way.')
    const broken = agent({ name: 'host', instructions: 'x', model: scriptedModel([{ error: new Error('it burns') }]) })
    await runtime.run(broken, 'again', { conversationId: conversation.id }).result

    const messages = await toUIMessages(conversation)

    expect(texts(messages)).toEqual(['say 0', 'yes', 'By the way.', 'again'])
    expect(messages.at(-1)).toMatchObject({ role: 'assistant', metadata: { status: 'failed' } })
    await validateUIMessages({ messages: plain(messages) })
  })
})

test('a child that outlives its run asks in the message that started it', async () => {
  const runtime = openRuntime()
  const child = agent({
    name: 'child',
    instructions: 'x',
    tools: { deploy },
    grant: { ask: ['tool:deploy'] },
    model: scriptedModel([{ delayMs: 50, calls: [{ name: 'deploy', input: { to: 'prod' } }] }, 'Out.']),
  })
  const host = agent({
    name: 'host',
    instructions: 'x',
    tools: { ...backgroundSubagents({ agents: { child } }) },
    model: scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? 'It works on it.'
        : { calls: [{ name: 'subagent_spawn', input: { name: 'child', prompt: 'go' } }] },
    ),
  })
  const run = runtime.run(host, 'go')
  await run.result
  const { approval } = await untilAsked(runtime)
  const conversation = await runtime.conversation(run.conversationId)
  const answerOf = async () => (await toUIMessages(conversation)).find(({ id }) => id === run.id) as never

  expect(dataOf(await answerOf(), 'approval')).toMatchObject([{ nodeId: approval?.nodeId, status: 'open' }])
  await runtime.answer(approval?.nodeId ?? '', { allow: true })
  await runtime.idle()
  expect(dataOf(await answerOf(), 'subagent')).toMatchObject([{ status: 'completed' }])
})
