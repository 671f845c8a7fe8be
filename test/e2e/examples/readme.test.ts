import { readFileSync } from 'node:fs'
import path from 'node:path'
import { type ChatCompletionRequest, LLMock } from '@copilotkit/aimock'
import { expect, onTestFinished, test } from 'vitest'
import { stopMock } from '../../support/mock-provider.ts'
import { runProgram, skipUnlessBuilt } from '../../support/program.ts'
import { snippetsIn } from './snippets.ts'

const readme = readFileSync(path.resolve(import.meta.dirname, '../../../README.md'), 'utf8')

test('the example of the README is short, runs with a real client, and prints what it says', async (context) => {
  skipUnlessBuilt(context)
  const [example, ...others] = snippetsIn('README.md')
  if (example === undefined) throw new Error('README.md has no example')
  const provider = await openaiStandIn()

  expect(others).toEqual([])
  const lines = example.code.trim().split('\n')
  expect(lines.filter((line) => !line.startsWith('// > ')).length).toBeLessThanOrEqual(16)
  const env = { OPENAI_API_KEY: 'any', OPENAI_BASE_URL: `${provider.url}/v1` }
  expect(await runProgram(example.code, env)).toBe(example.prints)
})

test('the example of the README says that a key is missing', async (context) => {
  skipUnlessBuilt(context)
  const [example] = snippetsIn('README.md')

  expect(await runProgram(example?.code ?? '', { OPENAI_API_KEY: '' })).toContain('OPENAI_API_KEY')
})

test('the README is one page, says how to install it, and has the two commands', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(120)
  expect(readme).toContain('npm i legate zod\n')
  expect(readme).toContain('npm install && npm run demo\n')
  expect(readme).toContain('npm install && npm test\n')
})

/** A server that speaks as OpenAI does. Its model asks for research first, and as the researcher it tries to publish. */
async function openaiStandIn(): Promise<LLMock> {
  const mock = new LLMock({ port: 0, logLevel: 'silent' })
  mock.on({}, (request) => answerTo(request))
  await mock.start()
  onTestFinished(() => stopMock(mock))
  return mock
}

function answerTo({ messages, tools = [] }: ChatCompletionRequest) {
  const isEditor = tools.some((one) => one.function.name === 'research')
  const hasResult = messages.at(-1)?.role === 'tool'
  if (hasResult) return { content: isEditor ? 'QUIC is fast. It is not published.' : 'QUIC saves a round trip.' }
  if (isEditor) return { toolCalls: [{ name: 'research', arguments: '{"topic":"QUIC"}' }] }
  return { toolCalls: [{ name: 'publish', arguments: '{}' }] }
}
