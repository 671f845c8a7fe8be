import type { Message, Model, ModelRequest, Part, ToolSchema } from '../../index.ts'

/** The tool that delegates to each name, as the model sees it. */
export type ToolOf = (name: string) => string | undefined

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/**
 * The model of a chat. What a person says to `@name` is handed to that subagent without asking the model; all else, and
 * what is made of the subagent's answer, is the model's.
 */
export function mentionModel(model: Model, toolOf: ToolOf): Model {
  return {
    get id() {
      return model.id
    },
    stream: (request, options) => {
      const call = mentionedCall(request, toolOf)
      return call === undefined ? model.stream(request, options) : handedOver(call)
    },
  }
}

interface MentionedCall {
  readonly tool: string
  readonly input: { readonly message: string; readonly session_id?: string }
}

/** Only what was said last counts, and only where it begins with the name. */
function mentionedCall({ messages, tools }: ModelRequest, toolOf: ToolOf): MentionedCall | undefined {
  const { name, rest } = mentionOf(lastSaid(messages.at(-1))) ?? {}
  const tool = name === undefined ? undefined : toolOf(name)
  const offered = tools.find((one) => one.name === tool)
  if (tool === undefined || rest === undefined || !takesMessage(offered)) return undefined
  const session = sessionWith(tool, messages)
  return { tool, input: { message: rest, ...(session === undefined ? {} : { session_id: session }) } }
}

/** One with an input of its own is the model's to fill in. */
function takesMessage(tool: ToolSchema | undefined): boolean {
  const properties = tool?.inputSchema['properties']
  return typeof properties === 'object' && properties !== null && 'message' in properties
}

/** Whoever was spoken to before remembers it. */
function sessionWith(tool: string, messages: readonly Message[]): string | undefined {
  const results = messages.filter((message) => message.role === 'tool' && message.name === tool)
  const [, id] = /^session_id: ([\w-]+)/.exec(textOf(results.at(-1))) ?? []
  return id
}

/** Whom a message is for and what it says; undefined where it begins with no name. */
export function mentionOf(text: string): { readonly name: string; readonly rest: string } | undefined {
  const [, name = '', rest = ''] = /^\s*@([\p{L}\p{N}_][\p{L}\p{N}_./-]*)[,:]?\s+(\S[\s\S]*)$/u.exec(text) ?? []
  return name === '' ? undefined : { name, rest: rest.trim() }
}

function lastSaid(message: Message | undefined): string {
  return message?.role === 'user' ? textOf(message) : ''
}

function textOf(message: Message | undefined): string {
  if (message === undefined) return ''
  if (typeof message.content === 'string') return message.content
  return message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

async function* handedOver({ tool, input }: MentionedCall): AsyncGenerator<Part, void> {
  yield { type: 'tool-call', id: `mention-${tool}`, name: tool, input }
  yield { type: 'finish', reason: 'tool-calls', usage: NO_USAGE }
}
