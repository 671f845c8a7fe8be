import { isBeside } from '../graph/child/is-eager.ts'
import { sessionsText } from '../graph/child/session.ts'
import { contextOf } from '../graph/context.ts'
import { ALL_TURNS } from '../graph/context-turns.ts'
import { Draft } from '../graph/draft.ts'
import { roundsLeftOut } from '../graph/history/history.ts'
import type { Node } from '../graph/rows.ts'
import type { Answer } from '../graph/turn/expand.ts'
import { reminderOf } from '../graph/turn/task-words.ts'
import type { Message, ModelRequest, ToolSchema } from '../model/model.ts'
import { briefRequest } from './brief.ts'
import { summarizeRequest } from './compaction.ts'
import { contextTurnsOf } from './conversation-settings.ts'
import { messagesOf } from './messages.ts'
import type { NodeRun } from './node-run.ts'
import { saysOutput } from './request/asked-agent.ts'
import { askedMessages, isOfTurn } from './request/asked-messages.ts'
import { chatCut, chatHistory } from './request/chat-history.ts'
import { chatIn } from './request/chat-record.ts'

/** What the model of a node is asked: what it is told, what led to the node, what it may call. */
export function requestOf(run: NodeRun, known?: readonly Node[]): ModelRequest {
  const { node, turn, agent, toolkit, home, conversation, layers } = run
  if (node.purpose === 'brief') return briefRequest(run)
  if (node.purpose === 'summarize') return summarizeRequest(run)
  const context = shownTo(node, known ?? contextFor(run))
  const { depth, groups } = conversation
  const mayDelegate = depth < turn.limits.depth
  const scope = { context, mayDelegate, groups, depth, model: () => home.modelOf(agent, run)?.id ?? '' }
  const tools = node.purpose === 'wrap_up' ? NO_TOOLS : toolkit.offer(layers, scope)
  const told = withNotes(instructionsOf(run, tools), toolkit.notes)
  const messages =
    agent.asked === null
      ? messagesOf(told, context)
      : askedMessages(told, context, { turnId: turn.id, prompt: agent.asked, history: historyOf(run, context) })
  if (isCut(context, run)) tellSessions(messages, run)
  if (conversation.background.length > 0) tellTasks(messages, run)
  if (node.input.nudge !== undefined) messages.push({ role: 'user', content: node.input.nudge })
  return {
    messages,
    tools,
    settings: agent.settings,
    outputSchema: agent.output?.jsonSchema ?? null,
    path: conversation.path,
  }
}

/** What a call knows of its conversation. */
export function contextFor({ node, conversation, agent, home }: NodeRun): readonly Node[] {
  return contextOf(home.ledger.store, node, contextTurnsOf(conversation, agent))
}

/** What was said before in a chat; null where the request is of none. */
function historyOf(run: NodeRun, context: readonly Node[]): Message[] | null {
  const { store } = run.home.ledger
  const chat = chatIn(store, run.turn)
  return chat === undefined ? null : chatHistory(store, earlierIn(context, run), chat.maxLength)
}

function earlierIn(context: readonly Node[], { turn }: NodeRun): readonly Node[] {
  return context.filter((node) => !isOfTurn(node, turn.id))
}

/**
 * What a plan has started is not shown to the calls that are to make it better; one that is asked as if for the first
 * time is not shown what did not fit either.
 */
function shownTo({ purpose, input, turnId }: Node, all: readonly Node[]): readonly Node[] {
  if (purpose !== 'repair') return all
  const context = all.filter((node) => node.turnId !== turnId || !isBeside(node))
  if (input.nudge !== undefined) return context
  const last = context.findLastIndex(({ kind, output }) => kind !== 'agent_message' || output.calls !== undefined)
  return context.slice(0, last + 1)
}

/** Are older turns left out, or summed up? */
function isCut(context: readonly Node[], { turn, agent, conversation }: NodeRun): boolean {
  if (turn.ordinal >= contextTurnsOf(conversation, agent)) return true
  return conversation.lane !== null && context.some(({ metadata }) => metadata['standsFor'] === true)
}

/** The ids of sessions are gone with what is cut off: the model is told which it holds. */
function tellSessions(messages: Message[], { conversation, home: { ledger } }: NodeRun): void {
  const text = sessionsText(ledger.store, conversation, ledger.clock.now())
  if (text !== null) messages.splice(messages[0]?.role === 'system' ? 1 : 0, 0, { role: 'system', content: text })
}

function withNotes(instructions: string, notes: string): string {
  return notes === '' ? instructions : `${instructions}\n\n${notes}`
}

/** What works for it in the background, as long as something does. */
function tellTasks(messages: Message[], { conversation, home: { ledger } }: NodeRun): void {
  const text = reminderOf(new Draft(ledger.store, ledger.clock.now()), conversation)
  if (text !== null) messages.push({ role: 'user', content: `<system-info>${text}</system-info>` })
}

const NO_TOOLS: readonly ToolSchema[] = []

/** The schema is also told in words: not every model takes it as a setting. */
function instructionsOf({ agent, conversation, turn }: NodeRun, tools: readonly ToolSchema[]): string {
  const told = agent.manner?.tell({
    instructions: agent.instructions,
    id: conversation.id,
    turns: turn.limits.turns,
    tools: tools.map(({ name }) => name),
  })
  const instructions = told ?? agent.instructions
  if (agent.output === null || (agent.asked !== null && saysOutput(agent.asked))) return instructions
  return `${instructions}\n\nAnswer with only a JSON value of this schema, without any other text:\n${JSON.stringify(agent.output.jsonSchema)}`
}

/** What the first answer of a run says of the rounds that its model was not shown; undefined when there are none. */
export function contextCutOf(run: NodeRun): Answer['contextCut'] {
  const { node, turn, conversation, agent, home } = run
  const { store } = home.ledger
  const shown = contextTurnsOf(conversation, agent)
  const maxLength = agent.asked === null ? null : (chatIn(store, turn)?.maxLength ?? null)
  if ((shown === ALL_TURNS && maxLength === null) || isSummary(node)) return undefined
  const first = store.nodesOf(turn.id).find((one) => one.kind === 'agent_message' && !isSummary(one) && !isCopy(one))
  if (first?.id !== node.id) return undefined
  const leftOut = roundsLeftOut(store, turn, shown - 1)
  const cut = maxLength === null ? undefined : chatCut(store, earlierIn(contextFor(run), run), maxLength)
  if (cut !== undefined) return { shown: cut.shown, leftOut: leftOut + cut.leftOut }
  return leftOut === 0 ? undefined : { shown, leftOut }
}

function isSummary({ purpose }: Node): boolean {
  return purpose === 'brief' || purpose === 'summarize'
}

function isCopy({ metadata }: Node): boolean {
  return metadata['copyOf'] !== undefined
}
