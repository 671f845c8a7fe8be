import type { Purpose, Turn } from '../rows.ts'

export interface NextCall {
  readonly purpose: Purpose
  readonly nudge: string | null
  /** The outcome this run will have although its last call finishes, such as max_turns. */
  readonly limit: string | null
}

/** The model call that reads the results. At a limit it is one without tools, to wrap up: that one is no turn. */
export function nextCall(turn: Turn, droppedCalls: number): NextCall {
  const { limits } = turn
  if (droppedCalls > 0) return wrapUp('over_budget', `You have used all ${limits.toolCalls} tool calls of this run.`)
  return mayCall(turn) ? ANSWER : wrapUp('max_turns', `You have used all ${limits.turns} turns of this run.`)
}

/** Has the run a model call left, beside the wrap-up? */
export function mayCall({ account, limits }: Turn): boolean {
  return account.modelCalls < limits.turns
}

/** How many of its next tool calls a run may still make. */
export function toolCallsLeft({ account, limits }: Turn): number {
  return Math.max(0, limits.toolCalls - account.toolCalls)
}

const ANSWER: NextCall = { purpose: 'answer', nudge: null, limit: null }

function wrapUp(limit: 'max_turns' | 'over_budget', why: string): NextCall {
  return { purpose: 'wrap_up', limit, nudge: `${why} Sum up what you have and what is missing.` }
}
