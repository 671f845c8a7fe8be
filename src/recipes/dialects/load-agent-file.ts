import path from 'node:path'
import { DefinitionError, messageOf } from '../../core/base/error.ts'
import { toJson } from '../../core/base/json.ts'
import { type OptionRules, oneOf, readOptions, text } from '../../core/base/options.ts'
import { type TextEntry, type TextMap, type TextTree, treeAt } from '../../core/base/text-tree/tree.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { AgentFileDraft } from '../agent-file/draft.ts'
import { correctKeys } from '../agent-file/names.ts'
import { serverTools } from '../agent-file/tool-words.ts'
import { Fields } from '../text/fields.ts'
import { NoticeReport, refuseFile } from '../text/notice.ts'
import { readText } from '../text/read-text.ts'
import { parseYaml } from '../text/yaml.ts'
import { claude } from './claude.ts'
import type { AgentDialect } from './dialect.ts'
import { AGENT_DIALECTS, agentDialect } from './index.ts'

export interface AgentFileOptions {
  /** The dialect; detected by path and keys if absent. */
  readonly dialect?: string
  /** Whether a mistake in the file is refused (`strict`) or reported and skipped (`lenient`). Default strict. */
  readonly mode?: 'strict' | 'lenient'
  /** The folder that must contain the file, with links resolved. */
  readonly folder?: string
}

const OPTIONS: OptionRules<AgentFileOptions> = { dialect: text, mode: oneOf('strict', 'lenient'), folder: text }

/** Reads an agent file of any dialect. Throws a RecipeError with file, line and hint. */
export async function loadAgentFile(given: string, options: AgentFileOptions = {}): Promise<AgentFile> {
  readOptions('loadAgentFile(file, options)', options, OPTIONS)
  const file = path.resolve(given)
  const text = await readText(file, options.folder === undefined ? {} : { inside: options.folder })
  const agent = await parseAgentFile(text, file, options)
  if (agent !== undefined) return agent
  const hint = 'Begin it with "---", "name: ...", "description: ...", "---"; the instructions come below.'
  throw refuseFile(
    { code: 'missing_field', message: 'this is not an agent file: it has no name or no description', hint },
    file,
  )
}

/** Reads an agent from a text; undefined if the text is not an agent, such as a README beside agent files. */
export async function parseAgentFile(
  text: string,
  file: string,
  { dialect, mode = 'strict' }: AgentFileOptions = {},
): Promise<AgentFile | undefined> {
  const report = new NoticeReport(file, mode === 'lenient')
  const parts = file.endsWith('.toml') ? await readToml(text, file) : await readFrontMatter(text, file, report)
  if (parts === undefined) return undefined
  checkKeys(parts.fields, file)
  const trial = new NoticeReport(file, true)
  const found = dialect === undefined ? detectDialect(file, new Fields(parts.fields, trial)) : dialectNamed(dialect)
  // The keys of a dialect are known only after it has read the file.
  const first = readDraft(parts, trial, found)
  const fields = correctKeys(
    parts.fields,
    (key) => first.closestRestriction(key),
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

/** Refuses a file of more keys than anybody writes: each unknown one is compared with all that restrict. */
function checkKeys({ entries: { size } }: TextMap, file: string): void {
  if (size <= MOST_KEYS) return
  throw refuseFile(
    { code: 'too_large', message: `there are ${size} keys; an agent file has at most ${MOST_KEYS}` },
    file,
  )
}

const MOST_KEYS = 500

/** Checks schemas now: a broken one would fail a run far from its file. */
async function checkSchemas(agent: AgentFile, fields: Fields, report: NoticeReport): Promise<void> {
  for (const key of ['input', 'output'] as const) {
    const schema = agent[key]
    if (schema === null) continue
    const { schemaProblem } = await import('../../core/base/schema/schema-problem.ts')
    const why = await schemaProblem(schema)
    if (why === undefined) continue
    const message = `\`${key}\` is not JSON Schema that can be used: ${why}`
    report.error({ code: 'schema', message, line: fields.lineOf(key), hint: 'Correct the schema.' })
  }
}

function readDraft({ fields, body }: FrontMatter, report: NoticeReport, dialect: AgentDialect): AgentFileDraft {
  const tables = [dialect, ...AGENT_DIALECTS.filter((other) => other !== dialect)].map((one) => one.toolWords)
  const words = {
    dialect: dialect.name,
    tables,
    serverTools: dialect.serverTools ?? serverTools,
    spelling: dialect.variables ?? 'alone',
  }
  const draft = new AgentFileDraft(new Fields(fields, report), report, words)
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

/** Tells whether a draft is an agent: it needs a name and, in most dialects, a description. */
function isAgent({ agent, fields }: AgentFileDraft, { isDescribed = true }: AgentDialect): boolean {
  return agent.name !== '' && (agent.description !== '' || (!isDescribed && fields.keys().length > 0))
}

async function readToml(text: string, file: string): Promise<FrontMatter> {
  const { parse, TomlError } = await import('smol-toml')
  try {
    const json = toJson(parse(text, { maxDepth: 60 }))
    const tree = json.ok ? treeAt(json.value) : undefined
    if (tree?.kind === 'map') return { fields: withLines(tree, text), body: '' }
    throw refuseFile({ code: 'syntax', message: json.ok ? 'not valid TOML' : json.error }, file)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const [what = ''] = messageOf(error)
      .replace(/^Invalid TOML document: /, '')
      .split(' 1:')
    throw refuseFile({ code: 'syntax', message: `not valid TOML: ${what.slice(0, 200)}`, line: error.line }, file)
  }
}

/** Adds lines to a TOML tree, whose parser gives none: the first line that begins with the key. */
function withLines(tree: TextMap, text: string): TextMap {
  const lines = new Map<string, number>()
  for (const [at, line] of text.split('\n').entries()) {
    const [, key = ''] = /^\s*\[{0,2}["']?([\w-]+)["']?\s*[=.\]]/.exec(line) ?? []
    if (!lines.has(key)) lines.set(key, at + 1)
  }
  const entries = [...tree.entries].map(([key, entry]) => [key, { ...entry, line: lines.get(key) ?? 1 }] as const)
  return { ...tree, entries: new Map(entries) }
}

export interface FrontMatter {
  readonly fields: TextMap
  /** The text below, without blank lines around it. */
  readonly body: string
}

/**
 * Reads the YAML between a first line `---` and the next one, and the text below. Undefined if there is none. Invalid
 * YAML is read once more with values that contain a colon as plain text, because many files have them.
 */
export async function readFrontMatter(
  text: string,
  file: string,
  report: NoticeReport,
): Promise<FrontMatter | undefined> {
  const parts = split(text)
  if (parts === undefined) return undefined
  const { head, body } = parts
  // A blank line above keeps the line numbers of the file.
  const strict = await parseYaml(`\n${head}`)
  if (strict.ok) return whole(merged(strict.tree, report), body, file)
  const mended = await parseYaml(`\n${asTexts(head)}`)
  if (!mended.ok)
    throw refuseFile({ ...strict.finding, message: `the front matter is ${strict.finding.message}` }, file)
  const message = 'the front matter is not valid YAML; values with a colon were read as text'
  report.warning({ code: 'repaired', message, line: strict.finding.line ?? null, hint: 'Put such values in quotes.' })
  return whole(merged(mended.tree, report), body, file)
}

/** Merges keys that `<<` brings in, which may be restrictions; the map's own keys win. */
function merged(tree: TextTree, report: NoticeReport): TextTree {
  if (tree.kind === 'leaf') return tree
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => merged(item, report)) }
  const own = [...tree.entries].map(([key, entry]): [string, TextEntry] => {
    return [key, { ...entry, value: merged(entry.value, report) }]
  })
  const [, base] = own.find(([key]) => key === MERGE) ?? []
  const maps = base?.value.kind === 'list' ? base.value.items : base === undefined ? [] : [base.value]
  if (base === undefined || !maps.every((map) => map.kind === 'map')) return { ...tree, entries: new Map(own) }
  report.warning({ code: 'repaired', message: `\`${MERGE}\` is read as the keys that it brings in`, line: base.line })
  const names = new Set(own.map(([key]) => key))
  // The first of several merged maps wins.
  const others = maps.toReversed().flatMap((map) => [...map.entries].filter(([key]) => !names.has(key)))
  return { ...tree, entries: new Map([...others, ...own.filter(([key]) => key !== MERGE)]) }
}

const MERGE = '<<'

/** Splits at whole lines of three dashes only. */
function split(text: string): { readonly head: string; readonly body: string } | undefined {
  const source = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  const open = /^---[ \t]*\r?\n/.exec(source)
  if (open === null) return undefined
  const close = /^---[ \t]*$/gm
  close.lastIndex = open[0].length
  const found = close.exec(source)
  if (found === null) return undefined
  const body = source.slice(found.index + found[0].length)
  return { head: source.slice(open[0].length, found.index), body: body.replace(/^\s*\n/, '').trim() }
}

function whole(
  tree: TextMap | { readonly kind: 'leaf' | 'list'; readonly line: number },
  body: string,
  file: string,
): FrontMatter {
  if (tree.kind === 'map') return { fields: tree, body }
  if (tree.kind === 'leaf') return { fields: { kind: 'map', entries: new Map(), line: 1, column: 1 }, body }
  throw refuseFile({ code: 'syntax', message: 'the front matter must be keys and values', line: tree.line }, file)
}

/** Turns `key: a: b`, and a value that begins with a sign reserved by YAML, into a block of text. */
function asTexts(head: string): string {
  return head
    .split('\n')
    .map((line) => {
      const [, key, value] = /^([\w-]+):[ \t]+(\S.*)$/.exec(line.trimEnd()) ?? []
      if (key === undefined || value === undefined || !needsBlock(key, value)) return line
      return `${key}: |-\n  ${value}`
    })
    .join('\n')
}

function needsBlock(key: string, value: string): boolean {
  if (/^[|>]/.test(value)) return false
  if (/^(["']).*\1$/.test(value) || /^\[.*\]$/.test(value) || /^\{.*\}$/.test(value)) return false
  // An unclosed list or quote is a mistake, except in a description.
  if (/^["'[{]/.test(value)) return key === 'description'
  return /: |:$| #/.test(value) || /^[@`*&!%]/.test(value)
}

/**
 * Detects the dialect by folder, then by file ending, then by keys that only one dialect has. A file that shows none of
 * these counts as Claude Code's, as most are.
 */
function detectDialect(file: string, fields: Fields): AgentDialect {
  const place = path.resolve(file).split(path.sep).join('/')
  const byFolder = innermost(place)
  if (byFolder !== undefined) return byFolder
  const byEnding = AGENT_DIALECTS.find(({ ending, otherEndings = [] }) => {
    return [ending, ...otherEndings].some((one) => one !== USUAL_ENDING && place.endsWith(one))
  })
  if (byEnding !== undefined) return byEnding
  const byForm = AGENT_DIALECTS.find(({ isLike }) => isLike?.(fields) === true)
  return byForm ?? bySigns(fields) ?? claude
}

const USUAL_ENDING = '.md'

/** If one folder of agents lies in another, the inner one counts. */
function innermost(place: string): AgentDialect | undefined {
  const found = AGENT_DIALECTS.map((dialect) => ({ dialect, at: Math.max(...foldersOf(dialect).map(at(place))) }))
  const [nearest] = found.filter((one) => one.at >= 0).sort((a, b) => b.at - a.at)
  return nearest?.dialect
}

/** Compares the last two parts of a folder, because the settings folder may lie elsewhere. */
function foldersOf({ folders, sharedFolders = [], homeFolders }: AgentDialect): readonly string[] {
  return [...folders, ...sharedFolders, ...homeFolders.map((folder) => folder.split('/').slice(-2).join('/'))]
}

function at(place: string): (folder: string) => number {
  return (folder) => place.lastIndexOf(`/${folder}/`)
}

/** Detects a dialect by its keys. Our own keys may appear in any file, so they decide last. */
function bySigns(fields: Fields): AgentDialect | undefined {
  const ordered = [...AGENT_DIALECTS.filter(({ name }) => name !== 'legate'), ...AGENT_DIALECTS]
  return ordered.find(({ signs }) => signs.some((key) => fields.has(key)))
}
