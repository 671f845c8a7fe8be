import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { createRuntime, type Runtime, type Store } from '../index.ts'
import { sqliteStore } from '../store/sqlite.ts'
import { type Call, CliError, textOption } from './command.ts'

/** A person waits for the answer: rather say soon that the file is locked. What is to be written may wait longer. */
const READ_MS = 1_000
export const WRITE_MS = 10_000

/** Where the store is: `--store`, `$LEGATE_DB`, else the user's own. Never one that lies in the working folder. */
export function storePath(call: Call): string {
  const named = textOption(call, 'store') ?? call.env['LEGATE_DB'] ?? ''
  if (named !== '') return resolve(named)
  const state = call.env['XDG_STATE_HOME'] ?? ''
  return join(isAbsolute(state) ? state : join(homedir(), '.local', 'state'), 'legate', 'legate.db')
}

/** The store of the call, which must be there: to look at runs makes no file. */
export function openStore(call: Call, busyMs: number = READ_MS): Store {
  const path = storePath(call)
  if (!existsSync(path)) {
    const advice = 'Name the one your program writes with --store PATH or LEGATE_DB.'
    throw new CliError(`There is no store at ${path}. ${advice}`)
  }
  return sqliteStore({ path, busyMs })
}

/** Does something with the runtime of the call's store and closes it. It has no code of agents: it runs nothing. */
export async function withRuntime<T>(
  call: Call,
  use: (runtime: Runtime) => Promise<T>,
  busyMs: number = READ_MS,
): Promise<T> {
  const runtime = createRuntime({ store: openStore(call, busyMs) })
  try {
    return await use(runtime)
  } finally {
    await runtime.close()
  }
}
