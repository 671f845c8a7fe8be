import { type Call, EXIT, isSet, textOption } from '../command.ts'
import { findIds, only } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { plural } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, write } from '../terminal/output.ts'

/** Deletes one tree, and says what went. */
export function forget(call: Call): Promise<number> {
  const [ending = ''] = call.words
  return withRuntime(call, 'write', async (runtime) => {
    const found = findIds(runtime.store, ending).filter(({ type }) => type !== 'node')
    // What leads to a tree may be gone: its whole id still names it.
    const id = found.length === 0 ? ending : only(found, ending, (one) => `${one.id}  ${one.type}`).id
    const stone = await runtime.forget(id, textOption(call, 'reason') ?? 'Forgotten from the command line.')
    const runs = stone.conversations.flatMap((one) => one.runs)
    const text = `deleted: ${stone.rootId} ${oneLine(stone.agent)}, ${plural(runs.length, 'run')}\n`
    await write(isSet(call, 'json') ? jsonLine(stone) : text)
    return EXIT.completed
  })
}
