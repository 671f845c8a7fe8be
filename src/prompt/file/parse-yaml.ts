import type { Alias, Document, Node, Pair, YAMLMap, YAMLSeq } from 'yaml'
import { Wrong } from './file-error.ts'
import { type Entry, type Place, START, type Tree } from './tree.ts'

/**
 * Reads YAML 1.2 with the place of every value, in bounded time. One document, no key twice, merge keys are ordinary.
 * Throws Wrong.
 */
export async function parseYaml(text: string): Promise<Tree> {
  const yaml = await import('yaml')
  const lines = new yaml.LineCounter()
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return line < 1 ? START : { line, column: col }
  }
  const opened = tooManyOpen(new yaml.Lexer().lex(text))
  if (opened !== undefined) throw new Wrong(TOO_DEEP, placeIn(text, opened))
  const tokens = [...new yaml.Parser(lines.addNewLine).parse(text)]
  lines.lineStarts.sort((a, b) => a - b)
  const deep = tooDeep(tokens as readonly Token[])
  if (deep !== undefined) throw new Wrong(TOO_DEEP, placeAt(deep))
  const options = {
    uniqueKeys: false,
    prettyErrors: false,
    schema: 'core',
    version: '1.2',
    logLevel: 'silent',
  } as const
  const [document, second] = [...new yaml.Composer(options).compose(tokens, true, text.length)] as Document[]
  const [error] = document?.errors ?? []
  if (error !== undefined) throw new Wrong(`not valid YAML: ${error.message}`, placeAt(error.pos[0]), QUOTE)
  if (second !== undefined)
    throw new Wrong('there is more than one document', placeAt(second.range?.[0] ?? 0), 'Keep one.')
  return new YamlReader(yaml, placeAt).read(document?.contents, START).tree
}

const DEEPEST = 60
const TOO_DEEP = `nested more than ${DEEPEST} levels deep`
/** When every alias is written out. */
const MOST_VALUES = 100_000
const QUOTE = 'Quote a text that has a colon, or that begins with a sign such as @, *, & or {.'

/** Where one bracket too many is open: cheaper than to read them all first. */
function tooManyOpen(lexemes: Iterable<string>): number | undefined {
  let depth = 0
  let offset = 0
  for (const lexeme of lexemes) {
    if (lexeme === '[' || lexeme === '{') depth++
    if (lexeme === ']' || lexeme === '}') depth--
    if (depth > DEEPEST) return offset
    if (!MARKS.includes(lexeme)) offset += lexeme.length
  }
  return undefined
}

/** What the lexer says without having read anything: byte order mark, document, scalar. */
const MARKS = ['\u{2}', '\u{18}', '\u{1f}']

function placeIn(text: string, offset: number): Place {
  const before = text.slice(0, offset).split('\n')
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}

/** The first token that lies too deep. Without recursion: a megabyte of brackets must not end the program. */
function tooDeep(tokens: readonly Token[]): number | undefined {
  const open: { readonly token: Token | null | undefined; readonly depth: number }[] = tokens.map((token) => {
    return { token, depth: 0 }
  })
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next
    if (token === null || token === undefined) continue
    const { items, value, key, offset } = token
    if (items !== undefined && depth >= DEEPEST) return offset ?? 0
    for (const item of items ?? []) open.push({ token: item, depth: depth + 1 })
    if (typeof value === 'object') open.push({ token: value, depth })
    open.push({ token: key, depth })
  }
  return undefined
}

/** What is looked at of a token of the yaml package. */
interface Token {
  readonly items?: readonly Token[]
  readonly value?: string | Token | null
  readonly key?: Token | null
  readonly offset?: number
}

/** With how many values and levels it has when all aliases are written out. */
interface Sized {
  readonly tree: Tree
  readonly size: number
  readonly depth: number
}

class YamlReader {
  private readonly yaml: typeof import('yaml')
  private readonly placeAt: (offset: number) => Place
  private readonly anchors = new Map<string, Sized | null>()

  constructor(yaml: typeof import('yaml'), placeAt: (offset: number) => Place) {
    this.yaml = yaml
    this.placeAt = placeAt
  }

  read(node: unknown, near: Place): Sized {
    const at = this.placeOf(node) ?? near
    if (node === null || node === undefined) return leaf(null, at)
    if (this.yaml.isAlias(node)) return this.readAlias(node, at)
    const { anchor } = node as { anchor?: string }
    if (anchor !== undefined) this.anchors.set(anchor, null)
    const sized = this.readNode(node as Node, at)
    if (sized.size > MOST_VALUES || sized.depth > DEEPEST) throw new Wrong('its aliases stand for too much', at)
    if (anchor !== undefined) this.anchors.set(anchor, sized)
    return sized
  }

  private readNode(node: Node, at: Place): Sized {
    if (this.yaml.isSeq(node)) return this.readList(node, at)
    if (this.yaml.isMap(node)) return this.readMap(node, at)
    const value: unknown = this.yaml.isScalar(node) ? node.value : null
    if (typeof value === 'string') return leaf(value.toWellFormed(), at)
    if (typeof value === 'number' && !Number.isFinite(value)) throw new Wrong(`${value} is no number to keep`, at)
    return leaf(typeof value === 'number' || typeof value === 'boolean' ? value : null, at)
  }

  private readAlias({ source }: Alias, at: Place): Sized {
    const found = this.anchors.get(source)
    if (found) return found
    if (found === null) throw new Wrong(`the alias *${source} is inside of what it stands for`, at)
    throw new Wrong(`nothing before it is named &${source}`, at, 'Quote a text that begins with *.')
  }

  private readList(node: YAMLSeq, at: Place): Sized {
    const items = node.items.map((item) => {
      return this.yaml.isPair(item) ? this.mapOf([item], at) : this.read(item, at)
    })
    return around({ kind: 'list', items: items.map(({ tree }) => tree), at }, items)
  }

  private readMap(node: YAMLMap, at: Place): Sized {
    return this.mapOf(node.items as Pair[], at)
  }

  private mapOf(pairs: readonly Pair[], at: Place): Sized {
    const entries = new Map<string, Entry>()
    const values: Sized[] = []
    for (const pair of pairs) {
      const { key, at: keyAt } = this.readKey(pair, at)
      if (entries.has(key))
        throw new Wrong(`the key ${JSON.stringify(key)} is there twice`, keyAt, 'Remove one of them.')
      const value = this.read(pair.value, keyAt)
      values.push(value)
      entries.set(key, { key, at: keyAt, value: value.tree })
    }
    return around({ kind: 'map', entries: [...entries.values()], at }, values)
  }

  private readKey({ key }: Pair, near: Place): { key: string; at: Place } {
    const at = this.placeOf(key) ?? near
    if (!this.yaml.isScalar(key)) throw new Wrong('a key is a text', at, QUOTE)
    const text = typeof key.value === 'string' ? key.value : (key.source ?? '')
    return { key: text.toWellFormed(), at }
  }

  private placeOf(node: unknown): Place | undefined {
    const range = (node as Node | null | undefined)?.range
    return range == null ? undefined : this.placeAt(range[0])
  }
}

function leaf(value: string | number | boolean | null, at: Place): Sized {
  return { tree: { kind: 'leaf', value, at }, size: 1, depth: 0 }
}

function around(tree: Tree, inside: readonly Sized[]): Sized {
  const size = inside.reduce((sum, item) => sum + item.size, 1)
  const depth = inside.reduce((most, item) => Math.max(most, item.depth), 0) + 1
  return { tree, size, depth }
}
