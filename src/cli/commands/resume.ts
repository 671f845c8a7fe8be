import {
  type AnyAgent,
  createRuntime,
  type Id,
  type Json,
  type Run,
  type Runtime,
  type Store,
  type Turn,
} from '../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../command.ts'
import { findRun, shortId } from '../find-run.ts'
import { openStore } from '../open-store.ts'
import { plural } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { exitNow, goOnWithoutReader } from '../terminal/output.ts'
import { viewFor } from '../watch/view.ts'
import { nothingOpen, storeWords, takeUp } from '../worker/cancelled-runs.ts'
import { InlineAsk } from '../worker/inline-ask.ts'
import { loadModule, type WorkerOptions } from '../worker/load-module.ts'
import { asChild, openTops, Tops } from '../worker/open-tops.ts'
import { scopedStore } from '../worker/scoped-store.ts'
import { endOf } from '../worker/verdict.ts'
import { Worker } from '../worker/worker.ts'

const GO_ON = 'Go on where you stopped.'

export async function resume(call: Call): Promise<number> {
  const file = textOption(call, 'module')
  if (file === undefined) return explain(call)
  // A user's module may hold whatever it likes: connections, timers, tools that do not hear their signal.
  return exitNow(await work(call, file, await loadModule(file)))
}

async function work(call: Call, file: string, options: WorkerOptions): Promise<number> {
  const inner = textOption(call, 'store') === undefined && options.store ? options.store : openStore(call, 'write')
  const target =
    call.words[0] === undefined ? undefined : await closing(inner, () => findRun(inner, call.words[0] ?? ''))
  const trees = target === undefined ? undefined : new Set([target.rootId])
  const { store, knownAgents } = scopedStore(inner, trees)
  const runtime = createRuntime({ ...options, store })
  const view = viewFor(runtime, { json: isSet(call, 'json'), env: call.env, hint: 'Ctrl-C stops' })
  const isAsking = !isSet(call, 'json') && InlineAsk.isPossible(call.env)
  const askers = isAsking ? [new InlineAsk({ runtime, view, by: call.env['USER'] ?? 'user' })] : []
  const again = takeUp(file, textOption(call, 'store'))
  const worker = new Worker({
    runtime,
    view,
    knownAgents,
    lastSeqs: lastSeqs(inner, target),
    askers,
    ended: async (run) => asChild(runtime, run, await endOf(runtime, run, again)),
    standstills: { where: storeWords(textOption(call, 'store')), goOn: () => '' },
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
    if (isOpen || target !== undefined) return worker.end()
    view.say(`${nothingOpen(store, again)}
`)
    return EXIT.completed
  } finally {
    await runtime.close()
  }
}

function lastSeqs(store: Store, target: Turn | undefined): ReadonlyMap<Id, number> {
  const open = target === undefined ? openTops(store) : [target]
  return new Map(open.map(({ rootId }) => [rootId, store.lastSeq(rootId)]))
}

/** What was said and done is in the conversation: the agent reads it and goes on from there. */
async function goOn(runtime: Runtime, target: Turn, agents: readonly AnyAgent[]): Promise<Run> {
  const id = shortId(target.id)
  const { status } = target.outcome ?? { status: 'running' }
  const conversation = runtime.store.conversation(target.conversationId)
  if (status !== 'cancelled') throw new CliError(`The run ${id} is over: ${status}. There is nothing to resume.`)
  if (conversation?.type !== 'user')
    throw new CliError(`The run ${id} is a subagent's: only its host can ask it again.`)
  const { name } = conversation.agent
  const agent = agents.find((one) => one.name === name)
  if (agent === undefined) throw new CliError(`The module exports no agent "${oneLine(name)}", whose run ${id} is.`)
  const input = agent.input === null ? GO_ON : await sameInput(agent, target)
  return runtime.run(agent, input as never, { conversationId: conversation.id })
}

/** An agent with a schema takes no other words: it is asked the same once more, after all that was said. */
async function sameInput({ name, input }: AnyAgent, { id, conversationId, input: asked }: Turn): Promise<Json> {
  const checked = await input?.validate(asked)
  if (checked === undefined || checked.ok) return asked
  throw new CliError(
    `The run ${shortId(id)} was cancelled, and the input schema of "${oneLine(name)}" does not take what it was asked a ` +
      `second time (${oneLine(checked.issues.map(({ message }) => message).join('; '))}). Go on in your program: runtime.run(agent, input, ` +
      `{ conversationId: '${conversationId}' }).`,
  )
}

/** Without code nothing can go on: say what is there and what it needs. */
async function explain(call: Call): Promise<number> {
  const store = openStore(call, 'read')
  const found = await closing(store, () => {
    const open = openTops(store)
    const agents = new Set(open.map(({ conversationId }) => store.conversation(conversationId)?.agent.name ?? '?'))
    if (open.length === 0) return nothingOpen(store, takeUp('FILE', textOption(call, 'store')))
    return `${plural(open.length, 'unfinished run')} of ${[...agents].map((name) => `"${oneLine(name)}"`).join(', ')}.`
  })
  await store.close()
  throw new CliError(
    `resume needs the code of your agents: --module FILE, an ES module that exports them. ${found}`,
    EXIT.usage,
  )
}

/** Closes the store when that fails. */
async function closing<T>(store: Store, look: () => T): Promise<T> {
  try {
    return look()
  } catch (error) {
    await store.close()
    throw error
  }
}
