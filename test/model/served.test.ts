import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { agent, createRuntime, tool } from 'legate'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'

beforeEach(() => {
  vi.stubEnv('XDG_CONFIG_HOME', tempFolder())
  vi.stubEnv('LEGATE_CONFIG', undefined)
  vi.stubEnv('OPENAI_API_KEY', 'key')
  vi.stubEnv('ANTHROPIC_API_KEY', 'key')
})
afterEach(() => {
  vi.unstubAllEnvs()
})

interface Server {
  readonly url: string
  readonly asked: string[]
}

/** A server that answers what `answer` knows, and 404 to all else. */
async function serve(answer: (path: string, body: string, response: ServerResponse) => boolean): Promise<Server> {
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    asked.push(request.url ?? '')
    if (!answer(request.url ?? '', await textOf(request), response)) response.writeHead(404).end('404 page not found')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request) text += String(piece)
  return text
}

function events(response: ServerResponse, all: readonly object[]): true {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const one of all) response.write(`data: ${JSON.stringify(one)}\n\n`)
  response.end('data: [DONE]\n\n')
  return true
}

/** What Ollama, vLLM and LM Studio have in common: chat completions. Calls a tool first, then says what came of it. */
function chatOnly(path: string, body: string, response: ServerResponse): boolean {
  if (path !== '/v1/chat/completions') return false
  const isDone = body.includes('"role":"tool"')
  const call = { index: 0, id: 'c', type: 'function', function: { name: 'add', arguments: '{"a":2,"b":3}' } }
  const delta = isDone ? { content: 'It is five.' } : { tool_calls: [call] }
  const choice = (more: object) => ({ id: 'x', object: 'chat.completion.chunk', choices: [{ index: 0, ...more }] })
  return events(response, [
    choice({ delta: { role: 'assistant', ...delta } }),
    choice({ delta: {}, finish_reason: isDone ? 'stop' : 'tool_calls' }),
    { id: 'x', choices: [], usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } },
  ])
}

const add = tool({
  description: 'Adds.',
  input: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
  execute: () => '5',
})

async function ask(model: string) {
  const runtime = createRuntime()
  const clerk = agent({ name: 'clerk', instructions: 'You add.', model, tools: { add } })
  const outcome = await runtime.run(clerk, 'Add 2 and 3.').result
  await runtime.close()
  return outcome
}

describe('OPENAI_BASE_URL of a server', () => {
  test('a server that has chat completions only: it is asked so, tools and usage included, and only once otherwise', async () => {
    const server = await serve(chatOnly)
    vi.stubEnv('OPENAI_BASE_URL', `${server.url}/v1`)
    const outcome = await ask('openai/qwen3')

    expect(outcome).toMatchObject({ status: 'completed', text: 'It is five.', toolCalls: 1 })
    expect(outcome.usage).toMatchObject({ inputTokens: 10, outputTokens: 4 })
    expect(server.asked).toEqual(['/v1/responses', '/v1/chat/completions', '/v1/chat/completions'])
  })

  test('a server that knows nothing of it: the error names the address that was asked, and what to try', async () => {
    const server = await serve(chatOnly)
    vi.stubEnv('OPENAI_BASE_URL', server.url)
    const { status, error } = await ask('openai/qwen3')

    expect(status).toBe('failed')
    expect(error?.message).toBe(
      `openai/qwen3 failed (status 404): Not Found. It was asked at ${server.url}/chat/completions. Check the name of the model, and the address in OPENAI_BASE_URL: most servers want /v1 at its end.`,
    )
  })

  test.each([
    ['openai/x', 'OPENAI_BASE_URL', '/v1', '/v1/chat/completions'],
    ['anthropic/x', 'ANTHROPIC_BASE_URL', '', '/v1/messages'],
    ['ollama/x', 'OLLAMA_HOST', '', '/v1/chat/completions'],
    ['google/x', 'GEMINI_BASE_URL', '/v1beta', '/v1beta/models/x:streamGenerateContent'],
  ])(
    'of %s, whose address in %s is right, the name of the model is told to be looked at',
    async (model, name, ending, asked) => {
      const server = await serve(() => false)
      vi.stubEnv(name, `${server.url}${ending}`)
      vi.stubEnv('GEMINI_API_KEY', 'key')
      const { error } = await ask(model)

      expect(error?.message).toMatch(/^\w+\/x failed \(status 404\): Not Found\. It was asked at /)
      expect(error?.message).toContain(
        `It was asked at ${server.url}${asked}. Check the name of the model, and the address in ${name}.`,
      )
    },
  )
})

describe('ANTHROPIC_BASE_URL', () => {
  function messages(path: string, _body: string, response: ServerResponse): boolean {
    if (!path.endsWith('/v1/messages')) return false
    const usage = { input_tokens: 5, output_tokens: 2 }
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'claude', content: [], usage }
    return events(response, [
      { type: 'message_start', message },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Five.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
      { type: 'message_stop' },
    ])
  }

  test.each([
    ['', '/v1/messages'],
    ['/', '/v1/messages'],
    ['/v1', '/v1/messages'],
    ['/v1/', '/v1/messages'],
    ['/gateway/anthropic', '/gateway/anthropic/v1/messages'],
  ])('works as "%s"', async (ending, asked) => {
    const server = await serve(messages)
    vi.stubEnv('ANTHROPIC_BASE_URL', `${server.url}${ending}`)

    expect(await ask('anthropic/claude-sonnet-5')).toMatchObject({ status: 'completed', text: 'Five.' })
    expect(server.asked).toEqual([asked])
  })
})
