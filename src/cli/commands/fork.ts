import type { Id, Node, Runtime } from '../../index.ts'
import { type Call, EXIT, isSet, textOption } from '../command.ts'
import { findNode, onlyNode } from '../find-node.ts'
import { findRun, shortId } from '../find-run.ts'
import { goesOn } from '../goes-on.ts'
import { withRuntime } from '../open-store.ts'
import { jsonLine, write } from '../terminal/output.ts'
import { codeOf } from '../watch/code-of.ts'

export function fork(call: Call): Promise<number> {
  return withRuntime(call, 'write', async (runtime) => {
    const [ending = '', named] = call.words
    const turn = findRun(runtime.store, ending)
    const id = shortId(turn.id)
    const none =
      turn.state === 'ended'
        ? `The run ${id} has no last answer that counts: it was made anew, or ended without one. Name the node to fork at: legate show ${id} --nodes lists them.`
        : `The run ${id} has no last answer yet: name the node to fork at, or wait until it is over.`
    const node =
      named === undefined
        ? onlyNode(runtime.store, turn, {
            fits: (one) => isLastWord(one, runtime.store.edgesFrom(one.id).length),
            none,
          })
        : findNode(runtime.store, turn, named)
    const title = textOption(call, 'title')
    const talk = await runtime.conversation(turn.conversationId)
    const children = isSet(call, 'rerun') ? 'rerun' : 'reuse'
    const lane = await talk.fork(node.id, { children, ...(title === undefined ? {} : { title }) })
    if (isSet(call, 'json')) {
      await write(
        jsonLine({
          conversationId: turn.conversationId,
          nodeId: node.id,
          laneId: lane.id,
          runId: lane.run?.id ?? null,
        }),
      )
      return EXIT.completed
    }
    const next =
      lane.run === null
        ? `It waits for an input: ${saidTo(runtime, lane.id)}`
        : `It goes on as ${shortId(lane.run.id)}: ${goesOn(call, runtime, lane.run.id)}`
    await write(`Forked at ${shortId(node.id)}: the lane ${shortId(lane.id)}. ${next}\n`)
    return EXIT.completed
  })
}

function isLastWord({ kind, purpose, endedAt }: Node, followers: number): boolean {
  return kind === 'agent_message' && purpose === 'answer' && endedAt !== null && followers === 0
}

function saidTo({ store }: Runtime, laneId: Id): string {
  return codeOf(store.conversation(laneId)) === ''
    ? `legate chat --continue ${shortId(laneId)}`
    : `runtime.run(agent, input, { conversationId: '${laneId}' })`
}
