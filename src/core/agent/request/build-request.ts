// Makes the request of a model call from the rows: instructions, messages, tools, settings. `agent/step/step` calls
// `buildRequest` for each call and `agent/planner` for plans; briefings and summaries have their own forms here and in
// `compaction`. It also estimates the cost of a call, for budgets.
//
// Stays true:
// - Equal rows give an equal request: it is made anew after a crash, and providers cache its beginning.
// - It only reads rows, and waits for nothing.
// - The tools in it are those that the layers allow now; a call that wraps up has none.
// - Tool results and briefings, which others wrote, never get the system role (see `messages`).

import { sizeOf } from '../../base/json.ts'
import type { Usage } from '../../graph/content.ts'
import { collectContext } from '../../graph/context.ts'
import { Draft } from '../../graph/draft.ts'
import { ALL_TURNS, isBeside, isSideCall } from '../../graph/kinds.ts'
import { roundsLeftOut } from '../../graph/lane.ts'
import type { Node } from '../../graph/rows.ts'
import type { Message, Model, ModelRequest, ToolSchema } from '../../model/model.ts'
import { costOf } from '../../model/named/prices.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import { reminderOf } from '../../rules/delegation/join.ts'
import { sessionsText } from '../../rules/delegation/session.ts'
import type { StepAnswer } from '../../rules/turn/expand.ts'
import type { CallCost } from '../../rules/turn/reserve.ts'
import { describesOutput } from '../build/asked-agent.ts'
import { chatIn } from '../definition/chat-record.ts'
import type { NodeRun } from '../hooks/node-run.ts'
import { chatCut, chatHistory } from './chat-history.ts'
import { summarizeRequest } from './compaction.ts'
import { briefTokens, messagesOf, plainMessages } from './messages.ts'

/** The request to a node's model: the instructions, the context of the node, the tools. */
export function buildRequest(run: NodeRun, known?: readonly Node[]): ModelRequest {
  const { node, turn, agent, toolkit, conversation, layers } = run
  if (node.purpose === 'brief') return briefRequest(run)
  if (node.purpose === 'summarize') return summarizeRequest(run)
  const context = shownTo(node, known ?? collectContext(run.tree, node, run.contextTurns))
  const { depth, groups } = conversation
  const mayDelegate = depth < turn.limits.depth
  const scope = { context, mayDelegate, groups, depth, model: () => run.model?.id ?? '' }
  const tools = node.purpose === 'wrap_up' ? NO_TOOLS : toolkit.offer(layers, scope)
  const told = withNotes(instructionsOf(run, tools), toolkit.notes)
  const isPartial = isCut(context, run)
  const messages =
    agent.asked === null
      ? messagesOf(told, context)
      : askedMessages(told, context, { turnId: turn.id, prompt: agent.asked, history: historyOf(run, context) })
  if (isPartial) addSessions(messages, run)
  if (conversation.background.length > 0) addTaskReminder(messages, run)
  if (node.input.nudge !== undefined) messages.push({ role: 'user', content: node.input.nudge })
  return {
    messages,
    tools,
    settings: agent.settings,
    outputSchema: agent.output?.jsonSchema ?? null,
    path: conversation.path,
  }
}

/** The earlier messages of a chat; null where the request belongs to none. */
function historyOf(run: NodeRun, context: readonly Node[]): Message[] | null {
  const chat = chatIn(run.tree, run.turn)
  return chat === undefined ? null : chatHistory(run.tree, earlierIn(context, run), chat.maxLength)
}

function earlierIn(context: readonly Node[], { turn }: NodeRun): readonly Node[] {
  return context.filter((node) => !isOfTurn(node, turn.id))
}

/**
 * A repair does not see the children that a plan has started; without feedback it does not see the failed answers
 * either.
 */
function shownTo({ purpose, input, turnId }: Node, all: readonly Node[]): readonly Node[] {
  if (purpose !== 'repair') return all
  const context = all.filter((node) => node.turnId !== turnId || !isBeside(node))
  if (input.nudge !== undefined) return context
  const last = context.findLastIndex(({ kind, output }) => kind !== 'agent_message' || output.calls !== undefined)
  return context.slice(0, last + 1)
}

/** True when older turns are left out or summarised. */
function isCut(context: readonly Node[], { turn, contextTurns, conversation }: NodeRun): boolean {
  if (turn.ordinal >= contextTurns) return true
  return conversation.lane !== null && context.some(({ metadata }) => metadata['standsFor'] === true)
}

/** Lists the open sessions, because their ids are lost with the part that is cut off. */
function addSessions(messages: Message[], { tree, conversation, home: { ledger } }: NodeRun): void {
  const text = sessionsText(tree, conversation, ledger.clock.now())
  if (text !== null) messages.splice(messages[0]?.role === 'system' ? 1 : 0, 0, { role: 'system', content: text })
}

function withNotes(instructions: string, notes: string): string {
  return notes === '' ? instructions : `${instructions}\n\n${notes}`
}

/** Lists the background tasks while there are any. */
function addTaskReminder(messages: Message[], { tree, conversation, home: { ledger } }: NodeRun): void {
  const text = reminderOf(new Draft(tree, ledger.clock.now()), conversation)
  if (text !== null) messages.push({ role: 'user', content: `<system-info>${text}</system-info>` })
}

const NO_TOOLS: readonly ToolSchema[] = []

/** Describes the schema in words too: not every model takes it as a setting. */
function instructionsOf({ agent, conversation, turn }: NodeRun, tools: readonly ToolSchema[]): string {
  const told = agent.protocol?.writeInstructions({
    instructions: agent.instructions,
    id: conversation.id,
    turns: turn.limits.modelCalls,
    tools: tools.map(({ name }) => name),
  })
  const instructions = told ?? agent.instructions
  if (agent.output === null || (agent.asked !== null && describesOutput(agent.asked))) return instructions
  return `${instructions}\n\nAnswer with only a JSON value of this schema, without any other text:\n${JSON.stringify(agent.output.jsonSchema)}`
}

/** The rounds that its model did not see, for the first answer of a run; undefined when there are none. */
export function contextCutOf(run: NodeRun): StepAnswer['contextCut'] {
  const { tree, node, turn, agent, contextTurns: shown } = run
  const maxLength = agent.asked === null ? null : (chatIn(tree, turn)?.maxLength ?? null)
  if ((shown === ALL_TURNS && maxLength === null) || isSideCall(node)) return undefined
  const first = tree.nodesOf(turn.id).find((one) => one.kind === 'agent_message' && !isSideCall(one) && !isCopy(one))
  if (first?.id !== node.id) return undefined
  const leftOut = roundsLeftOut(tree, turn, shown - 1)
  const cut =
    maxLength === null ? undefined : chatCut(tree, earlierIn(collectContext(tree, node, shown), run), maxLength)
  if (cut !== undefined) return { shown: cut.shown, leftOut: leftOut + cut.leftOut }
  return leftOut === 0 ? undefined : { shown, leftOut }
}

function isCopy({ metadata }: Node): boolean {
  return metadata['copyOf'] !== undefined
}

/**
 * The request that summarises the host's knowledge for a child: the host's model, the host's context, the child's task.
 */
function briefRequest({ tree, node, turn, agent, contextTurns, conversation }: NodeRun): ModelRequest {
  const link = tree.link(turn.id)
  const task = link === undefined ? undefined : tree.node(link.taskId)
  const context = task === undefined ? [] : collectContext(tree, task, contextTurns)
  const tokens = briefTokens(node)
  const asked = `Another agent is given this task:\n${JSON.stringify(turn.input)}\n\nSum up what it should know of this conversation to do it, and nothing else, in at most ${Math.ceil(tokens * 0.7)} words.`
  return {
    messages: [
      { role: 'system', content: 'You brief other agents.' },
      ...plainMessages(context),
      { role: 'user', content: asked },
    ],
    tools: [],
    settings: { ...agent.settings, maxOutputTokens: Math.min(agent.settings.maxOutputTokens ?? tokens, tokens) },
    outputSchema: null,
    path: conversation.path,
  }
}

/** The context of a call, with this turn's prompt instead of its record: its system part first. */
function askedMessages(
  instructions: string,
  context: readonly Node[],
  asked: {
    readonly turnId: string
    readonly prompt: Prompt
    /** The visible part of earlier turns, for a chat. */
    readonly history: readonly Message[] | null
  },
): Message[] {
  const said = asked.prompt.toRequest({ tools: 'text' }).messages as readonly Message[]
  const system = said.filter(({ role }) => role === 'system')
  const others = said.filter(({ role }) => role !== 'system')
  if (asked.history !== null) {
    const own = context.filter((node) => node.kind !== 'user_message' && isOfTurn(node, asked.turnId))
    return [...messagesOf(instructions, []), ...system, ...asked.history, ...others, ...messagesOf('', own)]
  }
  const at = context.findIndex(({ kind, turnId }) => kind === 'user_message' && turnId === asked.turnId)
  const told = messagesOf(instructions, [])
  if (at < 0) return [...told, ...system, ...messagesOf('', context), ...others]
  const before = messagesOf('', context.slice(0, at))
  return [...told, ...system, ...before, ...others, ...messagesOf('', context.slice(at + 1))]
}

/** A summary belongs to the turns before, wherever it was made. */
function isOfTurn({ turnId, metadata }: Node, id: string): boolean {
  return turnId === id && metadata['standsFor'] !== true
}

export interface Estimate extends CallCost {
  /** False where the model's price is unknown: dollars are then 0. */
  readonly isPriced: boolean
}

/** About how many bytes a token has: letters beyond ASCII have more bytes, and more tokens. */
const BYTES = 4
/** For an answer without a limit of its own: its expected length, and the limit that every provider accepts. */
const EXPECTED_ANSWER = 1_000
const MOST_ANSWER = 4_096

/** Estimates the cost of a call, at least as much as the one before, because contexts grow. */
export function estimateCost(model: Model, request: ModelRequest, before: Usage): Estimate {
  const { maxOutputTokens } = request.settings
  const inputTokens = Math.max(tokensOf(request), before.inputTokens)
  const least = Math.max(maxOutputTokens ?? EXPECTED_ANSWER, before.outputTokens)
  const question = priceOf(model, inputTokens, 0)
  const whole = priceOf(model, inputTokens, MILLION)
  return {
    question: { tokens: inputTokens, usd: question ?? 0 },
    answer: { least, most: Math.max(least, maxOutputTokens ?? MOST_ANSWER) },
    usdPerToken: ((whole ?? 0) - (question ?? 0)) / MILLION,
    isPriced: question !== null,
  }
}

const MILLION = 1_000_000

/** Limits the answer of a request to so many tokens: a provider that obeys costs no more than was reserved. */
export function limitAnswer(request: ModelRequest, answerTokens: number): ModelRequest {
  const { settings } = request
  const maxOutputTokens = Math.min(settings.maxOutputTokens ?? answerTokens, answerTokens)
  return { ...request, settings: { ...settings, maxOutputTokens } }
}

/** Estimates the usage of a call whose provider did not report it. */
export function estimateUsage(request: ModelRequest, text: string): Usage {
  const outputTokens = Math.ceil(sizeOf(text) / BYTES)
  return { inputTokens: tokensOf(request), outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 }
}

function priceOf({ id }: Model, inputTokens: number, outputTokens: number): number | null {
  return costOf({ inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 }, id)
}

function tokensOf({ messages, tools, outputSchema }: ModelRequest): number {
  return Math.ceil(sizeOf(JSON.stringify([messages, tools, outputSchema])) / BYTES)
}
