import { parseJson } from '../../../core/base/json.ts'
import { flag, type OptionRules, readOptions } from '../../../core/base/options.ts'
import type { Model, ModelRequest } from '../../../doors/models.ts'
import { type AnyAgent, agent, type Content, type Json, type Tool } from '../../../index.ts'

/** How a tool is offered by itself. */
export interface ToolAgentOptions {
  /** True: a person is asked before each call. Default false. */
  readonly ask?: boolean
}

const OPTIONS: OptionRules<ToolAgentOptions> = { ask: flag }
const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/**
 * Makes an agent that calls one tool, once, with its own input, and gives the result. So a tool is offered to callers as agents
 * are: over MCP and everything else, recorded, within what the caller may use, with approvals and tasks. No model is asked.
 */
export function toolAgent(name: string, tool: Tool<never>, options: ToolAgentOptions = {}): AnyAgent {
  const { ask = false } = readOptions('toolAgent(name, tool, options)', options, OPTIONS)
  const { description, input, output } = tool
  const isObject = output?.jsonSchema['type'] === 'object'
  return agent({
    name,
    description,
    instructions: '',
    input: input.jsonSchema,
    ...(isObject ? { output: output.jsonSchema } : {}),
    tools: { [name]: tool },
    grant: { use: [`tool:${name}`], ...(ask ? { ask: [`tool:${name}`] } : {}) },
    model: callingOnce(name),
  }) as AnyAgent
}

/** Stands where a model would: calls the tool with what it is told, then says the result. A failed call is a failed answer. */
function callingOnce(name: string): Model {
  return {
    id: 'legate/call',
    async *stream({ messages }: ModelRequest) {
      const last = messages.at(-1)
      if (last?.role !== 'tool') {
        yield { type: 'tool-call', id: 'call', name, input: inputOf(wordsOf(last?.content ?? '')) }
        yield { type: 'finish', reason: 'tool-calls', usage: NO_USAGE }
        return
      }
      if (last.isError) throw new Error(wordsOf(last.content))
      yield { type: 'text-delta', text: wordsOf(last.content) }
      yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
    },
  }
}

/** The run's input is its first message, as JSON. */
function inputOf(text: string): Json {
  const read = parseJson(text)
  return read.ok ? read.value : text
}

function wordsOf(content: Content): string {
  if (typeof content === 'string') return content
  return content.map((block) => ('text' in block ? block.text : `[${block.type}]`)).join('\n')
}
