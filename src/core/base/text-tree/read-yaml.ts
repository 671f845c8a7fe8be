import type { Alias, CST, Document, LineCounter, Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml'
import { leafAt, type TextEntry, type TextLeaf, type TextPlace, TextProblem, type TextTree } from './tree.ts'

export interface YamlOptions {
  /** How deep values may nest. */
  readonly deepest: number
  /** How many values there may be, with every alias expanded. */
  readonly mostValues: number
  /** How many tokens of YAML there may be: a key with its value has seven. */
  readonly mostWords: number
  /** Reads an unquoted `{{ name }}` as the text that it looks like. */
  readonly hasTemplates?: boolean
}

/**
 * Reads YAML 1.2 (and JSON, which is YAML) in bounded time. Accepts one document and no repeated key; merge keys are ordinary
 * keys. Throws a TextProblem.
 */
export async function readYaml(text: string, options: YamlOptions): Promise<TextTree> {
  yamlModule ??= await import('yaml')
  return new YamlReader(yamlModule, text, options).read()
}

/** Loaded with the first text and kept. */
let yamlModule: typeof import('yaml') | undefined

const START: TextPlace = { line: 1, column: 1 }
const COMPOSING = {
  uniqueKeys: false,
  prettyErrors: false,
  schema: 'core',
  version: '1.2',
  logLevel: 'silent',
} as const

/** A tree with the number of its values and levels when all aliases are expanded. */
interface MeasuredTree {
  readonly tree: TextTree
  readonly size: number
  readonly depth: number
}

class YamlReader {
  private readonly yaml: typeof import('yaml')
  private readonly source: string
  private readonly options: YamlOptions
  private readonly lines: LineCounter
  private readonly anchors: Map<string, MeasuredTree | null> = new Map()

  constructor(yaml: typeof import('yaml'), source: string, options: YamlOptions) {
    this.yaml = yaml
    this.source = source
    this.options = options
    this.lines = new yaml.LineCounter()
  }

  read(): TextTree {
    const tokens = this.tokens()
    const composer = new this.yaml.Composer(COMPOSING)
    const [document, second] = [...composer.compose(tokens, true, this.source.length)] as Document[]
    const [error] = document?.errors ?? []
    if (error !== undefined) throw this.syntaxError(error.message, this.placeAt(error.pos[0]))
    if (second !== undefined) {
      const at = this.placeAt(second.range?.[0] ?? 0)
      throw new TextProblem('there is more than one document', at, 'Keep one file for each.')
    }
    return this.readAny(document?.contents, START).tree
  }

  /** Stops the parser while it reads: 1 MB of brackets would take it half a minute. */
  private tokens(): CST.Token[] {
    const { deepest, mostWords } = this.options
    const tokens: CST.Token[] = []
    const parser = new this.yaml.Parser(this.lines.addNewLine)
    this.lines.addNewLine(0)
    let words = 0
    for (const word of new this.yaml.Lexer().lex(this.source)) {
      for (const token of parser.next(word)) tokens.push(token)
      // Reports the first error only; it reads no further.
      if (tokens.at(-1)?.type === 'error') break
      if (parser.stack.length > deepest) {
        throw new TextProblem(`nested more than ${deepest} levels deep`, this.placeAt(parser.offset))
      }
      if (++words > mostWords) {
        const hint = 'Move what is long into files of its own.'
        throw new TextProblem('it has too many values', this.placeAt(parser.offset), hint)
      }
    }
    tokens.push(...parser.end())
    return tokens
  }

  private syntaxError(message: string, at: TextPlace): TextProblem {
    const written = this.source.split('\n', at.line)[at.line - 1] ?? ''
    return new TextProblem(message, at, hasTextWithColon(written) ? COLON : SIGN, true)
  }

  private readAny(node: unknown, near: TextPlace): MeasuredTree {
    if (node === null || node === undefined) return leaf(null, near)
    const at = this.placeOf(node) ?? near
    if (this.yaml.isAlias(node)) return this.readAlias(node, at)
    const { anchor } = node as { anchor?: string }
    if (anchor !== undefined) this.anchors.set(anchor, null)
    const sized = this.readNode(node as Node, at)
    if (sized.size > this.options.mostValues || sized.depth > this.options.deepest) {
      const hint = 'Write out what is meant, without aliases.'
      throw new TextProblem('its aliases stand for too many values', at, hint)
    }
    if (anchor !== undefined) this.anchors.set(anchor, sized)
    return sized
  }

  private readNode(node: Node, at: TextPlace): MeasuredTree {
    if (this.yaml.isScalar(node)) return this.readScalar(node, at)
    if (this.yaml.isSeq(node)) return this.readList(node, at)
    const template = this.options.hasTemplates === true ? this.unquotedTemplate(node) : undefined
    return template === undefined ? this.readMap((node as YAMLMap).items as Pair[], at) : leaf(template, at)
  }

  private readAlias({ source }: Alias, at: TextPlace): MeasuredTree {
    const found = this.anchors.get(source)
    if (found) return found
    if (found === null) throw new TextProblem(`the alias *${source} is inside of what it stands for`, at)
    throw new TextProblem(`nothing before it is named &${source}`, at, 'Quote a text that begins with *.')
  }

  private readScalar(node: Scalar, { line, column }: TextPlace): MeasuredTree {
    const { value } = node
    const place = { kind: 'leaf', line, column, textLine: line, indent: 0, ...this.blockPlace(node) } as const
    if (typeof value === 'string') {
      const text = value.toWellFormed()
      return { tree: { ...place, value: text, text }, size: 1, depth: 0 }
    }
    const isKept = typeof value === 'number' || typeof value === 'boolean'
    return {
      tree: { ...place, value: isKept ? value : null, text: isKept ? (node.source ?? '') : '' },
      size: 1,
      depth: 0,
    }
  }

  /** Where the text of a block begins and how far it is indented, unless its first line tells. */
  private blockPlace(node: Scalar): Partial<TextLeaf> {
    const { Scalar } = this.yaml
    if (node.type !== Scalar.BLOCK_LITERAL && node.type !== Scalar.BLOCK_FOLDED) return {}
    const start = node.range?.[0] ?? 0
    const from = this.source.indexOf('\n', start) + 1
    const isSaid = /\d/.test(this.source.slice(start, from).split('#', 1)[0] ?? '')
    const [, indent = ''] = /^(?:[ \t]*\r?\n)*( *)\S/.exec(this.source.slice(from, from + 2_000)) ?? []
    return { textLine: this.placeAt(from).line, indent: isSaid ? 0 : indent.length }
  }

  private readList(node: YAMLSeq, at: TextPlace): MeasuredTree {
    const items = node.items.map((item) => (this.yaml.isPair(item) ? this.readMap([item], at) : this.readAny(item, at)))
    return around({ ...place(at), kind: 'list', items: items.map(({ tree }) => tree) }, items)
  }

  private readMap(pairs: readonly Pair[], at: TextPlace): MeasuredTree {
    const entries = new Map<string, TextEntry>()
    const values: MeasuredTree[] = []
    for (const pair of pairs) {
      const { key, ...keyAt } = this.readKey(pair, at)
      if (entries.has(key)) {
        throw new TextProblem(`the key ${JSON.stringify(key)} is there twice`, keyAt, 'Remove one of them.')
      }
      const value = this.readAny(pair.value, keyAt)
      values.push(value)
      entries.set(key, { ...keyAt, value: value.tree })
    }
    return around({ ...place(at), kind: 'map', entries }, values)
  }

  private readKey({ key }: Pair, near: TextPlace): TextPlace & { readonly key: string } {
    const at = this.placeOf(key) ?? near
    if (!this.yaml.isScalar(key)) throw new TextProblem('a key is a text', at, SIGN)
    const text = typeof key.value === 'string' ? key.value : (key.source ?? '')
    return { line: at.line, column: at.column, key: text.toWellFormed() }
  }

  /** To YAML, `key: {{ name }}` is a map with a map for a key. */
  private unquotedTemplate(node: Node): string | undefined {
    if (!this.yaml.isMap(node) || node.flow !== true || node.items.length !== 1 || node.range == null) return undefined
    const [start, end] = node.range
    const text = this.source.slice(start, end)
    return text.startsWith('{{') && text.endsWith('}}') && this.yaml.isMap(node.items[0]?.key) ? text : undefined
  }

  private placeOf(node: unknown): TextPlace | undefined {
    const range = (node as Node | null | undefined)?.range
    return range == null ? undefined : this.placeAt(range[0])
  }

  private placeAt(offset: number): TextPlace {
    const { line, col } = this.lines.linePos(offset)
    return line < 1 ? START : { line, column: Math.max(1, col) }
  }
}

const COLON = 'Quote a text that has a colon and a space in it, or write it as a block after "|".'
const SIGN = 'Quote a text that has a colon, or that begins with a sign such as @, *, & or {.'

/** `key: one: two`, without quotes. */
function hasTextWithColon(line: string): boolean {
  const begun = /:\s*[^'"|>[{\s]/.exec(line)
  return begun !== null && line.includes(': ', begun.index + begun[0].length)
}

function place({ line, column }: TextPlace): TextPlace {
  return { line, column }
}

function leaf(value: string | null, at: TextPlace): MeasuredTree {
  return { tree: leafAt(value, at), size: 1, depth: 0 }
}

function around(tree: TextTree, inside: readonly MeasuredTree[]): MeasuredTree {
  const size = inside.reduce((sum, item) => sum + item.size, 1)
  const depth = inside.reduce((most, item) => Math.max(most, item.depth), 0) + 1
  return { tree, size, depth }
}
