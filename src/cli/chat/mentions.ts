import type { ExtensionCore, Message, ModelRequest, Part } from '../../index.ts'

/** The tool that takes the name of a definition. */
const DELEGATE = 'delegate'
const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/**
 * What a person says to `@name` is handed to that subagent without asking the model; all else, and what is made of the
 * subagent's answer, is the model's.
 */
export function mentions(known: KnownNames): ExtensionCore {
  return {
    name: 'mentions',
    hooks: {
      wrapModel: async (request, next, { path }) => {
        const isMeant = path.length === 1 && mentionOf(lastSaid(request)) !== undefined
        const call = isMeant ? await mentionedCall(request, known) : undefined
        if (call === undefined) return next(request)
        return request.tools.some(({ name }) => name === DELEGATE) ? handedOver(call) : notHandedOver(call)
      },
    },
  }
}

/** Whom a message can be handed to, and the keys of the values that one of them takes. */
export interface KnownNames {
  names(): Promise<ReadonlySet<string>>
  parametersOf(name: string): Promise<readonly string[]>
}

interface MentionedCall {
  readonly source: string
  readonly instructions: string
  readonly parameters?: { readonly [key: string]: string }
}

/** Only what was said last counts, and only where it begins with the name of something that is there. */
async function mentionedCall(request: ModelRequest, known: KnownNames): Promise<MentionedCall | undefined> {
  const { name, rest } = mentionOf(lastSaid(request)) ?? {}
  if (name === undefined || rest === undefined || !(await known.names()).has(name)) return undefined
  const { parameters, instructions } = splitValues(rest, await known.parametersOf(name))
  if (Object.keys(parameters).length === 0) return { source: name, instructions: rest }
  return { source: name, instructions, parameters }
}

/** Values at the beginning, `topic=cats style="very short"`, for the keys that there are; the rest is what is said. */
function splitValues(
  text: string,
  keys: readonly string[],
): { parameters: Record<string, string>; instructions: string } {
  const parameters: Record<string, string> = {}
  const value = /([\p{L}_][\p{L}\p{N}_-]*)=(?:"([^"]*)"|(\S*))\s*/uy
  let end = 0
  for (let found = value.exec(text); found !== null && keys.includes(found[1] ?? ''); found = value.exec(text)) {
    parameters[found[1] ?? ''] = found[2] ?? found[3] ?? ''
    end = value.lastIndex
  }
  return { parameters, instructions: text.slice(end) }
}

/** Whom a message is for and what it says; undefined where it begins with no name. */
export function mentionOf(text: string): { readonly name: string; readonly rest: string } | undefined {
  const [, name = '', rest = ''] = /^@([\p{L}\p{N}_][\p{L}\p{N}_./-]*)[,:]?\s+(\S[\s\S]*)$/u.exec(text) ?? []
  return name === '' ? undefined : { name: bareName(name), rest: rest.trim() }
}

/** Marks at its end are none of its own: `@poet.` is `poet`. */
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

/** A person who names somebody is never answered by another. */
function notHandedOver({ source }: MentionedCall): readonly Part[] {
  const text = `${source} was not asked: this agent has no right to delegate. Begin with a space to say it to the agent itself.`
  return [
    { type: 'text-delta', text },
    { type: 'finish', reason: 'stop', usage: NO_USAGE },
  ]
}

function handedOver(input: MentionedCall): readonly Part[] {
  return [
    { type: 'tool-call', id: `mention-${input.source}`, name: DELEGATE, input: { ...input } },
    { type: 'finish', reason: 'tool-calls', usage: NO_USAGE },
  ]
}
