import { createRuntime, type Runtime } from '../../index.ts'
import { type AnsweredRequest, type ServeOptions, type Server, serve as serveRuntime } from '../../server/index.ts'
import { type Call, EXIT, isSet, textOption } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import { exposedFiles } from '../serve/exposed-files.ts'
import { folderStore } from '../serve/folder-store.ts'
import { loadOffered, undecidedAgents } from '../serve/offered-agents.ts'
import { agentsWithoutModel } from '../serve/offered-models.ts'
import { splitPrompts } from '../serve/offered-prompts.ts'
import { type RunningServer, removeServeFile, withToken, writeServeFile } from '../serve/serve-file.ts'
import { checkPlace, checkReach, listenError, readServeOptions, workersOf } from '../serve/serve-options.ts'
import { noteIfSlow, refuseQueue, shownStore, storeOf } from '../store/open-store.ts'
import { duration } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { continueWithoutReader, note, write } from '../terminal/output.ts'
import { untilSignalled } from '../worker/signals.ts'

/** Serves agents over HTTP until a signal ends it, and works on their runs. */
export async function serve(call: Call): Promise<number> {
  const { prompts, words, notices } = await splitPrompts(call)
  const options = { ...readServeOptions(call), mcp: { prompts } }
  const workers = workersOf(call)
  const { store: own, engine, ...offered } = await loadOffered({ ...call, words })
  await checkPlace(options)
  const isOwn = own !== undefined && textOption(call, 'store') === undefined
  if (isOwn) refuseQueue(call)
  const store = storeOf(call, own)
  const runtime = createRuntime({
    ...offered,
    ...(isSet(call, 'trust-programs') ? { trustPrograms: true } : {}),
    store: folderStore(store),
    engine: { ...engine, ...(workers === undefined ? {} : { workers }) },
  })
  continueWithoutReader()
  try {
    await checkReach(options, store)
    const listening = listen(runtime, options, call)
    const server = await (isOwn ? listening : noteIfSlow(call, listening))
    for (const { message, hint } of offered.files === undefined ? [] : await exposedFiles(offered.files)) {
      note(`legate: warning: ${message}. ${hint}`)
    }
    for (const notice of notices) note(`legate: warning: ${notice}`)
    const silent = await agentsWithoutModel(offered)
    if (silent !== undefined) note(`legate: warning: ${silent}`)
    return await untilEnded(runtime, server, { store: isOwn ? undefined : shownStore(call), env: call.env })
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
  note(`legate: ${oneLine(messageOf(error))}`)
}

/** Prints where the server is, and waits for a signal. Then everything comes to its end in order. */
async function untilEnded(
  runtime: Runtime,
  server: Server,
  {
    store,
    env,
  }: {
    /** Undefined where the module brings its own. */
    readonly store: string | undefined
    readonly env: Call['env']
  },
): Promise<number> {
  const { token } = server
  const address = server.url.includes('://') ? server.url : `unix:${server.url}`
  if (store !== undefined) tell({ address, takesToken: token !== undefined, store }, env)
  const forget = () => (store === undefined ? undefined : removeServeFile(env))
  const signalled = untilSignalled('Ending: open requests and running steps get a few seconds.', forget)
  await runtime.resume()
  const undecided = await undecidedAgents(runtime)
  if (undecided !== undefined) note(`legate: ${undecided}`)
  await write(`${withToken(address, token)}\n`)
  await signalled
  forget()
  await server.close()
  await runtime.close()
  return EXIT.completed
}

/** A server works without: only `legate open` does not find it. */
function tell(server: RunningServer, env: Call['env']): void {
  try {
    writeServeFile(server, env)
  } catch (error) {
    note(`legate: ${legate('open')} will not find this server: ${oneLine(messageOf(error))}`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
