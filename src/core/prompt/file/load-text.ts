import { messageOf } from '../../base/error.ts'
import { sizeOf } from '../../base/json.ts'
import { code, list, type OptionRules, oneOf, readOptions, record, text } from '../../base/options.ts'
import { readJsonTree } from '../../base/text-tree/read-json.ts'
import { readYaml } from '../../base/text-tree/read-yaml.ts'
import { entryOf, leavesOf, type TextPlace, TextProblem, type TextTree } from '../../base/text-tree/tree.ts'
import { Prompt } from '../prompt.ts'
import type { PromptWarning } from '../render/options.ts'
import { type Mappings, readMappings } from '../slots/placeholder.ts'
import { builtInAliases, type PromptAliases, readAliases } from './alias.ts'
import { applyTree } from './apply-tree.ts'
import { fileError } from './file-error.ts'

export interface PromptLoadOptions<P extends Prompt = Prompt> {
  /** Values for `${name}` in keys, texts and arguments of the file. */
  readonly mappings?: Mappings
  /** The part of the file to load: keys joined by dots, or a list of keys where one contains a dot. */
  readonly promptKeyPath?: string | readonly string[]
  /** The prompt to extend. Default: an empty one. */
  readonly onto?: P
  /** Methods that `.alias` may call beside those of every prompt. */
  readonly aliases?: PromptAliases<P>
  /** Called for each part of the file that has no effect. */
  readonly onWarning?: (warning: PromptWarning & { readonly file: string } & TextPlace) => void
}

export interface TextLoadOptions<P extends Prompt = Prompt> extends PromptLoadOptions<P> {
  /** The language of the text. Default `yaml`, which includes JSON without comments. */
  readonly format?: 'yaml' | 'json'
  /** The name of the text in errors. */
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

/** Loads the text of a prompt file. Every problem is a RecipeError with file, line and column. */
export async function loadPromptText<P extends Prompt = Prompt>(
  given: string,
  options: TextLoadOptions<P> = {},
): Promise<P> {
  const { format = 'yaml', file = '<text>', onWarning } = readOptions('loadPromptText(text, options)', options, OPTIONS)
  const mappings = readMappings(options.mappings)
  const aliases = new Map(Object.entries({ ...builtInAliases<P>(), ...readAliases(options.aliases ?? {}) }))
  const warn = (warning: PromptWarning, { line, column }: TextPlace) => onWarning?.({ ...warning, line, column, file })
  try {
    const tree = partOf(await parsed(given, format), options.promptKeyPath)
    return applyTree(options.onto ?? (new Prompt() as P), tree, { mappings, aliases, warn })
  } catch (error) {
    if (!(error instanceof TextProblem)) throw error
    const { message: problem, at, hint, cause } = error
    throw fileError({ problem, file, at, cause, ...(hint === undefined ? {} : { hint }) })
  }
}

async function parsed(text: string, format: 'yaml' | 'json'): Promise<TextTree> {
  const bare = (text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text).toWellFormed()
  if (bare.length > MOST_PROMPT_BYTES || sizeOf(bare) > MOST_PROMPT_BYTES) {
    throw new TextProblem(`the text has more than ${MOST_PROMPT_BYTES} bytes`, { line: 1, column: 1 })
  }
  try {
    return format === 'json' ? readJsonTree(bare) : await parseYaml(bare)
  } catch (error) {
    if (error instanceof TextProblem) throw error
    throw new TextProblem(`the text cannot be read: ${messageOf(error)}`, { line: 1, column: 1 })
  }
}

const byteOrderMark = 0xfeff

function partOf(tree: TextTree, path: string | readonly string[] = []): TextTree {
  if (path === '') return tree
  const keys = typeof path === 'string' ? path.split('.') : path
  return keys.reduce((part, key, index) => {
    const found = entryOf(part, part.kind === 'list' ? Number(key) : key)
    if (found !== undefined) return found.value
    const wanted = keys.slice(0, index + 1).join('.')
    const there = part.kind === 'map' ? [...part.entries.keys()].slice(0, 20) : []
    throw new TextProblem(`there is nothing at ${JSON.stringify(wanted)}`, part, `There are: ${there.join(', ')}.`)
  }, tree)
}

const LIMITS = { deepest: 60, mostValues: 20_000, mostWords: 70_000 } as const

/** Parses the YAML of a prompt file, with the place of every value. Throws TextProblem. */
async function parseYaml(text: string): Promise<TextTree> {
  const tree = await readYaml(text, LIMITS).catch((error) => {
    if (!(error instanceof TextProblem && error.isSyntax)) throw error
    throw new TextProblem(`not valid YAML: ${error.message}`, error.at, error.hint)
  })
  for (const leaf of leavesOf(tree)) {
    const { value } = leaf
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new TextProblem(`${value} is not a number that can be kept`, leaf)
    }
  }
  return tree
}
