import { contextOf } from '../graph/context.ts'
import { isEager } from '../graph/is-eager.ts'
import type { Node } from '../graph/rows.ts'
import { sessionsText } from '../graph/session.ts'
import type { Message, ModelRequest } from '../model/model.ts'
import type { AgentCore } from './agent.ts'
import { briefRequest } from './brief.ts'
import { contextTurnsOf } from './conversation-settings.ts'
import { messagesOf } from './messages.ts'
import type { NodeRun } from './node-run.ts'
import { saysOutput } from './request/asked-agent.ts'
import { askedMessages } from './request/asked-messages.ts'

/** What the model of a node is asked: what it is told, what led to the node, what it may call. */
export function requestOf(run: NodeRun): ModelRequest {
  const { node, turn, agent, toolkit, home, conversation, layers } = run
  if (node.purpose === 'brief') return briefRequest(run)
  const context = shownTo(node, contextOf(home.ledger.store, node, contextTurnsOf(conversation, agent)))
  const told = withNotes(instructionsOf(agent), toolkit.notes)
  const messages =
    agent.asked === null
      ? messagesOf(told, context)
      : askedMessages(told, context, { turnId: turn.id, prompt: agent.asked })
  tellSessions(messages, run)
  if (node.input.nudge !== undefined) messages.push({ role: 'user', content: node.input.nudge })
  const { depth, groups } = conversation
  const scope = { context, mayDelegate: depth < turn.limits.depth, groups, depth }
  return {
    messages,
    tools: node.purpose === 'wrap_up' ? [] : toolkit.offer(layers, scope),
    settings: agent.settings,
    outputSchema: agent.output?.jsonSchema ?? null,
    path: conversation.path,
  }
}

/**
 * What a plan has started is not shown to the calls that are to make it better; one that is asked as if for the first
 * time is not shown what did not fit either.
 */
function shownTo({ purpose, input, turnId }: Node, all: Node[]): Node[] {
  if (purpose !== 'repair') return all
  const context = all.filter((node) => node.turnId !== turnId || !isEager(node))
  if (input.nudge !== undefined) return context
  const last = context.findLastIndex(({ kind, output }) => kind !== 'agent_message' || output.calls !== undefined)
  return context.slice(0, last + 1)
}

/** Where older turns are cut off, the ids of sessions are with them: then the model is told which it holds. */
function tellSessions(messages: Message[], { turn, agent, conversation, home: { ledger } }: NodeRun): void {
  if (turn.ordinal < contextTurnsOf(conversation, agent)) return
  const text = sessionsText(ledger.store, conversation, ledger.clock.now())
  if (text !== null) messages.splice(messages[0]?.role === 'system' ? 1 : 0, 0, { role: 'system', content: text })
}

function withNotes(instructions: string, notes: string): string {
  return notes === '' ? instructions : `${instructions}\n\n${notes}`
}

/** The schema is also told in words: not every model takes it as a setting. */
function instructionsOf(agent: AgentCore): string {
  if (agent.output === null || (agent.asked !== null && saysOutput(agent.asked))) return agent.instructions
  return `${agent.instructions}\n\nAnswer with only a JSON value of this schema, without any other text:\n${JSON.stringify(agent.output.jsonSchema)}`
}
