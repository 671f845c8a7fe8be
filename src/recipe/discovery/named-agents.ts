import path from 'node:path'
import { matchName } from '../../grant/match.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import type { SubRecipe } from '../recipe/recipe.ts'
import type { Notice } from '../text/notice.ts'
import { type Definition, discover } from './discover.ts'
import { checkDiscovery, type DiscoveryOptions } from './options.ts'

/** The definitions that a file says it delegates to, as far as they are found: it may start them by their names. */
export async function namedAgents(agent: AgentFile, options: DiscoveryOptions): Promise<readonly SubRecipe[]> {
  const { reaches, subRecipes, file } = agent
  if (reaches.length === 0) return []
  const own = new Set(subRecipes.map(({ name }) => name))
  const found = await definitionsFor(options)
  const isMeant = (one: Definition) => reaches.some((name) => matchName(name, one.name))
  return found.filter((one) => isMeant(one) && one.file !== file && !own.has(one.name)).map(subRecipeOf)
}

/** A warning for each agent that a file names and that is not found. */
export async function missingAgents(agent: AgentFile, options: DiscoveryOptions = {}): Promise<readonly Notice[]> {
  checkDiscovery('missingAgents(agent, options)', options)
  const names = agent.reaches.filter((name) => !name.includes('*'))
  if (names.length === 0) return []
  const known = new Set([...agent.subRecipes, ...(await definitionsFor(options))].map(({ name }) => name))
  return [...new Set(names)].filter((name) => !known.has(name)).map((name) => missing(name, agent.file))
}

async function definitionsFor(options: DiscoveryOptions): Promise<readonly Definition[]> {
  const { definitions } = await discover(options)
  return definitions.filter(({ shadowedBy }) => shadowedBy === null)
}

function missing(name: string, file: string): Notice {
  const message = `the agent \`${name}\` that it delegates to is not found here`
  const hint = 'legate doctor lists what is found. Add its file, or remove its name.'
  return { level: 'warning', code: 'not_found', message, file, line: null, hint }
}

const MOST_CHARS = 160

function subRecipeOf({ name, file, description }: Definition): SubRecipe {
  const line = description.replace(/\s+/g, ' ').trim()
  return {
    name,
    path: file,
    folder: path.dirname(file),
    values: {},
    locked: false,
    sequentialWhenRepeated: false,
    description: line.length <= MOST_CHARS ? line : `${line.slice(0, MOST_CHARS - 1).toWellFormed()}…`,
    line: null,
  }
}
