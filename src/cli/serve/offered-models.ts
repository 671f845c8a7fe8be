import type { AnyAgent } from '../../index.ts'
import { CliError } from '../command/command.ts'
import { modelOfCommand } from '../definition/input.ts'
import type { WorkerOptions } from '../definition/module-agent.ts'
import { oneLine } from '../terminal/clean.ts'

/** Finds the model of `--model` for those agents of modules that name none; undefined where nobody needs it. */
export async function modelForCode(coded: readonly AnyAgent[], named: string | undefined): Promise<string | undefined> {
  if (named === undefined || coded.every(({ model }) => model !== null)) return undefined
  return modelOfCommand(undefined, named)
}

/** Says which agents cannot start because nobody named a model for them, and why; undefined where there are none. */
export async function agentsWithoutModel({ agents, model }: WorkerOptions): Promise<string | undefined> {
  const silent = model === undefined ? agents.filter((agent) => agent.model === null && agent.reply === null) : []
  if (silent.length === 0) return undefined
  try {
    await modelOfCommand(undefined, undefined)
    return undefined
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const names = silent.map(({ name }) => oneLine(name)).join(', ')
    return `No model for ${names}: a start is refused. ${error.message}`
  }
}
