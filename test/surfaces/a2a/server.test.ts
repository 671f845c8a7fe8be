import { type Task, TaskState } from '@a2a-js/sdk'
import { agent, type Content, type Principal, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Receiver, verified } from '../../server/support/receiver.ts'
import { greeter, type Setting, startServer } from '../../server/support/server.ts'
import { answerOf, clientOf, inShort, said } from './support/peer.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel', 'approve'] }
const FAST = { allowPrivate: true, retryMs: Array<number>(60).fill(100), timeoutMs: 500, leaseMs: 2_000 }
const PLENTY = { startsPerMinute: 100_000, readsPerMinute: 100_000 }

/** Asks a person, and repeats the answer. */
const asker = agent({
  name: 'asker',
  effect: 'idempotent',
  reply: async (_, { ask }) => `You said ${await ask('Which city?')}.`,
})
/** Works until it is stopped. */
const slow = agent({
  name: 'slow',
  effect: 'pure',
  reply: (_, { signal }) =>
    new Promise<string>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
})
const sum = agent({
  name: 'sum',
  input: z.object({ a: z.number(), b: z.number() }),
  output: z.object({ sum: z.number() }),
  reply: ({ a, b }) => ({ sum: a + b }),
})
const deploy = tool({ description: 'Deploys.', input: z.object({}), effect: 'effectful', execute: () => 'It is live.' })
const careful = () =>
  agent({
    name: 'careful',
    instructions: 'Deploy.',
    model: scriptedModel([{ text: 'Let me see.', calls: [{ name: 'deploy', input: {} }] }, 'Deployed.']),
    tools: { deploy },
    grant: { use: ['tool:*', 'model:*'], ask: ['tool:deploy'] },
  })

async function start(): Promise<Setting> {
  return startServer({ webhooks: FAST, limits: PLENTY }, { agents: [greeter, asker, slow, sum, careful()] })
}

const task = (result: unknown) => result as Task

describe.each(['JSONRPC', 'HTTP+JSON'] as const)('the official client over %s', (binding) => {
  test('finds the card, sends a message and reads the task', async () => {
    await using setting = await start()
    const token = await setting.tokenFor(ann)
    const client = await clientOf(`${setting.server.url}/a2a/greeter`, token, binding)
    const card = await client.getAgentCard()

    expect(card).toMatchObject({ name: 'greeter', capabilities: { streaming: true, pushNotifications: true } })
    expect(card.supportedInterfaces.map(({ url }) => url)).toEqual(Array(2).fill(`${setting.server.url}/a2a/greeter`))
    const request = said('Hi')
    const done = task(await client.sendMessage(request))
    expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect(answerOf(done)).toBe('Hello there, friend.')
    expect(done.history.map(({ role }) => role)).toEqual([1, 2])
    // The same message again is the same task.
    expect(task(await client.sendMessage(request)).id).toBe(done.id)
    expect(await client.getTask({ tenant: '', id: done.id })).toMatchObject({ id: done.id, contextId: done.contextId })
    const next = task(await client.sendMessage(said('And now?', { contextId: done.contextId })))
    expect(next).toMatchObject({ contextId: done.contextId })
    expect(next.id).not.toBe(done.id)
  })

  test('streams a task, also one that is there already', async () => {
    await using setting = await start()
    const token = await setting.tokenFor(ann)
    const client = await clientOf(`${setting.server.url}/a2a/greeter`, token, binding)
    const request = said('Hi')
    const whole = [
      `task ${TaskState.TASK_STATE_SUBMITTED}`,
      `status ${TaskState.TASK_STATE_WORKING}`,
      'artifactUpdate',
      `status ${TaskState.TASK_STATE_COMPLETED}`,
    ]

    expect(await inShort(client.sendMessageStream(request))).toEqual(whole)
    expect(await inShort(client.sendMessageStream(request))).toEqual(whole)
  })

  test('answers what a task asks, while a subscriber follows it to its end', async () => {
    await using setting = await start()
    const token = await setting.tokenFor(ann)
    const client = await clientOf(`${setting.server.url}/a2a/asker`, token, binding)
    const waiting = task(await client.sendMessage(said('Hi')))

    expect(waiting.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED)
    expect(waiting.status?.message?.parts[0]?.content?.value).toBe('Which city?')
    const followed = inShort(client.resubscribeTask({ tenant: '', id: waiting.id }))
    const done = task(await client.sendMessage(said('Bern', { taskId: waiting.id })))
    expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
    expect(answerOf(done)).toBe('You said Bern.')
    expect((await followed).at(-1)).toBe(`status ${TaskState.TASK_STATE_COMPLETED}`)
  })

  test('cancels a task, and lists tasks, the newest first', async () => {
    await using setting = await start()
    const token = await setting.tokenFor(ann)
    const client = await clientOf(`${setting.server.url}/a2a/slow`, token, binding)
    const configuration = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true }
    const ids: string[] = []
    for (const word of ['one', 'two', 'three']) {
      const begun = task(await client.sendMessage({ ...said(word), configuration }))
      expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(begun.status?.state)
      ids.push(begun.id)
    }
    const [first = ''] = ids
    const cancelled = await client.cancelTask({ tenant: '', id: first, metadata: undefined })
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED)

    const query = { tenant: '', contextId: '', status: 0, pageToken: '', statusTimestampAfter: undefined, pageSize: 2 }
    const page = await client.listTasks(query)
    const rest = await client.listTasks({ ...query, pageToken: page.nextPageToken })
    expect([page.tasks.length, page.totalSize, rest.tasks.length, rest.nextPageToken]).toEqual([2, 3, 1, ''])
    expect(page.tasks[0]?.id).toBe(first)
    expect(page.tasks[0]?.artifacts).toEqual([])
    expect([...page.tasks, ...rest.tasks].map(({ id }) => id).sort()).toEqual([...ids].sort())
    const over = await client.listTasks({ ...query, status: TaskState.TASK_STATE_CANCELED, includeArtifacts: true })
    expect(over.tasks.map(({ id }) => id)).toEqual([first])
    for (const id of ids.slice(1)) await client.cancelTask({ tenant: '', id, metadata: undefined })
  })

  test('gives a value and gets one', async () => {
    await using setting = await start()
    const client = await clientOf(`${setting.server.url}/a2a/sum`, await setting.tokenFor(ann), binding)
    const done = task(await client.sendMessage(said({ $case: 'data', value: { a: 2, b: 3 } })))

    expect(done.artifacts.at(-1)?.parts[0]?.content).toEqual({ $case: 'data', value: { sum: 5 } })
    await expect(client.sendMessage(said({ $case: 'data', value: { a: 2 } }))).rejects.toThrow(/b/)
  })
})

test('a call that must be allowed is shown to who may allow it, and to nobody else', async () => {
  await using setting = await start()
  const [own, blind] = [await setting.tokenFor(ann), await setting.tokenFor({ ...ann, scopes: ['start', 'read'] })]
  const url = `${setting.server.url}/a2a/careful`
  const [client, other] = [await clientOf(url, own), await clientOf(url, blind)]
  const waiting = task(await client.sendMessage(said('Deploy.')))
  const [, data] = waiting.status?.message?.parts ?? []

  expect(data?.content?.value).toMatchObject({ kind: 'approval', request: 'tool:deploy', tool: 'deploy' })
  expect((await other.getTask({ tenant: '', id: waiting.id })).status).toMatchObject({
    state: TaskState.TASK_STATE_WORKING,
  })
  const { nodeId, seen } = (data?.content?.value ?? {}) as { nodeId: string; seen: string }
  const answer = said({ $case: 'data', value: { nodeId, allow: true, seen } }, { taskId: waiting.id })
  const blindly = said({ $case: 'data', value: { nodeId, allow: true } }, { taskId: waiting.id })
  await expect(client.sendMessage(blindly)).rejects.toThrow(/give `seen`/)
  await expect(other.sendMessage(answer)).rejects.toThrow(/waits for no message/)
  await expect(client.sendMessage(said('Yes!', { taskId: waiting.id }))).rejects.toThrow(/nodeId/)
  expect(answerOf(task(await client.sendMessage(answer)))).toBe('Deployed.')
})

test('the same ids of two principals have nothing to do with each other', async () => {
  await using setting = await start()
  const url = `${setting.server.url}/a2a/greeter`
  const [one, two] = [
    await clientOf(url, await setting.tokenFor(ann)),
    await clientOf(url, await setting.tokenFor({ ...ann, id: 'bob' })),
  ]
  const request = said('Hi', { messageId: 'message-1' })
  const [mine, his] = [task(await one.sendMessage(request)), task(await two.sendMessage(request))]

  expect(mine.id).not.toBe(his.id)
  const unknown = '01890000-0000-7000-8000-00000000dead'
  const asked = async (id: string) => String(await two.getTask({ tenant: '', id }).catch((error: unknown) => error))
  expect(await asked(mine.id)).toBe(await asked(unknown))
  await expect(two.cancelTask({ tenant: '', id: mine.id, metadata: undefined })).rejects.toThrow('no such task')
  await expect(two.sendMessage(said('Hi', { contextId: mine.contextId }))).rejects.toThrow('no such context')
  await expect(two.sendMessage(said('Hi', { taskId: mine.id }))).rejects.toThrow('no such task')
  const query = { tenant: '', contextId: mine.contextId, status: 0, pageToken: '', statusTimestampAfter: undefined }
  expect((await two.listTasks(query)).tasks).toEqual([])
  // Another agent has other tasks.
  const sums = await clientOf(`${setting.server.url}/a2a/sum`, await setting.tokenFor(ann))
  await expect(sums.getTask({ tenant: '', id: mine.id })).rejects.toThrow('no such task')
})

test('push notifications arrive signed, in order, and end with their task', async () => {
  await using receiver = await new Receiver().listen()
  await using setting = await start()
  const client = await clientOf(`${setting.server.url}/a2a/asker`, await setting.tokenFor(ann))
  const token = `whsec_${Buffer.from('a secret of the peer').toString('base64')}`
  const push = {
    tenant: '',
    id: 'mine',
    taskId: '',
    url: receiver.url,
    token,
    authentication: { scheme: 'Bearer', credentials: 'let-me-in' },
  }
  const configuration = { acceptedOutputModes: [], taskPushNotificationConfig: push, returnImmediately: false }
  const { id } = task(await client.sendMessage({ ...said('Hi'), configuration }))
  const other = task(await client.sendMessage(said('Hi')))
  await receiver.until((arrived) => arrived.length >= 1)
  const read = await client.getTaskPushNotificationConfig({ tenant: '', taskId: id, id: 'mine' })
  expect(read).toMatchObject({ id: 'mine', taskId: id, url: receiver.url, token: '' })
  for (const taskId of [other.id, id]) await client.sendMessage(said('Bern', { taskId }))
  const arrived = await receiver.until((some) => some.length >= 2)

  const bodies = arrived.map(
    (one) => verified(token, one) as unknown as { statusUpdate: { taskId: string; status: object } },
  )
  expect(bodies.map(({ statusUpdate }) => [statusUpdate.taskId, statusUpdate.status])).toEqual([
    [id, expect.objectContaining({ state: 'TASK_STATE_INPUT_REQUIRED' })],
    [id, expect.objectContaining({ state: 'TASK_STATE_COMPLETED' })],
  ])
  expect(arrived.map(({ headers }) => headers['authorization'])).toEqual(['Bearer let-me-in', 'Bearer let-me-in'])
  expect(JSON.stringify(bodies)).not.toMatch(/Bern|city/)
  await expect
    .poll(
      async () =>
        (await client.listTaskPushNotificationConfig({ tenant: '', taskId: id, pageSize: 0, pageToken: '' })).configs,
    )
    .toEqual([])
})

test('pieces of an answer are parts, and a run that may not begin is rejected', async () => {
  const maker = agent({
    name: 'maker',
    reply: (): Content => [
      { type: 'text', text: 'Here it is.' },
      { type: 'json', value: { pages: 2 } },
      { type: 'file', mediaType: 'application/pdf', data: 'JVBERg==' },
      { type: 'image', mediaType: 'image/png', data: 'https://images.example/a.png' },
    ],
  })
  const barred = agent({ name: 'barred', reply: () => 'x', needs: () => ['net:b.example'] })
  await using setting = await startServer({}, { agents: [maker, barred] })
  const token = await setting.tokenFor(ann)
  const made = task(await (await clientOf(`${setting.server.url}/a2a/maker`, token)).sendMessage(said('Hi')))

  expect(made.artifacts[0]?.parts.map(({ content, mediaType }) => [content, mediaType])).toEqual([
    [{ $case: 'text', value: 'Here it is.' }, ''],
    [{ $case: 'data', value: { pages: 2 } }, 'application/json'],
    [{ $case: 'raw', value: Buffer.from('JVBERg==', 'base64') }, 'application/pdf'],
    [{ $case: 'url', value: 'https://images.example/a.png' }, 'image/png'],
  ])
  const refused = task(await (await clientOf(`${setting.server.url}/a2a/barred`, token)).sendMessage(said('Hi')))
  expect(refused.status?.state).toBe(TaskState.TASK_STATE_REJECTED)
  expect(refused.metadata).toMatchObject({ 'legate.status': 'denied' })
})

test('the trace of a peer goes on in its task', async () => {
  await using setting = await start()
  const client = await clientOf(`${setting.server.url}/a2a/greeter`, await setting.tokenFor(ann))
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const { id } = task(await client.sendMessage(said('Hi', { metadata: { traceparent } })))

  expect(JSON.stringify(await setting.runtime.otlp(id))).toContain('0af7651916cd43dd8448eb211c80319c')
})

test('push notifications are made, listed and deleted for a task', async () => {
  await using setting = await start()
  const client = await clientOf(`${setting.server.url}/a2a/greeter`, await setting.tokenFor(ann))
  const { id: taskId } = task(await client.sendMessage(said('Hi')))
  const push = { tenant: '', id: '', taskId, url: 'https://hooks.example/a2a', token: '', authentication: undefined }
  const made = await client.createTaskPushNotificationConfig(push)

  expect(made.token).toMatch(/^whsec_/)
  const listed = () => client.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' })
  expect((await listed()).configs).toEqual([{ ...made, token: '' }])
  await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: made.id })
  await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: made.id })
  expect((await listed()).configs).toEqual([])
  await expect(client.getTaskPushNotificationConfig({ tenant: '', taskId, id: made.id })).rejects.toThrow()
  const inside = { ...push, url: 'ftp://example.com' }
  await expect(client.createTaskPushNotificationConfig(inside)).rejects.toThrow()
})
