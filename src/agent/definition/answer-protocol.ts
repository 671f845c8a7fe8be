import type { Id } from '../../graph/rows.ts'

/** How an agent works that was made of a file or by a call. */
export interface Manner {
  /** Its instructions as its model is told them in one run. */
  tell(told: Told): string
  /** The tool that takes its final output: no answer in words is one. Null: an answer ends the run. */
  readonly finalTool: string | null
  /** The tool that decides whether an answer is one. Null: it is. */
  readonly checkTool: string | null
}

/** What of a run its agent may be told. */
export interface Told {
  readonly instructions: string
  /** Its session. */
  readonly id: Id
  /** Model calls it has. */
  readonly turns: number
  /** Names of the tools it is offered. */
  readonly tools: readonly string[]
}
