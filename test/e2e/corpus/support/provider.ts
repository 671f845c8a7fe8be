import { setTimeout as sleep } from 'node:timers/promises'
import { type ChatCompletionRequest, type ChatMessage, LLMock } from '@copilotkit/aimock'
import { onTestFinished } from 'vitest'
import { stopMock } from '../../../support/mock-provider.ts'
import { CHILD_ANSWER, type Expectation } from './expectation.ts'

export const ANSWER = 'Every tool was tried.'

/** A real server that speaks as OpenAI and Anthropic do. Its model calls what is expected to be called, then answers. */
export class Provider {
  readonly mock = new LLMock({ port: 0, logLevel: 'silent' })
  /** The requests of the agent itself, and of its children. */
  readonly requests: ChatCompletionRequest[] = []
  private readonly expected: Pick<Expectation, 'steps' | 'output'>
  private root: string | undefined

  constructor(expected: Pick<Expectation, 'steps' | 'output'>) {
    this.expected = expected
    this.mock.on({}, (request) => this.answer(request))
  }

  async start(): Promise<NodeJS.ProcessEnv> {
    await this.mock.start()
    onTestFinished(async () => {
      await Promise.race([stopMock(this.mock), sleep(500)])
    })
    const { url } = this.mock
    return {
      OPENAI_BASE_URL: `${url}/v1`,
      OPENAI_API_KEY: 'key-of-openai',
      ANTHROPIC_BASE_URL: `${url}/v1`,
      ANTHROPIC_API_KEY: 'key-of-anthropic',
      LEGATE_MODEL: 'openai/gpt-5',
    }
  }

  /** What the agent got back for its calls, in the order in which they were made. */
  get results(): readonly string[] {
    const last = this.requests.findLast((request) => firstWords(request) === this.root)
    return (last?.messages ?? []).filter(({ role }) => role === 'tool').map(textOf)
  }

  private answer(request: ChatCompletionRequest) {
    this.requests.push(request)
    this.root ??= firstWords(request)
    return firstWords(request) === this.root ? this.next(request) : childAnswer(request)
  }

  private next({ messages }: ChatCompletionRequest) {
    let done = callsIn(messages)
    const { steps, output } = this.expected
    for (const step of steps) {
      if (done === 0) return calling(step)
      done -= step.length
    }
    return output === null ? { content: ANSWER } : calling([{ name: 'recipe__final_output', input: output }])
  }
}

/** A child runs one program and says what came of it. */
function childAnswer({ messages }: ChatCompletionRequest) {
  const result = messages.findLast(({ role }) => role === 'tool')
  if (result !== undefined) return { content: `${CHILD_ANSWER}${textOf(result)}` }
  return calling([{ name: 'shell', input: { command: 'echo the child works' } }])
}

function calling(calls: readonly { readonly name: string; readonly input: object }[]) {
  return { toolCalls: calls.map(({ name, input }) => ({ name, arguments: JSON.stringify(input) })) }
}

function callsIn(messages: readonly ChatMessage[]): number {
  return messages.reduce((sum, { tool_calls = [] }) => sum + tool_calls.length, 0)
}

/** What an agent is asked tells it from its children. */
function firstWords({ messages }: ChatCompletionRequest): string {
  const first = messages.find(({ role }) => role === 'user')
  return first === undefined ? '' : textOf(first)
}

function textOf({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join('')
}
