import { type Call, EXIT, isSet } from '../command.ts'
import { findNode, onlyNode } from '../find-node.ts'
import { findRun, shortId } from '../find-run.ts'
import { goesOn } from '../goes-on.ts'
import { withRuntime } from '../open-store.ts'
import { jsonLine, write } from '../terminal/output.ts'
import { standardInput } from '../terminal/standard-input.ts'

export async function edit(call: Call): Promise<number> {
  const [ending = '', ...rest] = call.words
  const given = rest.at(-1) ?? ''
  const named = rest.length > 1 ? rest[0] : undefined
  const text = given === '-' ? (await standardInput()).trimEnd() : given
  return withRuntime(call, 'write', async (runtime) => {
    const turn = findRun(runtime.store, ending)
    const none = `The run ${shortId(turn.id)} was not asked in words. legate show ${shortId(turn.id)} --nodes lists its nodes.`
    const node =
      named === undefined
        ? onlyNode(runtime.store, turn, { fits: ({ kind }) => kind === 'user_message', none })
        : findNode(runtime.store, turn, named)
    const talk = await runtime.conversation(turn.conversationId)
    const run = await talk.edit(node.id, text)
    const told = `Message edited. New run: ${shortId(run.id)}. Continue with: ${goesOn(call, runtime, run.id)}\n`
    await write(isSet(call, 'json') ? jsonLine({ nodeId: node.id, runId: run.id }) : told)
    return EXIT.completed
  })
}
