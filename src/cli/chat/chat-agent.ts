import type { ExtensionCore } from '../../doors/hooks.ts'
import type { Message, ModelRequest, Part } from '../../doors/models.ts'
import { type AgentFile, EMPTY_AGENT_FILE } from '../../doors/recipe.ts'
import type { AnyAgent } from '../../index.ts'
import type { CallGrant } from '../definition/call-grant.ts'
import { agentOf, type compatOf } from '../definition/load.ts'
import { oneLine } from '../terminal/clean.ts'

const INSTRUCTIONS = `You talk with a person at a terminal and help with what they ask. Answer briefly, in plain text.
Where a source that you can delegate to fits a request by its description, delegate to it and build your answer on what it says. A message that begins with @name was handed to that source already: tell the person what came of it, and do not repeat all of it.`

/** The agent of a chat started without a file. */
export const ASSISTANT: AgentFile = {
  ...EMPTY_AGENT_FILE,
  name: 'assistant',
  description: 'Talks with a person at a terminal.',
  instructions: INSTRUCTIONS,
}

/**
 * Makes the agent of a chat. It can delegate to every definition found from this folder; the list is read anew each
 * time.
 */
export function chatAgent(
  definition: AgentFile,
  model: string,
  {
    subagents,
    grant = {},
    projectFiles = false,
  }: ReturnType<typeof compatOf> & { readonly grant?: CallGrant; readonly projectFiles?: boolean } = {},
): Promise<AnyAgent> {
  return agentOf(definition, {
    model,
    grant: { ...grant, named: definition },
    projectFiles,
    subagents: { ...subagents, surfaces: ['delegate'], discover: true },
  })
}

const NAMED = 20

const HELP = `/help      this text
/exit      leaves; so does Ctrl-D
@name TEXT hands TEXT to the recipe or agent of that name, as a subagent
A message that begins with a space goes to the agent whatever it begins with.`

/**
 * Answers a message on the command line itself, without a model: one of its commands, or a name that does not exist.
 * Undefined if the message is for the agent.
 */
export async function localReply(
  message: string,
  namesHere: () => Promise<ReadonlySet<string>>,
): Promise<string | undefined> {
  const [, command] = /^\/([a-z][\w-]*)(?:\s|$)/i.exec(message) ?? []
  if (command !== undefined) return command === 'help' ? HELP : `There is no /${oneLine(command)}.\n${HELP}`
  const [, name, rest = ''] = /^@([\p{L}\p{N}_][\p{L}\p{N}_./-]*)[,:]?\s*(.*)/su.exec(message) ?? []
  return name === undefined ? undefined : replyTo(bareName(name), rest, await namesHere())
}

export function isExit(message: string): boolean {
  return /^\/(?:exit|quit)\s*$/.test(message)
}

function replyTo(name: string, rest: string, names: ReadonlySet<string>): string | undefined {
  if (!names.has(name)) return `There is no "${oneLine(name)}" here. ${listed(names)}`
  return rest.trim() === '' ? `Say what ${oneLine(name)} should do: @${oneLine(name)} TEXT` : undefined
}

function listed(names: ReadonlySet<string>): string {
  if (names.size === 0) return 'There are no recipes and no agent files; legate doctor lists the definitions it finds.'
  const shown = [...names].sort().slice(0, NAMED)
  const more = names.size - shown.length
  return `There are: ${shown.map((one) => `@${oneLine(one)}`).join(', ')}${more > 0 ? ` and ${more} more` : ''}.`
}

/** The tool that takes the name of a definition. */
const DELEGATE = 'delegate'
const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/**
 * Hands a message that begins with `@name` to that subagent without asking the model. The model handles all other
 * messages, and reads the subagent's answer.
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

/** The names a message can be handed to, and the parameter keys of each. */
export interface KnownNames {
  names(): Promise<ReadonlySet<string>>
  parametersOf(name: string): Promise<readonly string[]>
}

interface MentionedCall {
  readonly source: string
  readonly instructions: string
  readonly parameters?: { readonly [key: string]: string }
}

/** Reads a mention from the last message only, and only if it begins with the name of a known definition. */
async function mentionedCall(request: ModelRequest, known: KnownNames): Promise<MentionedCall | undefined> {
  const { name, rest } = mentionOf(lastSaid(request)) ?? {}
  if (name === undefined || rest === undefined || !(await known.names()).has(name)) return undefined
  const { parameters, instructions } = splitValues(rest, await known.parametersOf(name))
  if (Object.keys(parameters).length === 0) return { source: name, instructions: rest }
  return { source: name, instructions, parameters }
}

/** Splits leading values such as `topic=cats style="very short"`, for known keys only, from the rest of the message. */
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

/** Splits a message into the name it begins with and the rest; undefined if it begins with no name. */
export function mentionOf(text: string): { readonly name: string; readonly rest: string } | undefined {
  const [, name = '', rest = ''] = /^@([\p{L}\p{N}_][\p{L}\p{N}_./-]*)[,:]?\s+(\S[\s\S]*)$/u.exec(text) ?? []
  return name === '' ? undefined : { name: bareName(name), rest: rest.trim() }
}

/** Removes punctuation from the end of a name: `@poet.` means `poet`. */
function bareName(name: string): string {
  let end = name.length
  while (/[./-]/.test(name.charAt(end - 1))) end--
  return name.slice(0, end)
}

/** Returns the person's last message if nothing happened after it. Notes the runtime adds beside it do not count. */
function lastSaid({ messages }: ModelRequest): string {
  const last = messages.findLast((message) => message.role !== 'user' || !textOf(message).startsWith('<system-info>'))
  return last?.role === 'user' ? textOf(last) : ''
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

/** Tells the person that the named agent is not available. No other agent answers in its place. */
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
