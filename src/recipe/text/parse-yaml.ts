import type { Alias, CST, Document, LineCounter, Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml'
import { messageOf } from '../../base/error.ts'
import type { Finding } from './notice.ts'
import { type Entry, type Leaf, leafOf, type Tree } from './tree.ts'

export type ParsedYaml = { readonly ok: true; readonly tree: Tree } | { readonly ok: false; readonly finding: Finding }

/** How many values lie in one another at most, and how many there are when every alias is written out. */
const DEEPEST = 100
const MOST_VALUES = 20_000
/** Words of YAML: a key with its value has seven. */
const MOST_WORDS = 50_000

/**
 * Reads YAML 1.2 (and JSON, which is YAML) in bounded time and never throws. Merge keys are not applied, there is one
 * document, no key is there twice, and a `{{ name }}` that was not quoted is the text that it looks like.
 */
export async function parseYaml(text: string): Promise<ParsedYaml> {
  yamlModule ??= await import('yaml')
  const yaml = yamlModule
  const source = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  const lines = new yaml.LineCounter()
  const lineAt = (offset: number): number => Math.max(1, lines.linePos(offset).line)
  try {
    const tokens = tokensOf(source, yaml, lines)
    const options = {
      uniqueKeys: false,
      prettyErrors: false,
      schema: 'core',
      version: '1.2',
      logLevel: 'silent',
    } as const
    const documents = [...new yaml.Composer(options).compose(tokens, true, source.length)]
    return { ok: true, tree: readDocuments(documents as Document[], { yaml, source, lineAt }) }
  } catch (error) {
    const line = error instanceof Wrong ? error.line : null
    const hint = error instanceof Wrong ? error.hint : undefined
    const finding: Finding = { code: 'syntax', message: `not valid YAML: ${messageOf(error)}`, line }
    return { ok: false, finding: hint === undefined ? finding : { ...finding, hint } }
  }
}

/** Loaded with the first file, and asked for with every one. */
let yamlModule: typeof import('yaml') | undefined

class Wrong extends Error {
  readonly line: number
  readonly hint: string | undefined

  constructor(message: string, line: number, hint?: string) {
    super(message)
    this.line = line
    this.hint = hint
  }
}

interface Context {
  readonly yaml: typeof import('yaml')
  readonly source: string
  readonly lineAt: (offset: number) => number
}

interface Walk extends Context {
  readonly anchors: Map<string, Sized | null>
}

/** With how many values it has when all aliases are written out. */
interface Sized {
  readonly tree: Tree
  readonly size: number
}

function readDocuments([document, second]: readonly Document[], context: Context): Tree {
  if (document === undefined) return leafOf(null, 1)
  const [error] = document.errors
  if (error !== undefined) throw yamlError(error, context)
  if (second !== undefined) {
    throw new Wrong(
      'there is more than one document',
      context.lineAt(second.range?.[0] ?? 0),
      'Keep one file for each.',
    )
  }
  return read(document.contents, { ...context, anchors: new Map() }).tree
}

function yamlError(
  error: { code: string; message: string; pos: [number, number] },
  { lineAt, source }: Context,
): Wrong {
  const line = lineAt(error.pos[0])
  const written = source.split('\n', line)[line - 1] ?? ''
  return new Wrong(error.message, line, /:\s*[^'"|>[{\s].*: /.test(written) ? QUOTE : undefined)
}

const QUOTE = 'A text with a colon and a space in it must be in quotes, or in a block after "|".'

/** The parser is stopped while it reads: 1 MB of brackets would take it half a minute. */
function tokensOf(source: string, yaml: typeof import('yaml'), lines: LineCounter): CST.Token[] {
  const tokens: CST.Token[] = []
  const parser = new yaml.Parser(lines.addNewLine)
  lines.addNewLine(0)
  let words = 0
  const line = () => lines.linePos(parser.offset).line
  for (const word of new yaml.Lexer().lex(source)) {
    for (const token of parser.next(word)) tokens.push(token)
    if (parser.stack.length > DEEPEST) throw new Wrong(`nested more than ${DEEPEST} levels deep`, line())
    if (++words > MOST_WORDS)
      throw new Wrong('it has too many values', line(), 'Move what is long into files of its own.')
  }
  tokens.push(...parser.end())
  return tokens
}

function read(node: unknown, walk: Walk): Sized {
  const { yaml } = walk
  if (node === null || node === undefined) return { tree: leafOf(null, 1), size: 1 }
  if (yaml.isAlias(node)) return readAlias(node, walk)
  const { anchor } = node as { anchor?: string }
  if (anchor !== undefined) walk.anchors.set(anchor, null)
  const sized = readNode(node as Node, walk)
  if (sized.size > MOST_VALUES) {
    throw new Wrong(
      'its aliases stand for too many values',
      sized.tree.line,
      'Write out what is meant, without aliases.',
    )
  }
  if (anchor !== undefined) walk.anchors.set(anchor, sized)
  return sized
}

function readNode(node: Node, walk: Walk): Sized {
  const line = walk.lineAt(node.range?.[0] ?? 0)
  if (walk.yaml.isScalar(node)) return { tree: readScalar(node, line, walk), size: 1 }
  if (walk.yaml.isSeq(node)) return readList(node, line, walk)
  const template = unquotedTemplate(node, walk)
  if (template !== undefined) return { tree: leafOf(template, line), size: 1 }
  return readMap(node as YAMLMap, line, walk)
}

function readAlias(node: Alias, { anchors, lineAt }: Walk): Sized {
  const found = anchors.get(node.source)
  if (found) return found
  const line = lineAt(node.range?.[0] ?? 0)
  if (found === null) throw new Wrong(`the alias *${node.source} is inside of what it stands for`, line)
  throw new Wrong(
    `nothing is named &${node.source} before the alias *${node.source}`,
    line,
    'Quote a text that begins with *.',
  )
}

function readScalar(node: Scalar, line: number, walk: Walk): Leaf {
  const { value } = node
  const place = { kind: 'leaf', line, textLine: line, indent: 0, ...blockPlace(node, walk) } as const
  if (typeof value === 'string') return { ...place, value: value.toWellFormed(), text: value.toWellFormed() }
  if (typeof value === 'number' || typeof value === 'boolean') return { ...place, value, text: node.source ?? '' }
  return { ...place, value: null, text: '' }
}

/** Where the text of a block begins and how far it is indented, unless its first line says so itself. */
function blockPlace(node: Scalar, { yaml, lineAt, source }: Walk): Partial<Leaf> {
  if (node.type !== yaml.Scalar.BLOCK_LITERAL && node.type !== yaml.Scalar.BLOCK_FOLDED) return {}
  const start = node.range?.[0] ?? 0
  const from = source.indexOf('\n', start) + 1
  const isSaid = /\d/.test(source.slice(start, from).split('#', 1)[0] ?? '')
  const [, indent = ''] = /^(?:[ \t]*\r?\n)*( *)\S/.exec(source.slice(from, from + 2_000)) ?? []
  return { textLine: lineAt(from), indent: isSaid ? 0 : indent.length }
}

function readList(node: YAMLSeq, line: number, walk: Walk): Sized {
  const items = node.items.map((item) => {
    if (!walk.yaml.isPair(item)) return read(item, walk)
    const map = new walk.yaml.YAMLMap()
    map.items.push(item)
    return readMap(map, line, walk)
  })
  const size = items.reduce((sum, item) => sum + item.size, 1)
  return { tree: { kind: 'list', items: items.map(({ tree }) => tree), line }, size }
}

function readMap(node: YAMLMap, line: number, walk: Walk): Sized {
  const entries = new Map<string, Entry>()
  let size = 1
  for (const pair of node.items as Pair[]) {
    const { key, at } = readKey(pair, walk)
    if (entries.has(key)) throw new Wrong(`the key "${key}" is there twice`, at, 'Remove one of them.')
    const value = read(pair.value, walk)
    size += value.size
    entries.set(key, { line: at, value: value.tree })
  }
  return { tree: { kind: 'map', entries, line }, size }
}

function readKey({ key }: Pair, { yaml, lineAt }: Walk): { key: string; at: number } {
  const at = lineAt((key as Node | null)?.range?.[0] ?? 0)
  if (!yaml.isScalar(key)) throw new Wrong('a key must be a text', at, 'Quote a text that begins with { or [.')
  const text = typeof key.value === 'string' ? key.value : (key.source ?? '')
  return { key: text.toWellFormed(), at }
}

/** `key: {{ name }}` is a map with a map for a key, to YAML. */
function unquotedTemplate(node: Node, { yaml, source }: Walk): string | undefined {
  if (!yaml.isMap(node) || node.flow !== true || node.items.length !== 1 || node.range == null) return undefined
  const [start, end] = node.range
  const text = source.slice(start, end)
  return text.startsWith('{{') && text.endsWith('}}') && yaml.isMap(node.items[0]?.key) ? text : undefined
}
