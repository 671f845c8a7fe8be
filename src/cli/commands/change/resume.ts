import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Turn } from '../../../doors/rows.ts'
import { diskFiles } from '../../../doors/tools.ts'
import { createRuntime, type Id, type Runtime, type Store } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { modelFor } from '../../definition/input.ts'
import { loadModule, type WorkerOptions } from '../../definition/module-agent.ts'
import { findRun, shortId } from '../../store/find-run.ts'
import { openStore, withRuntime } from '../../store/open-store.ts'
import { plural } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { goOnWithoutReader, note, write } from '../../terminal/output.ts'
import { viewFor } from '../../watch/view.ts'
import { codeOf, folderOf, modelNameOf } from '../../watch/words.ts'
import { askersFor } from '../../worker/inline-ask.ts'
import { asChild, openTops, Tops } from '../../worker/open-tops.ts'
import { scopedStore } from '../../worker/scoped-store.ts'
import { endOf, lastAnswer, nothingOpen, storeWords, type TakeUp, takeUp, wrongEnd } from '../../worker/verdict.ts'
import { goOn, Worker } from '../../worker/worker.ts'

export async function resume(call: Call): Promise<number> {
  const file = textOption(call, 'module')
  return file === undefined ? withoutModule(call) : withModule(call, file)
}

/** What a worker goes on with, and how. */
interface Job {
  readonly store: Store
  readonly options: WorkerOptions
  /** The run that was named. */
  readonly target: Turn | undefined
  /** The trees it may work on; undefined: all. */
  readonly trees: ReadonlySet<Id> | undefined
  readonly again: TakeUp
}

async function withModule(call: Call, file: string): Promise<number> {
  const options = await loadModule(file)
  const named = textOption(call, 'store')
  const store = named === undefined && options.store ? options.store : openStore(call, 'write')
  const target = await targetIn(store, call)
  const trees = target === undefined ? undefined : new Set([target.rootId])
  return work(call, { store, options, target, trees, again: takeUp(file, named) })
}

/** Runs of files are kept whole in their rows: they need no module, only the folder they work in. */
async function withoutModule(call: Call): Promise<number> {
  const store = openStore(call, 'write')
  const target = await targetIn(store, call)
  const { trees, folder } = await closing(store, () =>
    target === undefined ? openHere(store) : ofTarget(store, target),
  )
  if (trees.size === 0) return nothingHere(store, call)
  await closing(store, () => checkModels(store, trees))
  const options = { agents: [], files: diskFiles({ workspace: folder }) }
  return work(call, { store, options, target, trees, again: takeUp(undefined, textOption(call, 'store')) })
}

interface Unattended {
  readonly trees: ReadonlySet<Id>
  readonly folder: string
}

/** What is open of this folder. */
function openHere(store: Store): Unattended {
  const folder = process.cwd()
  const roots = openTops(store).map(({ rootId }) => rootId)
  return { trees: new Set(roots.filter((id) => needsNoCode(store, id) && folderIn(store, id) === folder)), folder }
}

function ofTarget(store: Store, { id, rootId }: Turn): Unattended {
  const folder = folderIn(store, rootId) ?? process.cwd()
  if (!needsNoCode(store, rootId)) return { trees: new Set(), folder }
  if (existsSync(folder)) return { trees: new Set([rootId]), folder }
  throw new CliError(`The run ${shortId(id)} works in ${folder}, which is not there any more. Make it, and try again.`)
}

/** A run that has come far is not to fail for a key that is missing in this terminal. */
async function checkModels(store: Store, trees: ReadonlySet<Id>): Promise<void> {
  const names = new Set([...trees].flatMap((rootId) => modelNameOf(store.conversation(rootId)) ?? []))
  for (const name of names) await modelFor(undefined, name)
}

function needsNoCode(store: Store, rootId: Id): boolean {
  return codeOf(store.conversation(rootId)) === ''
}

function folderIn(store: Store, rootId: Id): string | undefined {
  return folderOf(store.conversation(rootId))
}

async function targetIn(store: Store, { words: [ending] }: Call): Promise<Turn | undefined> {
  return ending === undefined ? undefined : closing(store, () => findRun(store, ending))
}

/** Of one run that is named the answer alone is on stdout where that is no terminal, as `run` does it. */
async function work(call: Call, { store: inner, options, target, trees, again }: Job): Promise<number> {
  const { store, knownAgents } = scopedStore(inner, trees)
  const runtime = createRuntime({ ...options, store })
  const isAnswerAlone = target !== undefined && !isSet(call, 'json') && !process.stdout.isTTY
  const view = viewFor(runtime, {
    json: isSet(call, 'json'),
    env: call.env,
    hint: 'Ctrl-C stops',
    isBeside: isAnswerAlone,
    isAllowed: isSet(call, 'yes'),
  })
  const endingOf = isAnswerAlone ? wrongEnd : endOf
  const worker = new Worker({
    runtime,
    view,
    knownAgents,
    lastSeqs: lastSeqs(inner, target),
    askers: askersFor(call, runtime, view),
    ended: async (run) => asChild(runtime, run, await endingOf(runtime, run, again)),
    standstills: { where: storeWords(textOption(call, 'store')), goOn: again },
  })
  goOnWithoutReader()
  try {
    const tops = new Tops(runtime, trees)
    const isOpen = openTops(store, trees).length > 0
    if (!isOpen && target?.outcome) await tops.follow(worker, [await goOn(runtime, target, options.agents)])
    else {
      await runtime.resume()
      await tops.follow(worker)
    }
    if (isOpen || target !== undefined) {
      const code = worker.end()
      if (isAnswerAlone) await write(await lastAnswer(runtime, target))
      return code
    }
    view.say(`${nothingOpen(store, again)}\n`)
    return EXIT.completed
  } finally {
    await runtime.close()
  }
}

function lastSeqs(store: Store, target: Turn | undefined): ReadonlyMap<Id, number> {
  const open = target === undefined ? openTops(store) : [target]
  return new Map(open.map(({ rootId }) => [rootId, store.lastSeq(rootId)]))
}

/** Says what there is, and what it needs to go on. */
async function nothingHere(store: Store, call: Call): Promise<number> {
  const named = textOption(call, 'store')
  const again: TakeUp = (runId) => {
    const rootId = store.turn(runId)?.rootId ?? ''
    return takeUp(needsNoCode(store, rootId) ? undefined : 'FILE', named)(runId)
  }
  const open = openTops(store)
  const coded = open.filter(({ rootId }) => !needsNoCode(store, rootId))
  const others = open.filter(({ rootId }) => needsNoCode(store, rootId))
  const elsewhere = others.map(({ id, rootId }) => {
    return `\n  ${again(id)}  # works in ${oneLine(folderIn(store, rootId) ?? '?')}`
  })
  const said = coded.length === 0 ? '' : `${NEEDS_MODULE} ${unfinished(store, coded)}`
  const more =
    others.length === 0 ? '' : `What is unfinished in other folders goes on when it is named:${elsewhere.join('')}`
  const nothing = open.length === 0 ? nothingOpen(store, again) : ''
  await store.close()
  if (nothing === '') throw new CliError([said, more].filter(Boolean).join('\n'), EXIT.usage)
  await write(`${nothing}\n`)
  return EXIT.completed
}

function unfinished(store: Store, open: readonly Turn[]): string {
  const names = open.map(({ conversationId }) => `"${oneLine(store.conversation(conversationId)?.agent.name ?? '?')}"`)
  return `${plural(open.length, 'unfinished run')} of ${[...new Set(names)].join(', ')}.`
}

const NEEDS_MODULE = 'resume needs the code of your agents: --module FILE, an ES module that exports them.'

/** Closes the store when that fails. */
async function closing<T>(store: Store, look: () => T | Promise<T>): Promise<T> {
  try {
    return await look()
  } catch (error) {
    await store.close()
    throw error
  }
}

const DEFAULT_SECONDS = 20

export function cancel(call: Call): Promise<number> {
  const seconds = Number(textOption(call, 'timeout') ?? DEFAULT_SECONDS)
  if (!Number.isFinite(seconds) || seconds < 0) {
    throw new CliError('--timeout is a number of seconds, such as 20.', EXIT.usage)
  }
  return withRuntime(call, 'write', async (runtime) => {
    const turn = findRun(runtime.store, call.words[0] ?? '')
    const name = `${oneLine(runtime.store.conversation(turn.conversationId)?.agent.name ?? '?')} ${shortId(turn.id)}`
    if (turn.outcome !== null) {
      await write(`${name} is over already: ${turn.outcome.status}.\n`)
      return EXIT.completed
    }
    const open = openRuns(runtime.store, turn)
    await runtime.cancel(turn.id, textOption(call, 'reason') ?? 'Cancelled from the command line.')
    if (await hasStopped(runtime, turn, seconds * 1000)) {
      const { status } = runtime.store.turn(turn.id)?.outcome ?? { status: 'cancelled' }
      const others = open > 1 ? `, and ${plural(open - 1, 'subagent')} with it` : ''
      await write(`${name} has stopped: ${status}${others}. What it had is kept: legate show ${shortId(turn.id)}\n`)
      return EXIT.completed
    }
    note(
      `legate: ${name} was asked to stop and has not yet, after ${seconds} s. legate tree ${shortId(turn.id)} tells.`,
    )
    return EXIT.other
  })
}

/** A process without code of agents still ends what nobody else does: nodes of dead processes, and those that do not hear. */
async function hasStopped(runtime: Runtime, turn: Turn, ms: number): Promise<boolean> {
  await runtime.resume()
  const { result } = runtime.attach(turn.id)
  return Promise.race([result.then(() => true), sleep(ms, false, { ref: false })])
}

function openRuns(store: Store, turn: Turn): number {
  return store
    .openLinks(turn.id)
    .map(({ id }) => store.turn(id))
    .reduce((sum, child) => (child === undefined ? sum : sum + openRuns(store, child)), 1)
}
