import { contextOf } from '../graph/context.ts'
import type { ModelRequest } from '../model/model.ts'
import { contextTurnsOf } from './conversation-settings.ts'
import { briefTokens } from './messages.ts'
import type { NodeRun } from './node-run.ts'
import { plainMessages } from './plain-messages.ts'

/** The call that sums up for a child what its host knows: the host's model, the host's context, the child's task. */
export function briefRequest({ node, turn, agent, home, conversation }: NodeRun): ModelRequest {
  const { store } = home.ledger
  const link = store.link(turn.id)
  const task = link === undefined ? undefined : store.node(link.taskId)
  const context = task === undefined ? [] : contextOf(store, task, contextTurnsOf(conversation, agent))
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
