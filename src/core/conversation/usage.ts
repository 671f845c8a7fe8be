import { addUsage, NO_USAGE, type Usage } from '../graph/content.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Id } from '../graph/rows.ts'

/** The usage of a run, and the part of each run that it started. */
export interface UsageShare {
  readonly runId: Id
  readonly agent: string
  /** The usage of the run and everything below it. */
  readonly usage: Usage
  /** The usage of the run's own model calls. */
  readonly own: Usage
  readonly modelCalls: number
  readonly children: readonly UsageShare[]
}

export function usageOf(tree: TreeReader, runId: Id): UsageShare | undefined {
  const turn = tree.turn(runId)
  if (turn === undefined) return undefined
  const agent = tree.conversation(turn.conversationId)?.agent.name ?? ''
  const children = tree.linksOf(runId).flatMap(({ id }) => usageOf(tree, id) ?? [])
  // An account grows after its end too, by children that outlive their host; an outcome does not.
  const counted = tree.linksOf(runId).map(({ id, outcome }) => {
    return outcome === null ? NO_USAGE : (tree.turn(id)?.account.usage ?? outcome.usage)
  })
  const own = counted.reduce(less, turn.account.usage)
  const usage = children.reduce((sum, share) => addUsage(sum, share.usage), own)
  return { runId, agent, usage, own, modelCalls: turn.account.modelCalls, children }
}

function less(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens - b.inputTokens,
    outputTokens: a.outputTokens - b.outputTokens,
    cacheReadTokens: a.cacheReadTokens - b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens - b.cacheWriteTokens,
  }
}
