import { type AnyAgent, createRuntime, diskFiles, type Id, type Json } from '../../index.ts'
import { type Call, EXIT, isSet, textOption } from '../command.ts'
import { agentOf } from '../definition/agent-of.ts'
import { inputFor } from '../definition/input.ts'
import { loadFor } from '../definition/load.ts'
import { modelFor } from '../definition/model-for.ts'
import { provideSecrets } from '../definition/secrets.ts'
import { tellNotices } from '../definition/tell-notices.ts'
import { shortId } from '../find-run.ts'
import { openOrMakeStore } from '../open-store.ts'
import { canAsk } from '../terminal/ask-line.ts'
import { goOnWithoutReader, write } from '../terminal/output.ts'
import { viewFor } from '../watch/view.ts'
import { askersFor } from '../worker/askers-for.ts'
import { storeWords } from '../worker/cancelled-runs.ts'
import { lastAnswer } from '../worker/last-answer.ts'
import { Tops } from '../worker/open-tops.ts'
import { scopedStore } from '../worker/scoped-store.ts'
import { type Standstills, wrongEnd } from '../worker/verdict.ts'
import { Worker } from '../worker/worker.ts'

/** Does what a file says, shows it meanwhile, and prints the answer. */
export async function run(call: Call): Promise<number> {
  const definition = await loadFor(call)
  tellNotices(definition, call.env)
  // A person types in vain where there is no model; where nobody does, what was not said is told first.
  const said = canAsk() ? undefined : await inputFor(definition, call)
  const model = await modelFor(definition, textOption(call, 'model'))
  const agent = await agentOf(definition, { model })
  await provideSecrets(agent, call.env)
  return work(call, agent, said === undefined ? await inputFor(definition, call) : said)
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
    await new Tops(runtime, trees).follow(worker, [started])
    const code = worker.end()
    const answer = await lastAnswer(runtime, started)
    if (!isJson) await write(answer)
    // How a child in the background ended is its host's affair.
    return code === EXIT.other && answer !== '' ? EXIT.completed : code
  } finally {
    await runtime.close()
  }
}

function goOnWith(call: Call): Standstills {
  const where = storeWords(textOption(call, 'store'))
  return { where, goOn: (runId) => `legate resume ${shortId(runId)}${where}` }
}
