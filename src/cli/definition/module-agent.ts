import { Console } from 'node:console'
import { statSync } from 'node:fs'
import path, { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type AgentFile, EMPTY_AGENT_FILE } from '../../doors/recipe.ts'
import { type AnyAgent, isAgent, type RuntimeOptions } from '../../index.ts'
import { type Call, CliError, EXIT, textOption } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import { oneLine } from '../terminal/clean.ts'
import { callGrant, ruledModule } from './call-grant.ts'
import { modelOfCommand } from './input.ts'
import { relativePath } from './notices.ts'

/** An agent written in code, with the runtime options of its module. */
export interface ModuleAgent {
  readonly file: string
  readonly agent: AnyAgent
  readonly options: RuntimeOptions
  /** The words of the command except those that name the module. */
  readonly words: readonly string[]
}

/**
 * Finds the agent named by `--module FILE --agent NAME`, or by a FILE that is a module; undefined if the command names
 * none.
 */
export async function moduleAgentFor(call: Call): Promise<ModuleAgent | undefined> {
  const named = textOption(call, 'module')
  const [first = '', ...rest] = call.words
  if (named === undefined && !isModule(first)) {
    if (textOption(call, 'agent') === undefined) return undefined
    throw new CliError(`--agent is for a module: ${legate('run agents.js --agent NAME')}.`, EXIT.usage)
  }
  const file = named ?? first
  const { agents, ...options } = ruledModule(await loadModule(file), callGrant(call))
  const agent = chosen(agents, textOption(call, 'agent'), file)
  const model = await modelOf(agent, options, textOption(call, 'model'))
  const words = named === undefined ? rest : call.words
  return { file, agent, options: { ...options, agents, ...(model === undefined ? {} : { model }) }, words }
}

export function isModule(file: string): boolean {
  return /\.[mc]?[jt]s$/i.test(file)
}

/** Describes an agent in code as an agent file, so that its input is found the same way. */
export function asAgentFile({ agent: { name, input }, file }: ModuleAgent): AgentFile {
  return { ...EMPTY_AGENT_FILE, name, file: path.resolve(file), input: input === null ? null : {} }
}

function chosen(agents: readonly AnyAgent[], name: string | undefined, file: string): AnyAgent {
  const found = name === undefined ? agents : agents.filter((agent) => agent.name === name)
  const [agent, other] = found
  if (agent !== undefined && other === undefined) return agent
  const names = agents.map((one) => oneLine(one.name)).join(', ')
  const what =
    name === undefined
      ? `${oneLine(file)} exports ${agents.length} agents: choose one with --agent`
      : `${oneLine(file)} exports no agent "${oneLine(name)}"`
  throw new CliError(`${what}. There are: ${names}.`, EXIT.usage, { namesHelp: false })
}

/**
 * Chooses a model for an agent that names none and is not code. If there is none either, it throws before anything is
 * recorded.
 */
async function modelOf(
  { name, model, reply }: AnyAgent,
  options: RuntimeOptions,
  named: string | undefined,
): Promise<string | undefined> {
  if (reply !== null && named === undefined) return undefined
  if (model === null && (named !== undefined || options.model === undefined)) return modelOfCommand(undefined, named)
  if (named === undefined) return undefined
  throw new CliError(`"${oneLine(name)}" has a model in its code: --model is for agents that have none.`, EXIT.usage)
}

export type WorkerOptions = RuntimeOptions & { readonly agents: readonly AnyAgent[] }

/** Loads the agents and runtime options of a user's module. Throws a CliError that says what is wrong with it. */
export async function loadModule(file: string): Promise<WorkerOptions> {
  const path = resolve(file)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) throw new CliError(`There is no module ${path}.`, EXIT.usage)
  if (!stat.isFile()) throw new CliError(`${path} is not a file. Name the module that exports your agents.`, EXIT.usage)
  const exported = await load(path)
  const options = optionsIn(exported['default'])
  const agents = unique([
    ...listed(options.agents, path),
    ...agentsIn(exported['default']),
    ...agentsIn(Object.values(exported)),
  ])
  requireOneOfEach(agents, path)
  if (agents.length > 0) return { ...options, agents }
  const names = Object.keys(exported).join(', ') || 'nothing'
  throw new CliError(`${path} exports no agent (it exports ${names}). Export the result of agent({ ... }).`, EXIT.usage)
}

/** Sends the output of a module's own code to stderr: on stdout it would mix with the answer that programs read. */
function printBesideOutput(): void {
  globalThis.console = new Console(process.stderr, process.stderr)
}

async function load(path: string): Promise<Record<string, unknown>> {
  printBesideOutput()
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>
  } catch (error) {
    throw new CliError(troubleOf(error, path), EXIT.usage, { namesHelp: false })
  }
}

/**
 * Describes the error of a module in one line: its message and its place. Most of the stack belongs to us and to Node.
 */
function troubleOf(error: unknown, path: string): string {
  const shown = oneLine(relativePath(path))
  if (!(error instanceof Error)) return `Cannot load ${shown}: it threw ${oneLine(String(error))}.`
  if ((error as NodeJS.ErrnoException).code === 'ERR_UNKNOWN_FILE_EXTENSION' && /\.[mc]?tsx?$/.test(path)) {
    return `Node ${process.version} cannot load ${oneLine(path)}: use Node 22.18 or newer, or compile it to a .mjs file.`
  }
  const place = placeIn(error.stack ?? '')
  const where = place === undefined ? '' : ` (${oneLine(place)})`
  return `Cannot load ${shown}: ${oneLine(`${error.name}: ${error.message}`)}${where}`
}

/** Finds the first line of the stack outside Node, as `file:line`. */
function placeIn(text: string): string | undefined {
  const [, file, line] = /(?:^|\(|at )((?:file:\/\/)?\/[^\n()]*?):(\d+)(?::\d+)?\)?$/m.exec(text) ?? []
  if (file === undefined) return undefined
  return `${relativePath(file.startsWith('file:') ? fileURLToPath(file) : file)}:${line}`
}

/** Reads the options of createRuntime if the default export holds them. */
function optionsIn(value: unknown): RuntimeOptions {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject && !isAgent(value) && 'agents' in value ? (value as RuntimeOptions) : {}
}

function listed(agents: unknown, path: string): AnyAgent[] {
  if (agents === undefined) return []
  if (Array.isArray(agents) && agents.every(isAgent)) return agents
  const what = Array.isArray(agents)
    ? `number ${agents.findIndex((one) => !isAgent(one))} is not one`
    : 'it is not a list'
  throw new CliError(
    `The default export of ${path} has \`agents\`, which must be a list of agents: ${what}.`,
    EXIT.usage,
  )
}

/** Refuses two agents of one name: a run stores only the name, so the right one could not be found again. */
function requireOneOfEach(agents: readonly AnyAgent[], path: string): void {
  const names = agents.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice === undefined) return
  throw new CliError(`${path} exports two agents of the name "${oneLine(twice)}". Give one another name.`, EXIT.usage)
}

function agentsIn(value: unknown): AnyAgent[] {
  if (isAgent(value)) return [value]
  return Array.isArray(value) ? value.filter(isAgent) : []
}

function unique(agents: readonly AnyAgent[]): AnyAgent[] {
  return [...new Set(agents)]
}
