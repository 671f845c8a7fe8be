import type { Id } from '../../graph/rows.ts'

/** How an agent from a file or a call works. */
export interface AnswerProtocol {
  /** Writes its instructions for one run. */
  writeInstructions(told: RunFacts): string
  /** The tool that takes its final output: a plain answer does not end the run. Null: it does. */
  readonly finalTool: string | null
  /** The tool that decides whether an answer is final. Null: every answer is. */
  readonly checkTool: string | null
}

/** The facts about a run that its agent's instructions may contain. */
export interface RunFacts {
  readonly instructions: string
  /** Its session. */
  readonly id: Id
  /** How many model calls it has. */
  readonly turns: number
  /** Names of the tools that it is offered. */
  readonly tools: readonly string[]
}
