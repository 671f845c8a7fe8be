import { client } from './client.ts'
import type { NodeAnswer } from './types.ts'

const FAILED: ReadonlySet<string> = new Set(['errored', 'rejected', 'uncertain'])

/** True for a node that was tried and did not end well. */
function hasFailed({ state, input, output }: NodeAnswer): boolean {
  return FAILED.has(state) || (state === 'finished' && input.delegates === true && output.isError === true)
}

/** Repeats the last failed node of a run. */
export async function retryRun(runId: string): Promise<void> {
  const { conversationId } = await client.look(runId)
  let from: number | undefined
  let failed: NodeAnswer | undefined
  for (;;) {
    const page = await client.nodes(runId, { limit: 200, ...(from === undefined ? {} : { from }) })
    failed = page.nodes.findLast(hasFailed) ?? failed
    if (typeof page.next !== 'number') break
    from = page.next
  }
  if (failed === undefined) throw new Error('Nothing failed in it that could be tried again. Say something to go on.')
  await client.conversation(conversationId).retry(failed.id)
}
