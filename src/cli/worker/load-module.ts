import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type AnyAgent, isAgent, type RuntimeOptions } from '../../index.ts'
import { CliError, EXIT } from '../command.ts'

export type WorkerOptions = RuntimeOptions & { readonly agents: readonly AnyAgent[] }

/** The agents of a user's module, and what else it says about the runtime. Throws CliError with what is wrong with it. */
export async function loadModule(file: string): Promise<WorkerOptions> {
  const path = resolve(file)
  if (!existsSync(path)) throw new CliError(`There is no module ${path}.`, EXIT.usage)
  const exported = await load(path)
  const options = optionsIn(exported['default'])
  const agents = unique([
    ...(options.agents ?? []),
    ...agentsIn(exported['default']),
    ...agentsIn(Object.values(exported)),
  ])
  if (agents.length > 0) return { ...options, agents }
  const names = Object.keys(exported).join(', ') || 'nothing'
  throw new CliError(`${path} exports no agent (it exports ${names}). Export what agent({ ... }) gave.`, EXIT.usage)
}

async function load(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>
  } catch (error) {
    const { code, message, stack } = error as NodeJS.ErrnoException
    if (code === 'ERR_UNKNOWN_FILE_EXTENSION' && /\.[mc]?tsx?$/.test(path)) {
      throw new CliError(`Node ${process.version} cannot load ${path}: compile it, or use Node 22.18 or newer.`)
    }
    throw new CliError(`Cannot load ${path}: ${error instanceof Error ? (stack ?? message) : String(error)}`)
  }
}

/** The options of createRuntime, where the default export is that. */
function optionsIn(value: unknown): RuntimeOptions {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject && !isAgent(value) && 'agents' in value ? (value as RuntimeOptions) : {}
}

function agentsIn(value: unknown): AnyAgent[] {
  if (isAgent(value)) return [value]
  return Array.isArray(value) ? value.filter(isAgent) : []
}

function unique(agents: readonly AnyAgent[]): AnyAgent[] {
  return [...new Set(agents)]
}
