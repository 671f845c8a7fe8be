import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Conversation, look, openTopRuns, type TreeReader, type Turn } from '../../../doors/rows.ts'
import { diskFiles } from '../../../doors/tools.ts'
import { createRuntime, type Id, type Store } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import { modelOfCommand } from '../../definition/input.ts'
import { loadModule, type WorkerOptions } from '../../definition/module-agent.ts'
import type { Desk } from '../../desk/desk.ts'
import { findRun, shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { openStore, storeOf } from '../../store/open-store.ts'
import { plural } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { continueWithoutReader, note, write } from '../../terminal/output.ts'
import { viewFor } from '../../watch/view.ts'
import { folderOf, modelNameOf, neededCode } from '../../watch/words.ts'
import { FollowedRuns, ignoreChildEnd } from '../../worker/followed-runs.ts'
import { respondersFor } from '../../worker/inline-ask.ts'
import { scopedStore } from '../../worker/scoped-store.ts'
import {
  type ContinueCommand,
  continueCommand,
  endOf,
  lastAnswer,
  nothingOpen,
  reportFailure,
} from '../../worker/verdict.ts'
import { continueCancelled, refuseEnded, Worker } from '../../worker/worker.ts'

export async function resume(call: Call): Promise<number> {
  const file = textOption(call, 'module')
  return file === undefined ? withoutModule(call) : withModule(call, file)
}

/** The work of `resume`: the store, the run and the trees a worker continues. */
interface ResumeJob {
  readonly store: Store
  readonly options: WorkerOptions
  /** The run that was named, if any. */
  readonly target: Turn | undefined
  /** The trees the worker may work on; undefined means all. */
  readonly trees: ReadonlySet<Id> | undefined
  readonly again: ContinueCommand
}

async function withModule(call: Call, file: string): Promise<number> {
  const options = await loadModule(file)
  const store = storeOf(call, options.store, () => openStore(call, 'write'))
  const target = await targetIn(store, call)
  const trees = target === undefined ? undefined : new Set([target.rootId])
  return work(call, { store, options, target, trees, again: continueCommand(file) })
}

/**
 * Resumes runs of recipe and agent files. Their rows hold the whole definition, so only the folder is needed, no
 * module.
 */
async function withoutModule(call: Call): Promise<number> {
  const store = openStore(call, 'write')
  const target = await targetIn(store, call)
  const { trees, folder } = await closing(store, () =>
    target === undefined ? openHere(store) : treeOfRun(store, target),
  )
  if (trees.size === 0) return target === undefined ? nothingHere(store) : needsCode(store, target)
  await closing(store, () => checkModels(store, trees))
  const options = { agents: [], files: diskFiles({ workspace: folder }) }
  return work(call, { store, options, target, trees, again: continueCommand() })
}

interface FolderRuns {
  readonly trees: ReadonlySet<Id>
  readonly folder: string
}

/** Lists the open runs that belong to this folder. */
async function openHere(store: Store): Promise<FolderRuns> {
  const folder = process.cwd()
  const trees = new Set<Id>()
  for (const { rootId } of await openTopRuns(store)) {
    const root = await rootRow(store, rootId)
    if (needsNoCode(root) && folderOf(root) === folder) trees.add(rootId)
  }
  return { trees, folder }
}

async function treeOfRun(store: Store, { id, rootId }: Turn): Promise<FolderRuns> {
  const root = await rootRow(store, rootId)
  const folder = folderOf(root) ?? process.cwd()
  if (!needsNoCode(root)) return { trees: new Set(), folder }
  if (existsSync(folder)) return { trees: new Set([rootId]), folder }
  throw new CliError(`The run ${shownId(id)} works in ${folder}, which no longer exists. Create it and try again.`)
}

/** Checks model keys first, so that a run that has come far does not fail because this terminal lacks a key. */
async function checkModels(store: Store, trees: ReadonlySet<Id>): Promise<void> {
  const names = new Set<string>()
  for (const rootId of trees) {
    const name = modelNameOf(await rootRow(store, rootId))
    if (name !== undefined) names.add(name)
  }
  for (const name of names) await modelOfCommand(undefined, name)
}

function needsNoCode(root: Conversation | undefined): boolean {
  return neededCode(root) === ''
}

async function rootRow(store: Store, rootId: Id): Promise<Conversation | undefined> {
  return look(store, rootId, (tree) => tree.conversation(rootId))
}

async function targetIn(store: Store, { words: [ending] }: Call): Promise<Turn | undefined> {
  return ending === undefined ? undefined : closing(store, () => findRun(store, ending))
}

/** Runs the worker. If one run is named and stdout is not a terminal, only the answer goes to stdout, as with `run`. */
async function work(call: Call, { store: inner, options, target, trees, again }: ResumeJob): Promise<number> {
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
  const endingOf = isAnswerAlone ? reportFailure : endOf
  const worker = new Worker({
    desk: runtime,
    view,
    knownAgents,
    lastSeqs: await lastSeqs(inner, target),
    askers: respondersFor(call, runtime, view),
    ended: async (run) => ignoreChildEnd(runtime, run, await endingOf(runtime, run, again)),
    goOn: again,
  })
  continueWithoutReader()
  try {
    const tops = await FollowedRuns.find(runtime, trees)
    const isOpen = (await openTopRuns(store, trees)).length > 0
    if (!isOpen && target?.outcome)
      await tops.follow(worker, [await continueCancelled(runtime, target, options.agents)])
    else {
      await runtime.resume()
      await tops.follow(worker)
    }
    if (isOpen || target !== undefined) {
      const code = worker.end()
      if (isAnswerAlone) await write(await lastAnswer(runtime, target))
      return code
    }
    view.say(`${await nothingOpen(store, again)}\n`)
    return EXIT.completed
  } finally {
    await runtime.close()
  }
}

async function lastSeqs(store: Store, target: Turn | undefined): Promise<ReadonlyMap<Id, number>> {
  const open = target === undefined ? await openTopRuns(store) : [target]
  const seqs = new Map<Id, number>()
  for (const { rootId } of open) seqs.set(rootId, await look(store, rootId, (tree) => tree.lastSeq(rootId)))
  return seqs
}

/** Says of a run that was named what it needs, or that it is over. */
async function needsCode(store: Store, target: Turn): Promise<never> {
  await store.close()
  refuseEnded(target)
  throw new CliError(`${NEEDS_MODULE} Continue with: ${continueCommand('FILE')(target.id)}`, EXIT.usage)
}

/** Lists the open runs that cannot continue here, and what each of them needs. */
async function nothingHere(store: Store): Promise<number> {
  const again = (runId: Id, root: Conversation | undefined) =>
    continueCommand(needsNoCode(root) ? undefined : 'FILE')(runId)
  const open = await openTopRuns(store)
  const coded: string[] = []
  const elsewhere: string[] = []
  for (const { id, rootId, conversationId } of open) {
    const { root, row } = await look(store, rootId, (tree) => ({
      root: tree.conversation(rootId),
      row: tree.conversation(conversationId),
    }))
    if (needsNoCode(root)) elsewhere.push(`\n  ${again(id, root)}  # works in ${oneLine(folderOf(root) ?? '?')}`)
    else coded.push(`"${oneLine(row?.agent.name ?? '?')}"`)
  }
  const said = coded.length === 0 ? '' : `${NEEDS_MODULE} ${unfinished(coded)}`
  const more =
    elsewhere.length === 0 ? '' : `To continue unfinished runs of other folders, name them:${elsewhere.join('')}`
  const nothing = open.length === 0 ? await nothingOpen(store, again) : ''
  await store.close()
  if (nothing === '')
    throw new CliError([said, more].filter(Boolean).join('\n'), EXIT.usage, { namesHelp: more === '' })
  await write(`${nothing}\n`)
  return EXIT.completed
}

/** Counts runs by the names of their agents. */
function unfinished(names: readonly string[]): string {
  return `${plural(names.length, 'unfinished run')} of ${[...new Set(names)].join(', ')}.`
}

const NEEDS_MODULE = 'resume needs the code of your agents: --module FILE, an ES module that exports them.'

/** Runs `look` and closes the store if it throws. */
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
  return withDesk(call, 'write', async (desk) => {
    const { store } = desk
    const turn = await findRun(store, call.words[0] ?? '')
    const { row, open } = await look(store, turn.rootId, (tree) => ({
      row: tree.conversation(turn.conversationId),
      open: openRuns(tree, turn),
    }))
    const name = `${oneLine(row?.agent.name ?? '?')} ${shownId(turn.id)}`
    if (turn.outcome !== null) {
      await write(`${name} has already ended: ${oneLine(turn.outcome.status)}.\n`)
      return EXIT.completed
    }
    await desk.cancel(turn.id, textOption(call, 'reason') ?? 'Cancelled from the command line.')
    if (await hasStopped(desk, turn, seconds * 1000)) {
      const ended = await look(store, turn.rootId, (tree) => tree.turn(turn.id))
      const { status } = ended?.outcome ?? { status: 'cancelled' }
      const others = open > 1 ? `, and ${plural(open - 1, 'subagent')} with it` : ''
      await write(
        `${name} has stopped: ${oneLine(status)}${others}. Its results are kept: ${legate(`show ${shownId(turn.id)}`)}\n`,
      )
      return EXIT.completed
    }
    note(`legate: ${name} has not stopped after ${seconds} s. See ${legate(`tree ${shownId(turn.id)}`)}.`)
    return EXIT.other
  })
}

/**
 * Waits for a run to stop. Even a process without agent code ends nodes of dead processes and nodes that ignore the
 * signal.
 */
async function hasStopped(desk: Desk, turn: Turn, ms: number): Promise<boolean> {
  await desk.resume()
  const { result } = await desk.attach(turn.id)
  return Promise.race([result.then(() => true), sleep(ms, false, { ref: false })])
}

function openRuns(tree: TreeReader, turn: Turn): number {
  return tree
    .openLinks(turn.id)
    .map(({ id }) => tree.turn(id))
    .reduce((sum, child) => (child === undefined ? sum : sum + openRuns(tree, child)), 1)
}
