import path from 'node:path'
import { DefinitionError, messageOf } from '../../base/error.ts'
import { toJson } from '../../base/json.ts'
import { oneOf, type Rules, readOptions, text } from '../../base/options.ts'
import { schemaProblem } from '../../base/schema.ts'
import { detectDialect } from '../dialects/detect.ts'
import type { AgentDialect } from '../dialects/dialect.ts'
import { AGENT_DIALECTS, agentDialect } from '../dialects/index.ts'
import { Fields } from '../text/fields.ts'
import { Report, refuse } from '../text/notice.ts'
import { readText } from '../text/read-text.ts'
import { type MapTree, treeOf } from '../text/tree.ts'
import type { AgentFile } from './agent-file.ts'
import { Draft } from './draft.ts'
import { type FrontMatter, readFrontMatter } from './front-matter.ts'
import { withMeantKeys } from './misspelt-key.ts'
import { serverTools } from './tool-lists.ts'

export interface AgentFileOptions {
  /** Whose way of writing it is; found out by path and keys when left out. */
  readonly dialect?: string
  readonly mode?: 'strict' | 'lenient'
  /** The folder that it must be in, links followed. */
  readonly folder?: string
}

const OPTIONS: Rules<AgentFileOptions> = { dialect: text, mode: oneOf('strict', 'lenient'), folder: text }

/** Reads an agent file of any dialect. Throws a RecipeError with file, line and hint. */
export async function loadAgentFile(given: string, options: AgentFileOptions = {}): Promise<AgentFile> {
  readOptions('loadAgentFile(file, options)', options, OPTIONS)
  const file = path.resolve(given)
  const text = await readText(file, options.folder === undefined ? {} : { inside: options.folder })
  const agent = await parseAgentFile(text, file, options)
  if (agent !== undefined) return agent
  const hint = 'Begin it with "---", "name: ...", "description: ...", "---"; the instructions come below.'
  throw refuse(
    { code: 'missing_field', message: 'this is no agent file: it has no name or no description', hint },
    file,
  )
}

/** The same of a text; undefined when it is some other text, as a README beside agent files is. */
export async function parseAgentFile(
  text: string,
  file: string,
  { dialect, mode = 'strict' }: AgentFileOptions = {},
): Promise<AgentFile | undefined> {
  const report = new Report(file, mode === 'lenient')
  const parts = file.endsWith('.toml') ? await readToml(text, file) : await readFrontMatter(text, file, report)
  if (parts === undefined) return undefined
  const trial = new Report(file, true)
  const found = dialect === undefined ? detectDialect(file, new Fields(parts.fields, trial)) : dialectNamed(dialect)
  // Which keys a dialect has is known when it was read.
  const first = readDraft(parts, trial, found)
  const fields = withMeantKeys(
    parts.fields,
    (key) => first.meantBy(key),
    (key, meant, line) => {
      report.warning({
        code: 'unknown_key',
        message: `\`${key}\` is read as \`${meant}\``,
        line,
        hint: `Write \`${meant}\`.`,
      })
    },
  )
  const draft = readDraft({ ...parts, fields }, report, found)
  if (!isAgent(draft, found)) {
    report.check()
    return undefined
  }
  const agent = draft.finish()
  await checkSchemas(agent, new Fields(fields, report), report)
  report.check()
  return agent
}

/** A schema that cannot be used would fail the run, far from its file. */
async function checkSchemas(agent: AgentFile, fields: Fields, report: Report): Promise<void> {
  for (const key of ['input', 'output'] as const) {
    const schema = agent[key]
    const why = schema === null ? undefined : await schemaProblem(schema)
    if (why === undefined) continue
    const message = `\`${key}\` is no JSON Schema that can be used: ${why}`
    report.error({ code: 'schema', message, line: fields.lineOf(key), hint: 'Correct the schema.' })
  }
}

function readDraft({ fields, body }: FrontMatter, report: Report, dialect: AgentDialect): Draft {
  const tables = [dialect, ...AGENT_DIALECTS.filter((other) => other !== dialect)].map((one) => one.toolWords)
  const words = { dialect: dialect.name, tables, serverTools: dialect.serverTools ?? serverTools }
  const draft = new Draft(new Fields(fields, report), report, words)
  draft.agent.instructions = body
  dialect.read(draft)
  return draft
}

function dialectNamed(name: string): AgentDialect {
  const found = agentDialect(name)
  if (found !== undefined) return found
  const known = AGENT_DIALECTS.map((one) => one.name).join(', ')
  throw new DefinitionError('definition', `There is no dialect "${name}" of agent files. There are ${known}.`)
}

/** It needs a name, and in most dialects a description. */
function isAgent({ agent, fields }: Draft, { isDescribed = true }: AgentDialect): boolean {
  return agent.name !== '' && (agent.description !== '' || (!isDescribed && fields.keys().length > 0))
}

async function readToml(text: string, file: string): Promise<FrontMatter> {
  const { parse, TomlError } = await import('smol-toml')
  try {
    const json = toJson(parse(text, { maxDepth: 60 }))
    const tree = json.ok ? treeOf(json.value) : undefined
    if (tree?.kind === 'map') return { fields: withLines(tree, text), body: '' }
    throw refuse({ code: 'syntax', message: json.ok ? 'not valid TOML' : json.error }, file)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const [what = ''] = messageOf(error)
      .replace(/^Invalid TOML document: /, '')
      .split(' 1:')
    throw refuse({ code: 'syntax', message: `not valid TOML: ${what.slice(0, 200)}`, line: error.line }, file)
  }
}

/** The parser of TOML gives values without places: the line of a key is the first that begins with it. */
function withLines(tree: MapTree, text: string): MapTree {
  const lines = new Map<string, number>()
  for (const [at, line] of text.split('\n').entries()) {
    const [, key = ''] = /^\s*\[{0,2}["']?([\w-]+)["']?\s*[=.\]]/.exec(line) ?? []
    if (!lines.has(key)) lines.set(key, at + 1)
  }
  const entries = [...tree.entries].map(([key, entry]) => [key, { ...entry, line: lines.get(key) ?? 1 }] as const)
  return { ...tree, entries: new Map(entries) }
}
