// Remote agents that want more than an answer.

import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRuntime } from 'legate'
import { a2aAgent } from 'legate/a2a'
import { expect, onTestFinished, test } from 'vitest'
import { checkCard } from '../../../src/server/protocols/a2a/remote/card.ts'

type Reply = (method: string, response: ServerResponse) => unknown

const PLACE = { taskId: 'task-1', contextId: 'context-1' }
const WORKING = { id: 'task-1', contextId: 'context-1', status: { state: 'TASK_STATE_WORKING' } }

function cardOf(url: string) {
  return {
    name: 'remote',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
  }
}

/** A remote agent with a task that is at work, and a stream of its own making. */
async function remoteWith(stream: Reply, task: () => unknown = () => WORKING) {
  const methods: string[] = []
  const listener: RequestListener = async (request, response) => {
    if (request.method === 'GET') return void response.end(JSON.stringify(cardOf(`http://${request.headers.host}/rpc`)))
    const { method } = JSON.parse(await textOf(request)) as { method: string }
    methods.push(method)
    if (method === 'SubscribeToTask') return void stream(method, response)
    const result = method === 'SendMessage' ? { task: WORKING } : task()
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  }
  const server = await listening(createServer(listener))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, methods }
}

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return server
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request) text += String(piece)
  return text
}

function begin(response: ServerResponse): (result: object) => boolean {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  return (result) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`)
}

async function outcomeOf(url: string, wallMs: number) {
  const runtime = createRuntime()
  onTestFinished(() => runtime.close())
  return runtime.run(a2aAgent({ name: 'remote', url, budget: { wallMs } }), 'hello').result
}

test.each([
  [
    'ends at once',
    (response: ServerResponse) => {
      begin(response)({ task: WORKING })
      response.end()
    },
  ],
  [
    'says that it is over, which the task does not',
    (response: ServerResponse) => {
      begin(response)({ statusUpdate: { ...PLACE, status: { state: 'TASK_STATE_COMPLETED' } } })
      response.end()
    },
  ],
  [
    'is refused',
    (response: ServerResponse) =>
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32004, message: 'No.' } })),
  ],
])('a stream that %s is opened again once a second, not at once', async (_, stream) => {
  const { url, methods } = await remoteWith((_method, response) => stream(response))
  expect((await outcomeOf(url, 1_200)).status).toBe('timed_out')
  expect(methods.filter((method) => method === 'SubscribeToTask').length).toBeLessThan(4)
})

test('a frame without an end fails the run, and is not asked for again', async () => {
  const { url, methods } = await remoteWith((_, response) => {
    begin(response)
    const piece = 'x'.repeat(1_000_000)
    const more = (): void => {
      while (!response.destroyed) if (!response.write(piece)) return void response.once('drain', more)
    }
    response.write('data: ')
    more()
  })
  expect((await outcomeOf(url, 20_000)).error?.message).toMatch(/sent more than 10000000 characters/)
  expect(methods.filter((method) => method === 'SubscribeToTask')).toHaveLength(1)
})

test('what a stream says of another task is left out', async () => {
  const { url } = await remoteWith((_, response) => {
    const say = begin(response)
    say({ artifactUpdate: { ...PLACE, taskId: 'task-2', artifact: { artifactId: 'a', parts: [{ text: 'Theirs.' }] } } })
    say({ artifactUpdate: { ...PLACE, artifact: { artifactId: 'a', parts: [{ text: 'Ours.' }] } } })
  })
  expect((await outcomeOf(url, 600)).text).toBe('Ours.')
})

const status = { state: 'TASK_STATE_COMPLETED' }
test.each([
  ['another task', { ...WORKING, id: 'task-2', status }, 'answered with another task than it was asked for'],
  ['no task', 'done', 'sent a task that is not an object'],
  ['no id', { status }, 'sent a task without an id'],
  ['no state', { ...WORKING, status: null }, 'sent a task without a state'],
  ['parts that are no list', { ...WORKING, status, artifacts: [{ parts: 'x' }] }, 'sent parts that are no list'],
  ['a part that is null', { ...WORKING, status, artifacts: [{ parts: [null] }] }, 'sent a part that is not an object'],
  ['a text that is a number', { ...WORKING, status, artifacts: [{ parts: [{ text: 1 }] }] }, '"text" is not a text'],
  ['no artifacts', { ...WORKING, status, artifacts: 7 }, 'sent artifacts that are no list'],
  [
    'a message that is a text',
    { ...WORKING, status: { ...status, message: 'x' } },
    'sent a message that is not an object',
  ],
])('a remote agent that answers with %s fails the run in words of ours', async (_, task, words) => {
  const { url } = await remoteWith(
    (_method, response) => response.end(),
    () => task,
  )
  const { status: ended, error } = await outcomeOf(url, 5_000)
  expect({ ended, message: error?.message }).toEqual({ ended: 'failed', message: expect.stringContaining(words) })
  expect(error?.message).toMatch(/^.*The remote agent /)
})

test('a part in a stream that is malformed fails the run, and is not asked for again', async () => {
  const { url, methods } = await remoteWith((_, response) => {
    begin(response)({ artifactUpdate: { ...PLACE, artifact: { artifactId: 'a', parts: [7] } } })
  })
  expect((await outcomeOf(url, 5_000)).error?.message).toContain('sent a part that is not an object')
  expect(methods.filter((method) => method === 'SubscribeToTask')).toHaveLength(1)
})

test.each([
  ['pieces', (words: readonly string[]) => words.map((text, at) => artifactOf(text, at > 0))],
  [
    'the whole so far',
    (words: readonly string[]) => words.map((_, at) => artifactOf(words.slice(0, at + 1).join(''), false)),
  ],
  [
    'its task, then pieces',
    (words: readonly string[], from: number) => [
      { task: { ...WORKING, artifacts: [{ artifactId: 'a', parts: [{ text: words.slice(0, from).join('') }] }] } },
      ...words.slice(from).map((text) => artifactOf(text, true)),
    ],
  ],
])('words of a stream that breaks and tells %s again come once', async (_, tell) => {
  const words = ['One ', 'two ', 'one ', 'three.']
  let streams = 0
  const { url } = await remoteWith((_method, response) => {
    const say = begin(response)
    const seen = ++streams * 2
    for (const update of tell(words.slice(0, seen), streams === 1 ? 0 : 2)) say(update)
    if (streams < 2) setTimeout(() => response.destroy(), 50)
  })
  expect((await outcomeOf(url, 2_500)).text).toBe(words.join(''))
  expect(streams).toBe(2)
})

function artifactOf(text: string, append: boolean) {
  return { artifactUpdate: { ...PLACE, append, artifact: { artifactId: 'a', parts: [{ text }] } } }
}

test('a frame that comes in small pieces is one frame, whatever its line ends', async () => {
  const { url } = await remoteWith((_, response) => {
    begin(response)
    const result = { artifactUpdate: { ...PLACE, artifact: { artifactId: 'a', parts: [{ text: 'In pieces.' }] } } }
    const pieces = [...`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\r\n\r\n`]
    const next = (): void => {
      const piece = pieces.shift()
      if (piece !== undefined) response.write(piece, () => setTimeout(next))
    }
    next()
  })
  expect((await outcomeOf(url, 1_500)).text).toBe('In pieces.')
})

test('a card leads neither to another host nor out of https', () => {
  const at = (url: string) => () => checkCard(cardOf(url), 'https://agents.example/a2a/clerk')
  expect(at('https://agents.example:8443/rpc')().url).toBe('https://agents.example:8443/rpc')
  expect(at('http://agents.example/rpc')).toThrow('https')
  expect(at(' http://agents.example/rpc')).toThrow('https')
  expect(at('ws://agents.example/rpc')).toThrow('https')
  expect(at('https://elsewhere.example/rpc')).toThrow('another host')
})
