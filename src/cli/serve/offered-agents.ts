import { diskFiles } from '../../doors/tools.ts'
import type { AnyAgent, Runtime, RuntimeOptions } from '../../index.ts'
import { type Call, CliError, EXIT, textOption } from '../command/command.ts'
import { type CallGrant, callGrant, ruledModule } from '../definition/call-grant.ts'
import { modelOfCommand, provideSecrets } from '../definition/input.ts'
import { agentOf, loadFor, refuseFileOptions, tellsProject } from '../definition/load.ts'
import { isModule, loadModule, type WorkerOptions } from '../definition/module-agent.ts'
import { ASKED_HERE, printNotices } from '../definition/notices.ts'
import { oneLine } from '../terminal/clean.ts'
import { modelForCode } from './offered-models.ts'

/**
 * Loads everything that a server offers: recipe and agent files, and the agents of modules with their options. A program starts
 * such a command, so no file decides what runs without asking.
 */
export async function loadOffered(call: Call): Promise<WorkerOptions> {
  const named = textOption(call, 'module')
  const files = [...call.words, ...(named === undefined ? [] : [named])]
  const modules: WorkerOptions[] = []
  const agents: AnyAgent[] = []
  const isCoded = (file: string) => file === named || isModule(file)
  if (files.every(isCoded)) refuseFileOptions(call)
  const grant = callGrant(call)
  for (const file of files) {
    if (isCoded(file)) modules.push(await loadModule(file))
    else agents.push(await agentOfFile({ ...call, words: [file] }, grant))
  }
  const { agents: coded, ...options } = joined(modules, grant)
  requireOneOfEach([...coded, ...agents])
  const model = await modelForCode(coded, textOption(call, 'model'))
  return {
    ...options,
    ...(model === undefined ? {} : { model }),
    files: filesFor(call, options),
    agents: [...coded, ...agents],
  }
}

/** The files of the module, or the working folder: `--files` says whose it is. */
function filesFor(call: Call, { files }: RuntimeOptions): NonNullable<RuntimeOptions['files']> {
  const owners = ownersOf(call, 'files')
  if (files === undefined) return diskFiles({ workspace: process.cwd(), ...(owners === undefined ? {} : { owners }) })
  if (owners === undefined) return files
  const message = `The module makes its own files: say it there, with diskFiles({ owners: '${owners}' }).`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}

/** Reads `--files` or `--memory`: whether owners share what agents keep there. */
function ownersOf(call: Call, name: 'files' | 'memory'): 'own' | 'shared' | undefined {
  const said = textOption(call, name)
  if (said === undefined || said === 'own' || said === 'shared') return said
  throw new CliError(`--${name} is own or shared, not "${oneLine(said)}".`, EXIT.usage)
}

/** Says which agents nobody but the person at this machine can start, and what to choose between; undefined where there are none. */
export async function undecidedAgents(runtime: Runtime): Promise<string | undefined> {
  const names = (await runtime.agents()).filter(({ files }) => files === 'undecided').map(({ name }) => oneLine(name))
  if (names.length === 0) return undefined
  return (
    `Only you can start ${names.join(', ')}: nobody has said whose files other owners have. --files own gives each owner files ` +
    `of its own, and --files shared gives all of them this folder. A module that makes its own files says it there.`
  )
}

async function agentOfFile(call: Call, grant: CallGrant): Promise<AnyAgent> {
  const definition = await loadFor(call)
  printNotices(definition, call.env, ASKED_HERE)
  const model = await modelOfCommand(definition, textOption(call, 'model'))
  const owners = ownersOf(call, 'memory')
  const memory = owners === undefined ? {} : { memory: { owners } }
  const agent = await agentOf(definition, { model, grant, ...memory, projectFiles: tellsProject(call) })
  await provideSecrets(agent, call.env)
  return agent
}

/**
 * Joins the agents of several modules, under the rules of the command line. Only one of them may have options of createRuntime: two
 * would have to be guessed.
 */
function joined(modules: readonly WorkerOptions[], grant: CallGrant): WorkerOptions {
  if (modules.length === 0) return { agents: [] }
  const parts = modules.map(({ agents, ...options }) => ({ agents, options }))
  const [first, second] = parts.filter(({ options }) => Object.keys(options).length > 0)
  if (second !== undefined) {
    const message =
      'Two of the modules export options of createRuntime. A server has one runtime: put them in one module.'
    throw new CliError(message, EXIT.usage, { namesHelp: false })
  }
  return ruledModule({ ...first?.options, agents: parts.flatMap(({ agents }) => agents) }, grant)
}

function requireOneOfEach(agents: readonly AnyAgent[]): void {
  const names = agents.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice === undefined) return
  const message = `Two of the agents are called "${oneLine(twice)}", and callers start agents by name. Rename one.`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}
