import {
  type AnyAgent,
  createRuntime,
  diskFiles,
  type Id,
  type Json,
  type Outcome,
  type Run,
  type Runtime,
} from '../../index.ts'
import { type Call, EXIT, isSet, textOption } from '../command.ts'
import { agentOf } from '../definition/agent-of.ts'
import { checkModel } from '../definition/check-model.ts'
import { inputFor } from '../definition/input.ts'
import { loadFor } from '../definition/load.ts'
import { tellNotices } from '../definition/tell-notices.ts'
import { shortId } from '../find-run.ts'
import { openOrMakeStore } from '../open-store.ts'
import { cleanText } from '../terminal/clean.ts'
import { exitNow, goOnWithoutReader, write } from '../terminal/output.ts'
import { type View, viewFor } from '../watch/view.ts'
import type { Asker } from '../worker/asker.ts'
import { storeWords } from '../worker/cancelled-runs.ts'
import { InlineAsk } from '../worker/inline-ask.ts'
import { SayYes } from '../worker/say-yes.ts'
import { scopedStore } from '../worker/scoped-store.ts'
import { type Standstills, wrongEnd } from '../worker/verdict.ts'
import { Worker } from '../worker/worker.ts'

/** Does what a file says, shows it meanwhile, and prints the answer. */
export async function run(call: Call): Promise<number> {
  const definition = await loadFor(call)
  tellNotices(definition, call.env)
  const agent = agentOf(definition, textOption(call, 'model'))
  checkModel(agent)
  return exitNow(await work(call, agent, await inputFor(definition, call)))
}

async function work(call: Call, agent: AnyAgent, input: Json): Promise<number> {
  const trees = new Set<Id>()
  const { store, knownAgents } = scopedStore(openOrMakeStore(call), trees)
  const runtime = createRuntime({ store, files: diskFiles({ workspace: process.cwd() }) })
  const isJson = isSet(call, 'json')
  const view = viewFor(runtime, { json: isJson, env: call.env, hint: 'Ctrl-C stops', isBeside: true })
  const again = goOnWith(call)
  const worker = new Worker({
    runtime,
    view,
    knownAgents,
    lastSeqs: new Map(),
    askers: askersFor(call, runtime, view),
    ended: (one) => wrongEnd(runtime, one, again.goOn),
    standstills: again,
  })
  goOnWithoutReader()
  try {
    const started = runtime.run(agent, input as never)
    trees.add(started.conversationId)
    await worker.follow([started])
    for (let left = leftOpen(runtime, started); left.length > 0; left = leftOpen(runtime, started)) {
      const before = left.map(({ id }) => id)
      await worker.follow(left)
      if (leftOpen(runtime, started).every(({ id }) => before.includes(id))) break
    }
    const code = worker.end()
    const outcome = lastOutcome(runtime, started)
    if (outcome !== undefined && !isJson) await write(answerText(await outcome))
    // How a child in the background ended is its host's affair.
    return code === EXIT.other && outcome !== undefined ? EXIT.completed : code
  } finally {
    await runtime.close()
  }
}

/** Whoever can answer here: a person at the terminal, or the one who said yes beforehand. */
export function askersFor(call: Call, runtime: Runtime, view: View): readonly Asker[] {
  const by = call.env['USER'] ?? 'user'
  const isInline = !isSet(call, 'json') && InlineAsk.isPossible(call.env)
  return [
    ...(isSet(call, 'yes') ? [new SayYes({ runtime, view, by })] : []),
    ...(isInline ? [new InlineAsk({ runtime, view, by })] : []),
  ]
}

function goOnWith(call: Call): Standstills {
  const where = storeWords(textOption(call, 'store'))
  return { where, goOn: (runId) => `legate resume ${shortId(runId)}${where}` }
}

/** What a run has left behind when it ended: children in the background, and turns that wait in its conversation. */
function leftOpen(runtime: Runtime, { conversationId }: Run): Run[] {
  const { store } = runtime
  const turns = store.turnsOf(conversationId, { limit: 1_000 })
  const children = turns.filter(({ state }) => state === 'ended').flatMap(({ id }) => store.openLinks(id))
  const open = turns.filter(({ state }) => state !== 'ended')
  return [...open.map(({ id }) => id), ...children.map(({ id }) => id)].map((id) => runtime.attach(id))
}

/** Of the last turn that its conversation has had, where that one completed. */
function lastOutcome(runtime: Runtime, { conversationId }: Run): Promise<Outcome> | undefined {
  const [last] = runtime.store.turnsOf(conversationId, { limit: 1 })
  if (last?.outcome?.status !== 'completed') return undefined
  return runtime.attach(last.id).result as Promise<Outcome>
}

function answerText({ text, output }: Outcome): string {
  const words = text.trim() === '' && output !== null ? JSON.stringify(output) : text
  const shown = process.stdout.isTTY ? `\n${cleanText(words)}` : words
  return shown.endsWith('\n') ? shown : `${shown}\n`
}
