import { hostname } from 'node:os'
import { type AnyAgent, createRuntime, isLegateError, type RuntimeOptions } from '../../index.ts'
import { type Call, CliError, EXIT, textOption } from '../command/command.ts'
import type { WorkerOptions } from '../definition/module-agent.ts'
import { folderStore } from '../serve/folder-store.ts'
import { loadOffered } from '../serve/offered-agents.ts'
import { agentsWithoutModel } from '../serve/offered-models.ts'
import { workersOf } from '../serve/serve-options.ts'
import { noteIfSlow, refuseQueue, shownStore, storeOf } from '../store/open-store.ts'
import { oneLine } from '../terminal/clean.ts'
import { continueWithoutReader, note, write } from '../terminal/output.ts'
import { untilSignalled } from '../worker/signals.ts'

type Logger = NonNullable<RuntimeOptions['logger']>

/** Works on the runs of a store until a signal ends it. */
export async function worker(call: Call): Promise<number> {
  const engine = engineOf(call)
  const { agents, store: own, ...options } = await loadOffered(call)
  const named = namedIn(call)
  const chosen = chooseAgents(agents, named)
  const isOwn = own !== undefined && textOption(call, 'store') === undefined
  if (isOwn) refuseQueue(call)
  const store = storeOf(call, own)
  const { logger, lost } = watchStore(options.logger ?? stderrLogger)
  const runtime = createRuntime({
    ...options,
    logger,
    agents: chosen,
    store: folderStore(store, named),
    engine: { ...options.engine, ...engine },
  })
  requireWorkers({ ...options.engine, ...engine })
  continueWithoutReader()
  const signalled = untilSignalled('Draining: running steps get a few seconds, the rest goes back to the store.')
  try {
    await (isOwn ? runtime.resume() : noteIfSlow(call, runtime.resume()))
    const silent = await agentsWithoutModel({ ...options, agents: chosen })
    if (silent !== undefined) note(`legate: warning: ${silent}`)
    await write(
      `Process ${process.pid} on ${hostname()} works on ${isOwn ? 'the store of its module' : shownStore(call)}: ${namesOf(chosen)}.\n`,
    )
    await Promise.race([signalled, lost])
  } finally {
    await runtime.close()
  }
  return EXIT.completed
}

function engineOf(call: Call): NonNullable<RuntimeOptions['engine']> {
  const workers = workersOf(call)
  if (workers === 0) throw new CliError('--workers 0 is a worker that does not work. Give 1 or more.', EXIT.usage)
  const onChanged = textOption(call, 'on-changed')
  if (onChanged !== undefined && onChanged !== 'continue' && onChanged !== 'wait') {
    throw new CliError(`--on-changed is continue or wait, not "${oneLine(onChanged)}".`, EXIT.usage)
  }
  return { ...(workers === undefined ? {} : { workers }), ...(onChanged === undefined ? {} : { onChanged }) }
}

function requireWorkers({ workers }: NonNullable<RuntimeOptions['engine']>): void {
  if (workers !== 0) return
  const message = 'The module sets engine.workers to 0: that is a worker that does not work. Give --workers 1 or more.'
  throw new CliError(message, EXIT.usage)
}

/** The names of `--agents`; undefined: all. */
function namedIn(call: Call): ReadonlySet<string> | undefined {
  const list = textOption(call, 'agents')
  if (list === undefined) return undefined
  const names = list.split(',').map((name) => name.trim())
  return new Set(names.filter((name) => name !== ''))
}

function chooseAgents(agents: WorkerOptions['agents'], named: ReadonlySet<string> | undefined): readonly AnyAgent[] {
  if (named === undefined) return agents
  const missing = [...named].find((name) => !agents.some((agent) => agent.name === name))
  if (named.size > 0 && missing === undefined) return agents.filter(({ name }) => named.has(name))
  const known =
    agents.length === 0 ? 'name the module that exports it with --module FILE' : `there are ${namesOf(agents)}`
  const what = missing === undefined ? '--agents names none' : `There is no agent "${oneLine(missing)}"`
  throw new CliError(`${what}: ${known}.`, EXIT.usage, { namesHelp: false })
}

function namesOf(agents: readonly AnyAgent[]): string {
  return agents.length === 0 ? 'agents of files only' : agents.map(({ name }) => oneLine(name)).join(', ')
}

/** Notices, by what is logged, that this process can never use the store again: then there is nothing left to work on. */
function watchStore(logger: Logger): { readonly logger: Logger; readonly lost: Promise<never> } {
  let fail: (error: unknown) => void = () => undefined
  const lost = new Promise<never>((_, reject) => {
    fail = reject
  })
  lost.catch(() => undefined)
  const error: Logger['error'] = (message, details) => {
    const { error: cause } = { error: undefined, ...details } as { readonly error: unknown }
    if (isLegateError(cause, 'store_gone') || isLegateError(cause, 'store_newer_schema')) fail(cause)
    else logger.error(message, details)
  }
  return { logger: Object.assign(Object.create(logger), { error }), lost }
}

/** Errors go to the log of the system, for whoever looks after the process. */
const stderrLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message) => note(`legate: ${oneLine(message)}`),
  error: (message) => note(`legate: ${oneLine(message)}`),
}
