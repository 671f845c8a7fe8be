import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { createRuntime } from '../../index.ts'
import { sqliteStore } from '../../store/sqlite.ts'
import { type Call, CliError, EXIT, isSet } from '../command.ts'
import { findRunOrNode, shortId } from '../find-run.ts'
import { storePath, withRuntime } from '../open-store.ts'
import { jsonLine, write } from '../terminal/output.ts'

/** The whole tree of a run, on stdout. */
export function exportRun(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const { rootId } = findRunOrNode(runtime.store, call.words[0] ?? '')
    for await (const line of runtime.export(rootId)) await write(`${line}\n`)
    return EXIT.completed
  })
}

/** Takes a tree from a file, or from stdin; the store is made where there is none. */
export async function importRun(call: Call): Promise<number> {
  const [file = '-'] = call.words
  const runtime = createRuntime({ store: sqliteStore(storePath(call)) })
  try {
    const rootId = await runtime.import(linesOf(file))
    const [turn] = runtime.store.turnsOf(rootId, { limit: 1 })
    await write(
      isSet(call, 'json')
        ? jsonLine({ rootId, runId: turn?.id ?? null })
        : `Taken: ${shortId(turn?.id ?? rootId)}. legate show ${shortId(turn?.id ?? rootId)}\n`,
    )
    return EXIT.completed
  } finally {
    await runtime.close()
  }
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const input = file === '-' ? process.stdin : createReadStream(file, 'utf8')
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new CliError(`There is no file ${file}.`, EXIT.usage)
    throw new CliError(`Cannot read ${file}: ${message}`, EXIT.usage)
  }
}
