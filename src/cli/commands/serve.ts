import { createRuntime, type Runtime } from '../../index.ts'
import { type AnsweredRequest, type ServeOptions, type Server, serve as serveRuntime } from '../../server/index.ts'
import { type Call, EXIT, isSet, textOption } from '../command/command.ts'
import { folderStore } from '../serve/folder-store.ts'
import { loadOffered } from '../serve/offered-agents.ts'
import { splitPrompts } from '../serve/offered-prompts.ts'
import { removeServeFile, writeServeFile } from '../serve/serve-file.ts'
import { checkReach, listenError, readServeOptions, workersOf } from '../serve/serve-options.ts'
import { noteIfSlow, openOrMakeStore, refuseQueue, shownStore } from '../store/open-store.ts'
import { duration } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { continueWithoutReader, note, write } from '../terminal/output.ts'
import { untilSignalled } from '../worker/signals.ts'

/** Serves agents over HTTP until a signal ends it, and works on their runs. */
export async function serve(call: Call): Promise<number> {
  const { prompts, words } = await splitPrompts(call)
  const options = { ...readServeOptions(call), mcp: { prompts } }
  const workers = workersOf(call)
  const { store: own, engine, ...offered } = await loadOffered({ ...call, words })
  const isOwn = own !== undefined && textOption(call, 'store') === undefined
  if (isOwn) refuseQueue(call)
  const store = isOwn ? own : openOrMakeStore(call)
  const runtime = createRuntime({
    ...offered,
    store: folderStore(store),
    engine: { ...engine, ...(workers === undefined ? {} : { workers }) },
  })
  continueWithoutReader()
  try {
    await checkReach(options, store)
    const listening = listen(runtime, options, call)
    const server = await (isOwn ? listening : noteIfSlow(call, listening))
    return await untilEnded(runtime, server, isOwn ? undefined : shownStore(call))
  } finally {
    await runtime.close()
  }
}

async function listen(runtime: Runtime, options: ServeOptions, call: Call): Promise<Server> {
  const heard = isSet(call, 'verbose') ? { heard: noteRequest } : {}
  try {
    return await serveRuntime(runtime, { ...options, ...heard, report: noteError })
  } catch (error) {
    throw listenError(error, options)
  }
}

function noteRequest({ method, path, status, ms, principal }: AnsweredRequest): void {
  note(`${method} ${oneLine(path)} ${status} ${duration(ms)} ${oneLine(principal ?? '-')}`)
}

function noteError(error: unknown): void {
  note(`legate: ${oneLine(error instanceof Error ? error.message : String(error))}`)
}

/** Prints where the server is, and waits for a signal. Then everything comes to its end in order. */
async function untilEnded(runtime: Runtime, server: Server, store: string | undefined): Promise<number> {
  const url = addressOf(server)
  if (store !== undefined) writeServeFile({ url, pid: process.pid, store })
  const forget = () => (store === undefined ? undefined : removeServeFile(store))
  const signalled = untilSignalled('Ending: open requests and running steps get a few seconds.', forget)
  await runtime.resume()
  await write(`${url}\n`)
  await signalled
  forget()
  await server.close()
  await runtime.close()
  return EXIT.completed
}

/** The address to open: with the token of this machine in the fragment, which is never sent. */
function addressOf({ url, token }: Server): string {
  if (!url.includes('://')) return `unix:${url}`
  return token === undefined ? url : `${url}/#token=${token}`
}
