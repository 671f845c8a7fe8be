import { parseJson } from '../../../../core/base/json.ts'
import { anything, type OptionRules, readOptions, record, text } from '../../../../core/base/options.ts'
import type { ReplyContext } from '../../../../doors/background.ts'
import { hostRequest } from '../../../../doors/grant.ts'
import {
  type Agent,
  type AgentInput,
  type AgentOutput,
  agent,
  type Budget,
  type Content,
  DefinitionError,
  type Grant,
  type Json,
  type Schema,
} from '../../../../index.ts'
import { blocksOf, dataParts, textIn } from '../read.ts'
import type { A2aPart } from '../wire.ts'
import { RemoteTask } from './task.ts'

/** An agent elsewhere that speaks A2A 1.0. */
export interface A2aAgentOptions<
  In extends Schema | undefined = undefined,
  Out extends Schema | undefined = undefined,
> {
  /** Its name here: in grants, paths and events. */
  readonly name: string
  /** Where it is: its card is at `.well-known/agent-card.json` below this, or here if this ends with `.json`. */
  readonly url: string
  /** Tells a host's model when to delegate to it. */
  readonly description?: string
  /** The contract of a delegation. With it the remote agent gets the value as data; without it a message. */
  readonly input?: In
  /** The schema of its answer: the data that it answers with, or its text as JSON. */
  readonly output?: Out
  /** A token that goes along as `Authorization: Bearer`; a function is asked before each request. */
  readonly token?: string | (() => string | Promise<string>)
  /** Further headers of each request. */
  readonly headers?: Readonly<Record<string, string>>
  /** The SHA-256 that its card must have. Default: that of its first use in a conversation. */
  readonly card?: string
  /** Its permissions. Default: reach its host and ask a person. Its hosts and the runtime must allow `net:` for it too. */
  readonly grant?: Grant
  /** The most that a run of it may use, such as its time. */
  readonly budget?: Budget
}

const OPTIONS: OptionRules<A2aAgentOptions> = {
  name: text,
  url: text,
  description: text,
  input: anything,
  output: anything,
  token: anything,
  headers: record,
  card: text,
  grant: record,
  budget: record,
}

/**
 * An agent that is elsewhere, as an agent like any other: `subagents: { expert: a2aAgent({ name, url }) }`. Its work is a remote
 * task whose id is in a row, so a restart goes on with the same one.
 */
export function a2aAgent<In extends Schema | undefined = undefined, Out extends Schema | undefined = undefined>(
  options: A2aAgentOptions<In, Out>,
): Agent<AgentInput<In>, AgentOutput<Out>> {
  readOptions('a2aAgent(options)', options as A2aAgentOptions, OPTIONS)
  const { name, url, description, input, output, grant, budget } = options
  const request = hostRequest(url)
  if (!/^https?:/i.test(url))
    throw new DefinitionError('definition', `a2aAgent "${name}": the url begins with https: or http:.`)
  return agent({
    name,
    effect: 'idempotent',
    ...(description === undefined ? {} : { description }),
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
    grant: grant ?? { use: ['tool:ask_person', `net:${request.name}`] },
    ...(budget === undefined ? {} : { budget }),
    needs: () => [request],
    reply: (given: Json | Content, context: ReplyContext) => answered(options as A2aAgentOptions, given, context),
  } as never) as never
}

/** Yields the words that come while the remote agent works, and returns its answer. */
async function* answered(options: A2aAgentOptions, given: Json | Content, context: ReplyContext) {
  const { name, url, card = null } = options
  const place = { url: hostRequest(url).url, headers: () => headersOf(options, context), signal: context.signal }
  const task = new RemoteTask({ name, pin: card, place, context })
  const answer = yield* task.run(partOf(options, given))
  return options.output === undefined ? blocksOf(answer) : valueIn(answer)
}

async function headersOf({ token, headers }: A2aAgentOptions, { traceparent }: ReplyContext) {
  const secret = typeof token === 'function' ? await token() : token
  return {
    ...headers,
    ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
    ...(traceparent === null ? {} : { traceparent }),
  }
}

function partOf({ input }: A2aAgentOptions, given: Json | Content): A2aPart {
  if (input !== undefined) return { data: given as Json, mediaType: 'application/json' }
  return { text: typeof given === 'string' ? given : textOfBlocks(given as Content) }
}

function textOfBlocks(content: Content): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

/** The data of an answer, or its text as JSON. The schema judges it. */
function valueIn(parts: readonly A2aPart[]): Json {
  const data = dataParts({ parts }).at(-1)
  if (data !== undefined) return data
  const said = textIn({ parts })
  const json = parseJson(said)
  return json.ok ? json.value : said
}
