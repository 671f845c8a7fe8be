import type { ExtensionCore, Message, ModelRequest, Part } from '../../index.ts'

/** The tool that takes the name of a definition. */
const DELEGATE = 'delegate'
const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/**
 * What a person says to `@name` is handed to that subagent without asking the model; all else, and what is made of the
 * subagent's answer, is the model's.
 */
export function mentions(namesHere: () => Promise<ReadonlySet<string>>): ExtensionCore {
  return {
    name: 'mentions',
    hooks: {
      wrapModel: async (request, next, { path }) => {
        const isMeant = path.length === 1 && mentionOf(lastSaid(request)) !== undefined
        const call = isMeant ? mentionedCall(request, await namesHere()) : undefined
        return call === undefined ? next(request) : handedOver(call)
      },
    },
  }
}

interface MentionedCall {
  readonly source: string
  readonly instructions: string
}

/** Only what was said last counts, and only where it begins with the name of something that is there. */
function mentionedCall(request: ModelRequest, names: ReadonlySet<string>): MentionedCall | undefined {
  const { name, rest } = mentionOf(lastSaid(request)) ?? {}
  const isOffered = request.tools.some((tool) => tool.name === DELEGATE)
  if (name === undefined || rest === undefined || !isOffered || !names.has(name)) return undefined
  return { source: name, instructions: rest }
}

/** Whom a message is for and what it says; undefined where it begins with no name. */
export function mentionOf(text: string): { readonly name: string; readonly rest: string } | undefined {
  const [, name = '', rest = ''] = /^\s*@([\p{L}\p{N}_][\p{L}\p{N}_./-]*)[,:]?\s+(\S[\s\S]*)$/u.exec(text) ?? []
  return name === '' ? undefined : { name: bareName(name), rest: rest.trim() }
}

/** A name without what only follows it: the end of a sentence, a dash. */
export function bareName(name: string): string {
  let end = name.length
  while (/[./-]/.test(name.charAt(end - 1))) end--
  return name.slice(0, end)
}

/** What the person has said, if nothing was done since. What the runtime tells beside it is not theirs. */
function lastSaid({ messages }: ModelRequest): string {
  const last = messages.findLast((message) => message.role !== 'user' || !textOf(message).startsWith('<system-info>'))
  return last?.role === 'user' ? textOf(last) : ''
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

function handedOver(input: MentionedCall): readonly Part[] {
  return [
    { type: 'tool-call', id: `mention-${input.source}`, name: DELEGATE, input: { ...input } },
    { type: 'finish', reason: 'tool-calls', usage: NO_USAGE },
  ]
}
