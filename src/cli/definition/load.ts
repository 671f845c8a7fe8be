import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import {
  type AgentFile,
  discover,
  findDefinition,
  loadDefinition,
  missingAgents,
  noticesOf,
  projectFiles,
  type RecipeAgentOptions,
  readDefinition,
  recipeAgent,
} from '../../doors/recipe.ts'
import type { AnyAgent } from '../../index.ts'
import { type Call, CliError, EXIT, isSet, listOption, textOption } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import { askLine, canAsk } from '../terminal/ask-line.ts'
import { oneLine } from '../terminal/clean.ts'
import { type CallGrant, rootGrant } from './call-grant.ts'
import { checkKeys, missingInputError, missingOf, parameterQuestion, parametersOf } from './input.ts'
import { isModule } from './module-agent.ts'
import { asUsageError, refusal, relativePath } from './notices.ts'

/**
 * Loads the definition that the first word of a command names, with a value for every parameter: from `--param`, its
 * default, or the person at the terminal. Throws a CliError that says what is wrong with the file, where, and what to
 * do.
 */
export async function loadFor(call: Call): Promise<AgentFile> {
  const given = parametersOf(call)
  const file = await definitionFile(call.words[0] ?? '', call.env)
  try {
    const { parameters } = await readDefinition(file)
    checkKeys(given, parameters)
    const missing = missingOf(given, parameters)
    if (missing.length > 0 && !canAsk()) throw missingInputError(relativePath(file), missing)
    const values = new Map(given)
    for (const parameter of missing) values.set(parameter.key, await askLine(parameterQuestion(parameter)))
    const definition = await loadDefinition(file, { parameters: Object.fromEntries(values) })
    const agents = await missingAgents(definition, { env: call.env })
    const project = tellsProject(call) ? (await projectFiles(definition)).notices : []
    return { ...definition, notices: [...definition.notices, ...agents, ...project] }
  } catch (error) {
    throw asUsageError(error)
  }
}

/** Tells whether the agents of files are told what AGENTS.md, CLAUDE.md and their like say. */
export function tellsProject(call: Call): boolean {
  return !isSet(call, 'no-project-files')
}

/** Finds the file that a word means: a path, or the name of a definition found from this folder, whatever folder has that name. */
export async function definitionFile(word: string, env: NodeJS.ProcessEnv): Promise<string> {
  if (isPath(word) || (existsSync(word) && !statSync(word).isDirectory())) return readable(word)
  const found = await discover({ env })
  try {
    return findDefinition(word, found).file
  } catch (error) {
    const [notice] = noticesOf(error)
    if (notice?.code !== 'not_found') throw asUsageError(error)
    if (existsSync(word)) return word
    const broken = found.notices.find(({ level, file }) => level === 'error' && path.parse(file).name === word)
    if (broken !== undefined) throw refusal([broken])
    const near = /Did you mean: .*\?/.exec(notice.message)?.[0] ?? 'legate doctor lists the definitions it finds.'
    const message = `There is no file "${oneLine(word)}" here, and no recipe or agent of that name. ${oneLine(near)}`
    throw new CliError(message, EXIT.usage, { namesHelp: false })
  }
}

/** Refuses a file whose extension shows that it is not a recipe. */
function readable(file: string): string {
  if (isModule(file)) {
    throw new CliError(
      `${oneLine(file)} is a module: ${legate('run')} and ${legate('chat')} run its agents.`,
      EXIT.usage,
    )
  }
  const ending = path.extname(file)
  if (ending === '' || READ.test(file) || !existsSync(file) || statSync(file).isDirectory()) return file
  throw new CliError(
    `${oneLine(file)} is neither a recipe (.yaml, .json), an agent file (.md, .toml) nor a module (.js, .mjs, .ts).`,
    EXIT.usage,
    { namesHelp: false },
  )
}

const READ = /\.(?:ya?ml|json|md|markdown|toml)$/i

function isPath(word: string): boolean {
  return /[/\\]/.test(word) || READ.test(word)
}

/** Builds the agent of a definition, in this folder. `model` replaces the model that the file names. */
export async function agentOf(
  definition: AgentFile,
  {
    model,
    subagents,
    memory,
    projectFiles: tellsFiles = false,
    grant = {},
  }: Omit<RecipeAgentOptions, 'grant'> & { readonly grant?: CallGrant } = {},
): Promise<AnyAgent> {
  try {
    return (await recipeAgent(definition, {
      grant: rootGrant(grant),
      ...(model === undefined ? {} : { model }),
      ...(subagents === undefined ? {} : { subagents }),
      ...(memory === undefined ? {} : { memory }),
      projectFiles: tellsFiles,
    })) as AnyAgent
  } catch (error) {
    throw asUsageError(error)
  }
}

/** Reads `--compat`: under which names a file's agents start subagents. */
export function compatOf(call: Call): Pick<RecipeAgentOptions, 'subagents'> {
  const compat = textOption(call, 'compat')
  if (compat === undefined) return {}
  if (compat === 'aster') return { subagents: { compat } }
  throw new CliError(`There is no --compat "${oneLine(compat)}". Use aster.`, EXIT.usage)
}

/** Refuses options of files for a module, whose code already decides. */
export function refuseFileOptions(call: Call): void {
  if (listOption(call, 'param').length > 0)
    throw new CliError('--param is for a recipe or agent file; an agent in code takes its input.', EXIT.usage)
  if (textOption(call, 'compat') === undefined) return
  throw new CliError(
    "--compat is for a recipe or agent file; in code it is openSubagents({ compat: 'aster' }).",
    EXIT.usage,
  )
}
