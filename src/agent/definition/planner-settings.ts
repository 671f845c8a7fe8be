import type { Json } from '../../base/json.ts'
import type { ToolSchema } from '../../model/model.ts'

/** How an agent uses its tools, where it is not left to its model. */
export interface PlannerSettings {
  /** `native`: the model calls them. `planner`: it is asked first which one is needed. `auto`: as the model can. */
  readonly strategy: 'auto' | 'native' | 'planner'
  /** How often it is asked which tool is needed, in one run. */
  readonly maxRounds: number
  /** How many tools one round may ask for. */
  readonly parallel: number
  /** How many of them run at the same time; null for all. */
  readonly concurrency: number | null
  /** How long all rounds of a run may take; null for no limit. */
  readonly timeoutMs: number | null
  /** Plans instead of the model. */
  readonly plan: PlanFunction | null
  /** The plan is the answer: nothing is called. */
  readonly planOnly: boolean
}

/** One use of a tool, as it is planned. */
export interface ToolCommand {
  /** What it is needed for; left out: the tool's name. */
  readonly purpose?: string
  readonly tool_name: string
  readonly tool_kwargs?: { readonly [name: string]: Json }
}

export type PlanFunction = (context: PlanContext) => readonly ToolCommand[] | Promise<readonly ToolCommand[]>

export interface PlanContext {
  /** What the run was asked. */
  readonly input: Json
  readonly tools: readonly ToolSchema[]
  /** What earlier rounds have found, by purpose. */
  readonly results: { readonly [purpose: string]: Json }
  /** From 1. */
  readonly round: number
  readonly signal: AbortSignal
}

export const plannerMark: unique symbol = Symbol.for('legate.planner') as never

/** The settings of the first extension that has some; null for none. */
export function plannerIn(extensions: readonly object[]): PlannerSettings | null {
  for (const extension of extensions) {
    const settings = (extension as { readonly [plannerMark]?: PlannerSettings })[plannerMark]
    if (settings !== undefined) return settings
  }
  return null
}
