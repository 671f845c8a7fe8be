import type { Id, ScopedRuntime } from '../../index.ts'

const PAGE = 200

/** Cancels the open runs of owners, as far as the principal of the runtime may. Gives their ids. */
export async function cancelRunsOf(runtime: ScopedRuntime, owners: Iterable<string>): Promise<readonly Id[]> {
  const cancelled: Id[] = []
  for (const owner of owners) cancelled.push(...(await cancelRuns(runtime, owner)))
  return cancelled
}

async function cancelRuns(runtime: ScopedRuntime, owner: string): Promise<readonly Id[]> {
  const ids: Id[] = []
  for (let before: Id | undefined; ; ) {
    const from = before === undefined ? {} : { before }
    const page = await runtime.runs({ owner, state: 'open', limit: PAGE, ...from })
    for (const { runId } of page) {
      await runtime.cancel(runId, 'The token of its owner was revoked.')
      ids.push(runId)
    }
    before = page.at(-1)?.rootId
    if (page.length < PAGE) return ids
  }
}
