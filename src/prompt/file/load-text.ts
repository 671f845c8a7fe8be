import { messageOf } from '../../base/error.ts'
import { sizeOf } from '../../base/json.ts'
import { code, list, type OptionRules, oneOf, readOptions, record, text } from '../../base/options.ts'
import { readYaml, type YamlTree, YamlTrouble } from '../../base/yaml-tree.ts'
import { Prompt } from '../prompt.ts'
import type { PromptWarning } from '../render/options.ts'
import { type Mappings, readMappings } from '../slots/placeholder.ts'
import { builtInAliases, type PromptAliases, readAliases } from './alias.ts'
import { applyTree } from './apply-tree.ts'
import { parseJsonTree } from './parse-json.ts'
import { entryOf, fileError, type Place, type Tree, Wrong } from './tree.ts'

export interface LoadOptions<P extends Prompt = Prompt> {
  /** What stands for `${name}` in keys, texts and arguments of the file. */
  readonly mappings?: Mappings
  /** Which part of the file is meant: keys joined by dots, or a list of keys where one has a dot in it. */
  readonly promptKeyPath?: string | readonly string[]
  /** The prompt to say it in. Left out: an empty one. */
  readonly onto?: P
  /** Methods that `.alias` may call beside those of every prompt. */
  readonly aliases?: PromptAliases<P>
  /** Called with each thing in the file that has no effect. */
  readonly onWarning?: (warning: PromptWarning & { readonly file: string } & Place) => void
}

export interface TextLoadOptions<P extends Prompt = Prompt> extends LoadOptions<P> {
  /** Default `yaml`, which JSON without comments is too. */
  readonly format?: 'yaml' | 'json'
  /** What errors call the text. */
  readonly file?: string
}

const OPTIONS: OptionRules<TextLoadOptions> = {
  mappings: record,
  promptKeyPath: (value) => (text(value) === null || list(value) === null ? null : 'a text or a list of keys'),
  onto: record,
  aliases: record,
  onWarning: code,
  format: oneOf('yaml', 'json'),
  file: text,
}

export const MOST_PROMPT_BYTES = 1_000_000

/** Reads a prompt file's text. Whatever is wrong with it is a RecipeError with file, line and column. */
export async function loadPromptText<P extends Prompt = Prompt>(
  given: string,
  options: TextLoadOptions<P> = {},
): Promise<P> {
  const { format = 'yaml', file = '<text>', onWarning } = readOptions('loadPromptText(text, options)', options, OPTIONS)
  const mappings = readMappings(options.mappings)
  const aliases = new Map(Object.entries({ ...builtInAliases<P>(), ...readAliases(options.aliases ?? {}) }))
  const warn = (warning: PromptWarning, at: Place) => onWarning?.({ ...warning, ...at, file })
  try {
    const tree = partOf(await parsed(given, format), options.promptKeyPath)
    return applyTree(options.onto ?? (new Prompt() as P), tree, { mappings, aliases, warn })
  } catch (error) {
    if (!(error instanceof Wrong)) throw error
    const { message: problem, at, hint, cause } = error
    throw fileError({ problem, file, at, cause, ...(hint === undefined ? {} : { hint }) })
  }
}

async function parsed(text: string, format: 'yaml' | 'json'): Promise<Tree> {
  const bare = (text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text).toWellFormed()
  if (bare.length > MOST_PROMPT_BYTES || sizeOf(bare) > MOST_PROMPT_BYTES) {
    throw new Wrong(`the text has more than ${MOST_PROMPT_BYTES} bytes`, { line: 1, column: 1 })
  }
  try {
    return format === 'json' ? parseJsonTree(bare) : await parseYaml(bare)
  } catch (error) {
    if (error instanceof Wrong) throw error
    throw new Wrong(`the text cannot be read: ${messageOf(error)}`, { line: 1, column: 1 })
  }
}

const byteOrderMark = 0xfeff

function partOf(tree: Tree, path: string | readonly string[] = []): Tree {
  if (path === '') return tree
  const keys = typeof path === 'string' ? path.split('.') : path
  return keys.reduce((part, key, index) => {
    const found = entryOf(part, part.kind === 'list' ? Number(key) : key)
    if (found !== undefined) return found.value
    const wanted = keys.slice(0, index + 1).join('.')
    const there = part.kind === 'map' ? part.entries.map((entry) => entry.key).slice(0, 20) : []
    throw new Wrong(`there is nothing at ${JSON.stringify(wanted)}`, part.at, `There are: ${there.join(', ')}.`)
  }, tree)
}

const LIMITS = { deepest: 60, mostValues: 20_000, mostWords: 70_000 } as const

/** Reads the YAML of a prompt file, with the place of every value. Throws Wrong. */
async function parseYaml(text: string): Promise<Tree> {
  try {
    return treeOf(await readYaml(text, LIMITS))
  } catch (error) {
    if (!(error instanceof YamlTrouble)) throw error
    throw new Wrong(error.isSyntax ? `not valid YAML: ${error.message}` : error.message, error.at, error.hint)
  }
}

function treeOf(tree: YamlTree): Tree {
  const at = { line: tree.line, column: tree.column }
  if (tree.kind === 'list') return { kind: 'list', items: tree.items.map(treeOf), at }
  if (tree.kind === 'leaf') {
    const { value } = tree
    if (typeof value === 'number' && !Number.isFinite(value)) throw new Wrong(`${value} is no number to keep`, at)
    return { kind: 'leaf', value, at }
  }
  const entries = [...tree.entries].map(([key, { line, column, value }]) => {
    return { key, at: { line, column }, value: treeOf(value) }
  })
  return { kind: 'map', entries, at }
}
