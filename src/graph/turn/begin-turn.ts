import { freshId } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import { newTree } from '../child/new-tree.ts'
import type { Draft } from '../draft.ts'
import type { Conversation, Spend, Turn, TurnHistory, TurnLimits } from '../rows.ts'
import { newTurn } from './open-turn.ts'
import { newSpend } from './spend.ts'

/** What a turn that is put in by hand may use. */
export interface TurnBounds {
  readonly limits: TurnLimits
  /** What it may spend; left out or null: no limit. */
  readonly money?: Spend['limit'] | null
  /** How many delegations it and all below it may have at the same time; left out or null: no limit. */
  readonly treeLimit?: number | null
}

export interface BegunTurn extends TurnBounds {
  readonly input?: Json
  readonly attributes?: Turn['attributes']
  readonly history?: TurnHistory | null
}

/** A turn without nodes that runs from now on: its lane must be idle. */
export function beginTurn(draft: Draft, conversation: Conversation, given: BegunTurn): Turn {
  const id = freshId(draft.now)
  const turn: Turn = {
    ...newTurn(draft, conversation, {
      id,
      entryNodeId: id,
      limits: given.limits,
      input: given.input ?? null,
      deadline: null,
      spend: given.money ? newSpend(given.money) : null,
      tree: newTree(given.treeLimit ?? null),
      attributes: given.attributes ?? null,
      ...(given.history === undefined ? {} : { history: given.history }),
    }),
    state: 'running',
    deadline: draft.now + given.limits.wallMs,
    startedAt: draft.now,
  }
  if (turn.deadline !== null) draft.due(turn.deadline)
  draft.addTurn(turn)
  draft.changeConversation(conversation, { turnCount: conversation.turnCount + 1, activeTurnId: id })
  draft.event(turn, null, { type: 'run-start', agent: conversation.agent.name })
  return turn
}
