import { DefinitionError } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import { flag, type OptionRules, readOptions, text } from '../../core/base/options.ts'
import { matchName } from '../../core/grant/match.ts'
import { sourceName } from '../../core/tool/source.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { AgentFileWriter, modelParts } from '../agent-file/agent-file-writer.ts'
import type { ExtensionConfig, Recipe } from '../agent-file/recipe.ts'
import { READ } from '../agent-file/tool-words.ts'
import type { AgentDialect } from '../dialects/dialect.ts'
import { agentDialect, DIALECTS } from '../dialects/index.ts'
import { parseAgentFile } from '../dialects/load-agent-file.ts'
import { agentFileOfRecipe } from '../discovery/load-definition.ts'
import { isBuiltinToolkit, toolNamesOf } from '../extension/builtin-toolkit.ts'
import { isBuiltIn } from '../extension/extension-sources.ts'
import { type Notice, refuseAll } from '../text/notice.ts'
import { writeYaml } from '../text/yaml.ts'
import { findLosses } from './losses.ts'
import { recipeFileName, writeRecipe } from './write-recipe.ts'

export interface ConvertOptions {
  /** The folder of the new recipe: paths are written relative to it. */
  readonly folder?: string
  /** Writes what the dialect can express, with a warning for each loss. */
  readonly lossy?: boolean
}

const OPTIONS: OptionRules<ConvertOptions> = { folder: text, lossy: flag }

export interface ConvertedFile {
  readonly text: string
  /** Where programs look for such a file, relative to the project folder. */
  readonly path: string
  /** The losses, if they are allowed. */
  readonly notices: readonly Notice[]
}

/**
 * Converts an agent to a file of another dialect, then reads the text again and compares. An agent that the dialect
 * cannot express completely, or that could do more than before, throws a RecipeError that lists why, unless `lossy` is
 * set.
 */
export async function convert(given: AgentFile, dialect: string, options: ConvertOptions = {}): Promise<ConvertedFile> {
  readOptions('convert(file, dialect, options)', options, OPTIONS)
  const agent = dialect === 'recipe' ? given : withListedTools(given)
  const { text, path, again } = await written(agent, dialect, options.folder)
  const level = options.lossy === true ? 'warning' : 'error'
  const losses = findLosses(agent, again).map((loss) => `${loss} cannot be said in the dialect ${dialect}`)
  const notices = losses.map((message, at) => noticeOf(message, level, agent, at === losses.length - 1))
  if (level === 'error' && notices.length > 0) throw refuseAll(notices)
  return { text, path, notices: [...notices, ...leftOut(agent, dialect)] }
}

/** Reports keys without a meaning here: they stay in their own dialect only. */
function leftOut(agent: AgentFile, dialect: string): readonly Notice[] {
  if (agent.dialect === dialect) return []
  return Object.keys(agent.properties).map((key) => noticeOf(`\`${key}\` is left out`, 'note', agent))
}

interface WrittenFile {
  readonly text: string
  readonly path: string
  /** The agent as read back from the text. */
  readonly again: AgentFile
}

async function written(agent: AgentFile, name: string, folder: string | undefined): Promise<WrittenFile> {
  if (name === 'recipe') {
    const recipe = recipeOf(agent)
    const path = `.goose/recipes/${recipeFileName(agent.name)}`
    const text = await writeRecipe(agent.dialect === 'recipe' ? recipe : withoutTags(recipe), folder)
    return { text, path, again: agentFileOfRecipe({ recipe, includes: [], notices: [] }) }
  }
  const dialect = agentDialect(name)
  if (dialect === undefined) {
    throw new DefinitionError('definition', `There is no dialect "${name}". There are ${DIALECTS.join(', ')}.`)
  }
  const needsWords = agent.description === '' && dialect.isDescribed !== false
  const writing = new AgentFileWriter(needsWords ? { ...agent, description: agent.name } : agent, dialect)
  const fields = { ...dialect.write(writing), ...(agent.dialect === name ? agent.properties : {}) }
  const path = `${dialect.place}/${fileName(agent.name)}${dialect.ending}`
  const text = await (dialect.ending === '.toml' ? tomlText : markdownText)(fields, writing.body())
  return { text, path, again: await readAgain(text, path, dialect) }
}

async function readAgain(text: string, path: string, { name }: AgentDialect): Promise<AgentFile> {
  const again = await parseAgentFile(text, `/${path}`, { dialect: name, mode: 'lenient' })
  if (again !== undefined) return again
  throw new DefinitionError('definition', 'An agent needs a name to be written as a file.')
}

type Fields = { readonly [key: string]: Json | undefined }

async function markdownText(fields: Fields, body: string): Promise<string> {
  return `---\n${await writeYaml(fields)}---\n\n${body}\n`
}

/** Writes TOML, where tables come last. */
async function tomlText(fields: Fields, body: string): Promise<string> {
  const { stringify } = await import('smol-toml')
  const known = Object.entries(fields).filter((entry): entry is [string, Json] => entry[1] != null)
  const isTable = ([, value]: [string, Json]) => typeof value === 'object' && !Array.isArray(value)
  const plain = stringify(Object.fromEntries(known.filter((entry) => !isTable(entry)))).trimEnd()
  const tables = known.filter(isTable)
  const rest = tables.length === 0 ? '' : `\n${stringify(Object.fromEntries(tables)).trimEnd()}\n`
  return `${plain}\ndeveloper_instructions = ${tomlBlock(body)}\n${rest}`
}

/** Writes a text of several lines as a block. */
function tomlBlock(text: string): string {
  const escaped = text
    .replaceAll('\\', '\\\\')
    .replaceAll('"""', '""\\"')
    .replace(/[^\P{Cc}\n\t]/gu, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `"""\n${escaped}\n"""`
}

function fileName(name: string): string {
  return name.replace(/[^\p{L}\p{N}._ -]/gu, '-')
}

function recipeOf(agent: AgentFile): Recipe {
  return {
    file: agent.file,
    version: '1.0.0',
    title: agent.title ?? agent.name,
    description: agent.description,
    instructions: agent.instructions === '' ? null : agent.instructions,
    prompt: agent.prompt,
    ...kept(agent),
    parameters: agent.parameters,
    extensions: agent.extensions?.filter(({ type, name }) => type !== 'named' || isBuiltinToolkit(name)) ?? null,
    settings: {
      ...modelParts(agent, 'recipe'),
      temperature: agent.settings.temperature ?? null,
      maxTurns: agent.budget?.modelCalls ?? null,
    },
    response: agent.output === null ? null : { jsonSchema: agent.output },
    subRecipes: agent.subRecipes,
    retry: agent.retry,
  }
}

type KeptFields = Pick<Recipe, 'author' | 'activities' | 'grant' | 'budget' | 'neverAsks' | 'isDisabled'>

/** Keeps the fields that only recipes have, and those that other programs do not obey if they were in a recipe already. */
function kept(agent: AgentFile): KeptFields {
  if (agent.dialect !== 'recipe') {
    return { author: null, activities: [], grant: null, budget: null, neverAsks: false, isDisabled: false }
  }
  const { properties, grant, budget, neverAsks, isDisabled } = agent
  const { author = null, activities = [] } = properties
  const own = { author, activities } as Pick<Recipe, 'author' | 'activities'>
  return { ...own, grant, budget: onlyTurns(budget) ? null : budget, neverAsks, isDisabled }
}

/** Tells whether a budget is no more than `max_turns`. */
function onlyTurns(budget: AgentFile['budget']): boolean {
  return Object.keys(budget ?? {}).every((key) => key === 'modelCalls')
}

/** Escapes template tags, because the texts of a recipe are templates and those of other files are not. */
function withoutTags<T>(value: T): T {
  if (typeof value === 'string') return (TAG.test(value) ? untagged(value) : value) as T
  if (Array.isArray(value)) return value.map((item) => withoutTags(item)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutTags(item)])) as T
}

const TAG = /\{[{%#]/

function untagged(text: string): string {
  if (!/endraw/.test(text)) return `{% raw %}${text}{% endraw %}`
  return text.replaceAll(/\{[{%#]/g, (mark) => `{{ "${mark}" }}`)
}

function noticeOf(message: string, level: Notice['level'], agent: AgentFile, isLast: boolean = false): Notice {
  const hint = level === 'error' && isLast ? 'Use --lossy, or { lossy: true } in code, to write the rest.' : null
  return { level, code: 'lost', message, file: agent.file, line: null, hint }
}

/**
 * Adapts a recipe for an agent file. A recipe has only the extensions it lists, while an agent file adds its servers to
 * its host's tools; so the tools of these extensions become its list of tools.
 */
function withListedTools(agent: AgentFile): AgentFile {
  const { dialect, extensions } = agent
  if (dialect !== 'recipe' || extensions === null) return agent
  const others = extensions.filter((extension) => toolsOf(extension) === undefined || isServer(extension))
  const named = extensions.flatMap((extension) => toolsOf(extension) ?? [])
  // Programs have one word for reading. An agent that reads and lists files learns nothing more from the other tools of it.
  const readers = named.includes('read_text_file') && named.includes('list_directory') ? READ : []
  const allow = [...new Set([...named, ...readers])]
  return { ...agent, extensions: others.length === 0 ? null : others, tools: { ...agent.tools, allow } }
}

/** The tools of an extension; undefined if unknown here. */
function toolsOf(extension: ExtensionConfig): readonly string[] | undefined {
  const { type, name, availableTools } = extension
  if (isServer(extension)) {
    const prefix = `${sourceName(name)}__`
    return availableTools.length === 0 ? [`${prefix}*`] : availableTools.map((tool) => `${prefix}${tool}`)
  }
  if (type !== 'builtin' && type !== 'platform') return undefined
  if (isBuiltIn(name)) return []
  if (!isBuiltinToolkit(name)) return undefined
  return toolNamesOf(name).filter(
    (tool) => availableTools.length === 0 || availableTools.some((one) => matchName(one, tool)),
  )
}

function isServer({ type }: ExtensionConfig): boolean {
  return type === 'stdio' || type === 'streamable_http'
}
