import type { AgentCore } from './agent/agent.ts'
import { type Budget, childLimits, limitsOf, moneyOf, treeLimitOf } from './grant/budget.ts'
import { readCeiling } from './grant/ceiling.ts'
import type { Conversation } from './graph/rows.ts'
import type { TurnBounds } from './graph/turn/begin-turn.ts'
import type { Store } from './store/store.ts'

export interface BoundBy {
  readonly store: Pick<Store, 'turn' | 'turnsOf'>
  /** Undefined where this process has no code for it. */
  readonly agent: AgentCore | undefined
  /** The application's. */
  readonly budget: Budget | undefined
}

/** What a turn put in by hand may use: as little as its agent, those above it and the application say (I1). */
export function turnBounds(conversation: Conversation, { store, agent, budget }: BoundBy): TurnBounds {
  const { ceiling, parentTurnId } = conversation
  const own = [agent === undefined ? lastBudget(store, conversation) : agent.budget, budget]
  const above = readCeiling(ceiling).map((layer) => layer.budget)
  const host = parentTurnId === null ? undefined : store.turn(parentTurnId)
  const limits = host === undefined ? limitsOf([...own, ...above]) : childLimits(own, above, host.limits.depth)
  return { limits, money: moneyOf([...own, ...above]), treeLimit: treeLimitOf(own) }
}

/** What the last turn was bound by, for those who do not know its agent. */
function lastBudget(store: BoundBy['store'], { id, lane }: Conversation): Budget | undefined {
  const own = store.turnsOf(id, { limit: 1 })
  const [last] = own.length > 0 || lane?.from == null ? own : store.turnsOf(lane.from.laneId, { limit: 1 })
  if (last === undefined) return undefined
  return budgetOf({ limits: last.limits, money: last.spend?.limit ?? null, treeLimit: last.tree?.limit ?? null })
}

export function budgetOf({ limits, money, treeLimit }: TurnBounds): Budget {
  return {
    ...limits,
    ...(money?.tokens == null ? {} : { tokens: money.tokens }),
    ...(money?.usd == null ? {} : { usd: money.usd }),
    ...(treeLimit == null ? {} : { treeConcurrency: treeLimit }),
  }
}
