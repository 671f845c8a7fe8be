import { NotFoundError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { Draft } from '../../graph/draft.ts'
import { codeOf } from '../../graph/kinds.ts'
import { requireOpen, requireSame } from '../../graph/refused.ts'
import { copyOfConversation, USUAL_CONVERSATION } from '../../graph/rows.made.ts'
import type { AgentRef, Conversation, Id, Turn } from '../../graph/rows.ts'
import { stopRuns } from './cancel.ts'
import { openTurn, type TurnRequest } from './open-turn.ts'

/** Its ceiling binds it for good: one that is known keeps its own, whoever speaks next. */
export type NewConversation = Pick<Conversation, 'id' | 'agent' | 'ceiling'> &
  Partial<Conversation> & {
    /** False for an existing conversation: if it was deleted meanwhile, it is not begun again. */
    readonly isNew?: boolean
  }

/** Adds an input to a conversation, and makes the conversation where it is missing. A repeated say finds its turn. */
export function planSay(draft: Draft, conversation: NewConversation, request: TurnRequest): Turn {
  const existing = draft.findTurn(request.turnId)
  if (existing !== undefined) {
    requireSame(existing, request.requestHash ?? null)
    return existing
  }
  const known = draft.findConversation(conversation.id)
  if (known !== undefined) requireOpen(known)
  if (known === undefined && conversation.isNew === false) throw deletedMeanwhile(conversation.id)
  if (known === undefined) return openTurn(draft, addRoot(draft, conversation), request)
  const row = withCodeOf(draft, known, conversation.agent)
  const turn = openTurn(draft, row, request)
  const { name, hash } = row.agent
  if (row.agent === conversation.agent && hash !== known.agent.hash)
    draft.event(turn, null, { type: 'definition-changed', agent: name, from: known.agent.hash, to: hash })
  return turn
}

/**
 * Updates the agent of a conversation. Processes find their work by the code that a conversation needs: after a change from an
 * agent in code to one in a file, or back, nobody would run the turn under the old name. While a turn is open, the agent stays.
 */
function withCodeOf(draft: Draft, row: Conversation, agent: AgentRef): Conversation {
  if (row.activeTurnId !== null || codeOf(row.agent) === codeOf(agent)) return row
  return draft.changeConversation(row, { agent })
}

function deletedMeanwhile(id: Id): NotFoundError {
  const message = `The conversation ${id} was deleted while something was being said in it.`
  return new NotFoundError('not_found', message, { details: { overtaken: true } })
}

function addRoot(draft: Draft, conversation: NewConversation): Conversation {
  const row = newConversation(conversation, conversation.id, draft.now)
  draft.addConversation(row)
  return row
}

/** The one way a conversation begins, copied from another or not: approvals of the other do not come along. */
export function newConversation(given: NewConversation, rootId: Id, now: number): Conversation {
  const row = copyOfConversation(USUAL_CONVERSATION, 1)
  row.id = given.id
  row.rootId = rootId
  row.type = given.type ?? 'user'
  row.depth = given.depth ?? 0
  row.agent = given.agent
  row.path = given.path ?? [given.agent.name]
  row.parentConversationId = given.parentConversationId ?? null
  row.parentTurnId = given.parentTurnId ?? null
  row.parentTaskId = given.parentTaskId ?? null
  row.owner = given.owner ?? null
  row.title = given.title ?? null
  if (given.metadata !== undefined) row.metadata = withoutApprovals(given.metadata)
  row.ceiling = given.ceiling
  row.groups = given.groups ?? null
  if (given.background !== undefined) row.background = given.background
  row.lane = given.lane ?? null
  row.createdAt = now
  return row
}

/**
 * Replaces the running turn by an input: the turn is stopped, and the model that answers this input sees earlier inputs but not
 * the unfinished work. A repeated restart finds its turn.
 */
export function planRestart(draft: Draft, conversation: NewConversation, request: TurnRequest): Turn {
  const isKnown = draft.findTurn(request.turnId) !== undefined
  const running = draft.findConversation(conversation.id)?.activeTurnId ?? null
  const turn = planSay(draft, conversation, request)
  if (isKnown || running === null) return turn
  stopRuns(draft, running, { cause: 'restarted', reason: 'Another input took its place.' })
  return draft.turn(turn.id)
}

/** Removes approvals from a copy: a person's approval holds for one conversation, or for one node. */
export function withoutApprovals<T extends { readonly [key: string]: Json }>(metadata: T): T {
  if (metadata['approved'] === undefined && metadata['edited'] === undefined) return metadata
  const { approved: _, edited: __, ...others } = metadata
  return others as unknown as T
}

/** A conversation's own settings for its agent, beside the agent's definition. They only narrow: the ceiling stays. */
export interface ConversationSettings {
  /** A named layer: `full`, `minimal`, `memory_only`, `skills_only`, or one of createRuntime({ profiles }). */
  readonly policyProfile?: string | undefined
  /** How many rounds its model sees, 1 to 1000. */
  readonly contextTurns?: number | undefined
}

/** Stores the settings in the conversation's metadata under `agent`: each node reads them when it starts. */
export function planSettings(draft: Draft, id: Id, { policyProfile, contextTurns }: ConversationSettings): void {
  const conversation = draft.conversation(id)
  const known = conversation.metadata['agent']
  const agent = typeof known === 'object' && known !== null && !Array.isArray(known) ? known : { key: 'main' }
  draft.changeConversation(conversation, {
    metadata: {
      ...conversation.metadata,
      agent: {
        ...agent,
        ...(policyProfile === undefined ? {} : { policy_profile: policyProfile }),
        ...(contextTurns === undefined ? {} : { context_turns: contextTurns }),
      },
    },
  })
}
