import type { Node } from '../../index.ts'
import { type Call, EXIT, isSet } from '../command.ts'
import { findNode, onlyNode } from '../find-node.ts'
import { findRun, shortId } from '../find-run.ts'
import { goesOn } from '../goes-on.ts'
import { withRuntime } from '../open-store.ts'
import { jsonLine, write } from '../terminal/output.ts'

export function retry(call: Call): Promise<number> {
  return withRuntime(call, 'write', async (runtime) => {
    const [ending = '', named] = call.words
    const turn = findRun(runtime.store, ending)
    const none = `Nothing has failed in the run ${shortId(turn.id)}. To ask once more, fork it: legate fork ${shortId(turn.id)}.`
    const node =
      named === undefined
        ? onlyNode(runtime.store, turn, { fits: hasFailed, none })
        : findNode(runtime.store, turn, named)
    const talk = await runtime.conversation(turn.conversationId)
    const run = await talk.retry(node.id)
    const told = `${shortId(node.id)} is done once more, in the run ${shortId(run.id)}: ${goesOn(call, runtime, run.id)}\n`
    await write(isSet(call, 'json') ? jsonLine({ nodeId: node.id, runId: run.id }) : told)
    return EXIT.completed
  })
}

const FAILED: readonly Node['state'][] = ['errored', 'rejected', 'uncertain']

/** Tried, and without a good end; what was only kept from running goes with it. */
function hasFailed({ state, input, output }: Node): boolean {
  return FAILED.includes(state) || (state === 'finished' && input.delegates === true && output.isError === true)
}
