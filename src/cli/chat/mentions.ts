import type { ExtensionCore, Message, ModelRequest, Part, ToolSchema } from '../../index.ts'

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/**
 * What a person says to `@name` is handed to that subagent without asking the model; all else, and what is made of the
 * subagent's answer, is the model's.
 */
export function mentions(): ExtensionCore {
  return {
    name: 'mentions',
    hooks: {
      wrapModel: (request, next, { path }) => {
        const call = path.length === 1 ? mentionedCall(request) : undefined
        return call === undefined ? next(request) : handedOver(call)
      },
    },
  }
}

interface MentionedCall {
  readonly tool: string
  readonly input: { readonly message: string; readonly session_id?: string }
}

/** Only what was said last counts, and only where it begins with the name. */
function mentionedCall({ messages, tools }: ModelRequest): MentionedCall | undefined {
  const { name, rest } = mentionOf(lastSaid(messages.at(-1))) ?? {}
  const tool = name === undefined ? undefined : toolName(name)
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
  return name === '' ? undefined : { name: name.replace(/[./-]+$/, ''), rest: rest.trim() }
}

/** The tool that delegates to a definition of this name. */
export function toolName(name: string): string {
  return `call_${name.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 50)}`
}

function lastSaid(message: Message | undefined): string {
  return message?.role === 'user' ? textOf(message) : ''
}

function textOf(message: Message | undefined): string {
  if (message === undefined) return ''
  if (typeof message.content === 'string') return message.content
  return message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

function handedOver({ tool, input }: MentionedCall): readonly Part[] {
  return [
    { type: 'tool-call', id: `mention-${tool}`, name: tool, input },
    { type: 'finish', reason: 'tool-calls', usage: NO_USAGE },
  ]
}
