// The two runs of a comparison: found by the id of a run or of a conversation, with their money by node.

import { ClientError } from 'legate/client'
import { client } from '../../data/client.ts'
import type { ConversationAnswer, RunDiff, RunLook, TimelineRun } from '../../data/types.ts'

/** One of the two runs. */
export interface Side {
  readonly run: RunLook
  readonly conversation: ConversationAnswer
  readonly timeline: TimelineRun
  /** US dollars by node; null where a price is unknown. */
  readonly usd: ReadonlyMap<string, number | null>
}

export interface Comparison {
  readonly first: Side
  readonly second: Side
  readonly diff: RunDiff
}

export async function compareRuns(left: string, right: string): Promise<Comparison> {
  const [first, second] = await Promise.all([sideOf(left), sideOf(right)])
  return { first, second, diff: await client.diff(first.run.runId, second.run.runId) }
}

async function sideOf(id: string): Promise<Side> {
  const run = await findRun(id)
  const [conversation, timeline] = await Promise.all([
    client.conversation(run.conversationId).get(),
    client.timeline(run.runId),
  ])
  return { run, conversation, timeline, usd: new Map(moneyIn(timeline)) }
}

/** An address names a run, or a conversation: then its newest run is meant. */
async function findRun(id: string): Promise<RunLook> {
  try {
    return await client.look(id)
  } catch (error) {
    if (!(error instanceof ClientError) || error.status !== 404) throw error
    const { runs } = await client.tree(id)
    const newest = runs.at(-1)
    if (newest === undefined) throw error
    return client.look(newest.runId)
  }
}

function moneyIn({ spans }: TimelineRun): (readonly [string, number | null])[] {
  return spans.flatMap((span) => [[span.nodeId, span.usd] as const, ...span.runs.flatMap(moneyIn)])
}
