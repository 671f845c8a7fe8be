import path from 'node:path'
import type { AnyAgent, RuntimeOptions } from '../../index.ts'
import { type AgentFile, EMPTY_AGENT_FILE } from '../../recipe/index.ts'
import { type Call, CliError, EXIT, textOption } from '../command.ts'
import { oneLine } from '../terminal/clean.ts'
import { loadModule } from '../worker/load-module.ts'
import { modelFor } from './model-for.ts'

/** An agent written in code, and what its module says of the runtime. */
export interface ModuleAgent {
  readonly file: string
  readonly agent: AnyAgent
  readonly options: RuntimeOptions
  /** The words of the command without those that name the module. */
  readonly words: readonly string[]
}

/** The agent that `--module FILE --agent NAME` means, or a FILE that is a module; undefined where the command names none. */
export async function moduleAgentFor(call: Call): Promise<ModuleAgent | undefined> {
  const named = textOption(call, 'module')
  const [first = '', ...rest] = call.words
  if (named === undefined && !isModule(first)) {
    if (textOption(call, 'agent') === undefined) return undefined
    throw new CliError('--agent is for a module: legate run agents.js --agent NAME.', EXIT.usage)
  }
  const file = named ?? first
  const { agents, ...options } = await loadModule(file)
  const agent = chosen(agents, textOption(call, 'agent'), file)
  const model = await modelOf(agent, options, textOption(call, 'model'))
  const words = named === undefined ? rest : call.words
  return { file, agent, options: { ...options, agents, ...(model === undefined ? {} : { model }) }, words }
}

export function isModule(file: string): boolean {
  return /\.[mc]?[jt]s$/i.test(file)
}

/** What such an agent is asked is found as for a file. */
export function askedAs({ agent: { name, input }, file }: ModuleAgent): AgentFile {
  return { ...EMPTY_AGENT_FILE, name, file: path.resolve(file), input: input === null ? null : {} }
}

function chosen(agents: readonly AnyAgent[], name: string | undefined, file: string): AnyAgent {
  const found = name === undefined ? agents : agents.filter((agent) => agent.name === name)
  const [agent, other] = found
  if (agent !== undefined && other === undefined) return agent
  const names = agents.map((one) => oneLine(one.name)).join(', ')
  const what =
    name === undefined
      ? `${oneLine(file)} exports ${agents.length} agents: say which with --agent`
      : `${oneLine(file)} exports no agent "${oneLine(name)}"`
  throw new CliError(`${what}. There are: ${names}.`, EXIT.usage, { namesHelp: false })
}

/** For an agent that names none and is no code; told before anything is recorded where there is none either. */
async function modelOf(
  { name, model, reply }: AnyAgent,
  options: RuntimeOptions,
  named: string | undefined,
): Promise<string | undefined> {
  if (reply !== null && named === undefined) return undefined
  if (model === null && (named !== undefined || options.model === undefined)) return modelFor(undefined, named)
  if (named === undefined) return undefined
  throw new CliError(`"${oneLine(name)}" has a model in its code: --model is for agents that have none.`, EXIT.usage)
}
