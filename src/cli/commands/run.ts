import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentFile } from '../../doors/recipe.ts'
import { diskFiles } from '../../doors/tools.ts'
import { type AnyAgent, createRuntime, type Id, type Json, type RuntimeOptions } from '../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../command/command.ts'
import { legate, shellWord } from '../command/next-command.ts'
import { callGrant } from '../definition/call-grant.ts'
import { inputFor, modelOfCommand, parametersOf, provideSecrets } from '../definition/input.ts'
import { agentOf, compatOf, loadFor, refuseFileOptions, tellsProject } from '../definition/load.ts'
import { asAgentFile, type ModuleAgent, moduleAgentFor } from '../definition/module-agent.ts'
import { printNotices } from '../definition/notices.ts'
import { clientFor } from '../store/open-desk.ts'
import { storeOf } from '../store/open-store.ts'
import { canAsk } from '../terminal/ask-line.ts'
import { oneLine } from '../terminal/clean.ts'
import { continueWithoutReader, writeExactly } from '../terminal/output.ts'
import { viewFor } from '../watch/view.ts'
import { FollowedRuns } from '../worker/followed-runs.ts'
import { respondersFor } from '../worker/inline-ask.ts'
import { scopedStore } from '../worker/scoped-store.ts'
import { type ContinueCommand, continueCommand, lastAnswer, printedAnswer, reportFailure } from '../worker/verdict.ts'
import { Worker } from '../worker/worker.ts'

/** Runs a recipe, an agent file or an agent of a module, shows its progress, and prints the answer. */
export async function run(call: Call): Promise<number> {
  const client = clientFor(call)
  if (client !== undefined) return (await import('./run-on-server.ts')).runOnServer(call, client)
  const coded = await moduleAgentFor(call)
  return coded === undefined ? runFile(call) : runCoded(call, coded)
}

async function runFile(call: Call): Promise<number> {
  if (call.words.length === 0) throw new CliError(`missing FILE: ${legate('run FILE [TEXT]')}.`, EXIT.usage)
  const compat = compatOf(call)
  const grant = callGrant(call)
  const definition = await loadFor(call)
  printNotices(definition, call.env)
  // At a terminal the model is checked before the person types a prompt in vain; elsewhere a missing prompt is reported
  // first.
  const said = canAsk() ? undefined : await inputFor(definition, call)
  const model = await modelOfCommand(definition, textOption(call, 'model'))
  const asked = { ...grant, named: definition }
  const agent = await agentOf(definition, { model, ...compat, grant: asked, projectFiles: tellsProject(call) })
  await provideSecrets(agent, call.env)
  const input = said === undefined ? await inputFor(definition, call) : said
  const options = { files: diskFiles({ workspace: process.cwd() }) }
  const prompt = input === definition.prompt ? promptLine(definition, call) : null
  return work(call, { agent, input, options, prompt, again: continueCommand() })
}

/** Names the recipe instead of printing its prompt, which can be long; `explain` shows all of it. */
function promptLine({ title, name }: AgentFile, call: Call): string {
  const values = Array.from(parametersOf(call), ([key, value]) => `${key}=${value}`)
  const given = values.length === 0 ? '' : ` with ${values.join(', ')}`
  return `the prompt of ${JSON.stringify(title ?? name)}${given}`
}

async function runCoded(call: Call, coded: ModuleAgent): Promise<number> {
  refuseFileOptions(call)
  const { agent, options, file, words } = coded
  if (words.length > 1)
    throw new CliError(`too many arguments: ${legate(`run ${oneLine(shellWord(file))} TEXT`)}.`, EXIT.usage)
  const input = await inputFor(asAgentFile(coded), { ...call, words: [file, ...words] })
  return work(call, { agent, input, options, prompt: null, again: continueCommand(file) })
}

/** A run that ended while the runtime closed has told so within this time. */
const SETTLED_MS = 50

interface RunJob {
  readonly agent: AnyAgent
  readonly input: Json
  readonly options: RuntimeOptions
  /** The line shown in place of the input. */
  readonly prompt: string | null
  readonly again: ContinueCommand
}

async function work(call: Call, { agent, input, options, prompt, again }: RunJob): Promise<number> {
  const trees = new Set<Id>()
  const { store, knownAgents } = scopedStore(storeOf(call, options.store), trees)
  const runtime = createRuntime({ ...options, store })
  const isJson = isSet(call, 'json')
  const view = viewFor(runtime, {
    json: isJson,
    env: call.env,
    hint: 'Ctrl-C stops',
    isBeside: true,
    isAllowed: isSet(call, 'yes'),
    prompt,
  })
  const worker = new Worker({
    desk: runtime,
    view,
    knownAgents,
    lastSeqs: new Map(),
    askers: respondersFor(call, runtime, view),
    ended: (one) => reportFailure(runtime, one, again),
    goOn: again,
  })
  continueWithoutReader()
  try {
    const started = runtime.run(agent, input as never)
    trees.add(started.conversationId)
    const runs = await FollowedRuns.find(runtime, trees)
    await runs.follow(worker, [started])
    const code = worker.end()
    const answer = await lastAnswer(runtime, started)
    if (!isJson) await writeExactly(answer)
    if (!isJson && answer === '' && code === EXIT.terminated) {
      // Closing lets the running step finish: if that ends the run, its answer is printed too.
      const late = started.result.then(printedAnswer, () => '')
      await runtime.close()
      await writeExactly(await Promise.race([late, sleep(SETTLED_MS, '')]))
    }
    // The end of a background child does not change the exit code of its host.
    return code === EXIT.other && answer !== '' ? EXIT.completed : code
  } finally {
    await runtime.close()
  }
}
