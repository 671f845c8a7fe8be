import type { Json } from '../../base/json.ts'
import type { ToolSchema } from '../../model/model.ts'

/** How an agent uses its tools, where its model does not decide alone. */
export interface PlannerSettings {
  /**
   * `native`: the model calls them. `planner`: the model is asked first which one is needed. `auto`: by the model's
   * abilities.
   */
  readonly strategy: 'auto' | 'native' | 'planner'
  /** How often one run may ask which tool is needed. */
  readonly maxRounds: number
  /** How many tools one round may use. */
  readonly parallel: number
  /** How many of them run at the same time; null for all. */
  readonly concurrency: number | null
  /** How long all rounds of a run may take; null for no limit. */
  readonly timeoutMs: number | null
  /** Plans instead of the model. */
  readonly plan: PlanFunction | null
  /** True: the plan is the answer, and nothing is called. */
  readonly planOnly: boolean
}

/** One planned use of a tool. */
export interface ToolCommand {
  /** Its purpose. Default: the tool's name. */
  readonly purpose?: string
  readonly tool_name: string
  readonly tool_kwargs?: { readonly [name: string]: Json }
}

export type PlanFunction = (context: PlanContext) => readonly ToolCommand[] | Promise<readonly ToolCommand[]>

export interface PlanContext {
  /** The input of the run. */
  readonly input: Json
  readonly tools: readonly ToolSchema[]
  /** The results of earlier rounds, by purpose. */
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
