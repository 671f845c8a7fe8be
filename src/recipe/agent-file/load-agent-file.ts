import path from 'node:path'
import { messageOf } from '../../base/error.ts'
import { toJson } from '../../base/json.ts'
import { Fields } from '../text/fields.ts'
import { Report, refuse } from '../text/notice.ts'
import { readText } from '../text/read-text.ts'
import { type MapTree, treeOf } from '../text/tree.ts'
import type { AgentFile, Dialect } from './agent-file.ts'
import { detectDialect, nameByPath } from './detect-dialect.ts'
import { READERS } from './dialects.ts'
import { Draft } from './draft.ts'
import { readFrontMatter } from './front-matter.ts'

export interface AgentFileOptions {
  /** Whose way of writing it is; found out by path and keys when left out. */
  readonly dialect?: Exclude<Dialect, 'recipe'>
  readonly mode?: 'strict' | 'lenient'
}

/** Reads an agent file of any dialect. Throws a RecipeError with file, line and hint. */
export async function loadAgentFile(given: string, options: AgentFileOptions = {}): Promise<AgentFile> {
  const file = path.resolve(given)
  const agent = await parseAgentFile(await readText(file), file, options)
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
  const fields = new Fields(parts.fields, report)
  const found = dialect ?? detectDialect(file, fields)
  const draft = new Draft(fields, report, found)
  draft.agent.instructions = parts.body
  READERS[found](draft)
  if (!isAgent(draft, found)) {
    report.check()
    return undefined
  }
  const agent = draft.finish()
  report.check()
  return agent
}

/** Some dialects take the name of the file; the others need one, and most a description. */
function isAgent({ agent, fields, report }: Draft, dialect: Dialect): boolean {
  if (dialect === 'copilot' || dialect === 'cursor') {
    agent.title = agent.name === '' ? null : agent.name
    agent.name = nameByPath(report.file)
  }
  if (agent.name === '' && (dialect === 'opencode' || dialect === 'legate')) agent.name = nameByPath(report.file)
  if (agent.name === '') return false
  if (agent.description !== '' || (dialect === 'opencode' && fields.keys().length > 0)) return true
  if (dialect !== 'goose') return false
  agent.description = agent.model === null ? 'Agent' : `Agent (${agent.model})`
  return true
}

async function readToml(text: string, file: string): Promise<{ fields: MapTree; body: string }> {
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
