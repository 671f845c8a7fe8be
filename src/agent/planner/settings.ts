/** How an agent uses its tools, where it is not left to its model. */
export interface PlannerSettings {
  /** `native`: the model calls them. `planner`: it is asked first which one is needed. `auto`: as the model can. */
  readonly strategy: 'auto' | 'native' | 'planner'
  /** How often it is asked which tool is needed, in one run. */
  readonly maxRounds: number
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
