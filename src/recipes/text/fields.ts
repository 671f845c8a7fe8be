import type { Json } from '../../core/base/json.ts'
import {
  isAbsent,
  jsonOf,
  type TextLeaf,
  type TextMap,
  type TextTree,
  valueAt,
} from '../../core/base/text-tree/tree.ts'
import type { NoticeReport } from './notice.ts'

/**
 * Reads typed fields of a map. A missing field or one of the wrong type is reported with its path and line and read as
 * null or empty, so that one pass finds every problem.
 */
export class Fields {
  readonly path: string
  private readonly tree: TextTree | undefined
  private readonly report: NoticeReport

  constructor(tree: TextTree | undefined, report: NoticeReport, path = '') {
    this.tree = tree
    this.report = report
    this.path = path
  }

  get line(): number | null {
    return this.tree?.line ?? null
  }

  has(key: string): boolean {
    return !isAbsent(this.get(key))
  }

  get(key: string): TextTree | undefined {
    return valueAt(this.tree, key)
  }

  keys(): string[] {
    return this.tree?.kind === 'map' ? [...this.tree.entries.keys()] : []
  }

  lineOf(key: string): number | null {
    return (this.tree?.kind === 'map' ? this.tree.entries.get(key)?.line : undefined) ?? this.line
  }

  /** Tells whether it is a map, and reports it if not. */
  isMap(expected: string): boolean {
    if (this.tree?.kind === 'map') return true
    this.wrong(this.path, this.tree, expected)
    return false
  }

  /** Reads a text as written: `1.10` and `yes` stay what they are. */
  text(key: string): string | null {
    const tree = this.get(key)
    if (isAbsent(tree)) return null
    if (tree.kind === 'leaf') return tree.text
    this.wrong(this.at(key), tree, 'a string')
    return null
  }

  requiredText(key: string): string {
    if (this.has(key)) return this.text(key) ?? ''
    this.missing(key)
    return ''
  }

  missing(key: string): void {
    const at = this.path === '' ? '' : `${this.path}: `
    const message = `${at}missing field \`${key}\``
    this.report.error({ code: 'missing_field', message, line: this.line, hint: `Add "${key}: ...".` })
  }

  number(key: string, expected = 'f32'): number | null {
    const tree = this.get(key)
    if (isAbsent(tree) || isOpen(tree)) return null
    const value = numberIn(tree)
    if (value !== undefined) return value
    this.wrong(this.at(key), tree, expected)
    return null
  }

  wholeNumber(key: string, expected = 'u32'): number | null {
    const tree = this.get(key)
    if (isAbsent(tree) || isOpen(tree)) return null
    const value = numberIn(tree)
    if (value !== undefined && Number.isSafeInteger(value) && value >= 0) return value
    this.wrong(this.at(key), tree, expected)
    return null
  }

  flag(key: string): boolean | null {
    const tree = this.get(key)
    if (isAbsent(tree) || isOpen(tree)) return null
    const value = tree.kind === 'leaf' && tree.isTemplated ? BOOLEANS.get(tree.text) : jsonOf(tree)
    if (typeof value === 'boolean') return value
    this.wrong(this.at(key), tree, 'a boolean')
    return null
  }

  /** Reads a list, each element with its path; null if there is none. */
  list(key: string): readonly Fields[] | null {
    const tree = this.get(key)
    if (isAbsent(tree)) return null
    if (tree.kind === 'list') return tree.items.map((item, index) => this.inner(item, `${this.at(key)}[${index}]`))
    this.wrong(this.at(key), tree, 'a sequence')
    return null
  }

  texts(key: string): readonly string[] | null {
    const items = this.list(key)
    if (items === null) return null
    return items.flatMap((item) => item.ownText() ?? [])
  }

  /** Reads a list of words that only the author of the file may choose. One with a template is refused and left out. */
  writtenTexts(key: string): readonly string[] {
    return (this.list(key) ?? []).flatMap((item) => {
      if (item.tree?.kind !== 'leaf' || item.tree.isTemplated !== true) return item.ownText() ?? []
      const message = `${item.path}: a template may not choose it: whoever gives the value would`
      this.report.error({ code: 'template', message, line: item.tree.line, hint: 'Write the name itself.' })
      return []
    })
  }

  /** Reads a map from names to texts, such as `envs`. */
  textMap(key: string): Readonly<Record<string, string>> {
    const fields = this.map(key)
    if (fields === null) return {}
    return Object.fromEntries(fields.keys().map((name) => [name, fields.text(name) ?? '']))
  }

  map(key: string): Fields | null {
    const tree = this.get(key)
    if (isAbsent(tree)) return null
    const fields = this.inner(tree, this.at(key))
    return fields.isMap('a map') ? fields : null
  }

  json(key: string): Json | undefined {
    const tree = this.get(key)
    return isAbsent(tree) ? undefined : jsonOf(tree)
  }

  choice<T extends string>(key: string, choices: readonly T[], fallback: T): T {
    const text = this.text(key)
    if (text === null) {
      if (!this.has(key)) this.missing(key)
      return fallback
    }
    const found = choices.find((choice) => choice === text)
    if (found !== undefined) return found
    const expected = choices.map((choice) => `\`${choice}\``).join(', ')
    const message = `${this.at(key)}: unknown variant \`${text}\`, expected one of ${expected}`
    this.report.error({ code: 'invalid_value', message, line: this.lineOf(key) })
    return fallback
  }

  /** Reports keys that nobody reads: they may be misspelt. One that would restrict is a warning with advice. */
  reportUnknown(known: readonly string[], adviceOn: (key: string) => string | undefined = () => undefined): void {
    for (const key of this.keys().filter((one) => !known.includes(one))) {
      const about = { code: 'unknown_key', message: `unknown key \`${this.at(key)}\``, line: this.lineOf(key) } as const
      const advice = adviceOn(key)
      if (advice === undefined) this.report.note({ ...about, hint: `It is ignored.${nearest(key, known)}` })
      else this.report.warning({ ...about, hint: `It restricts nothing. ${advice}` })
    }
  }

  /** Returns these fields with other keys. */
  rekeyed(change: (tree: TextMap) => TextMap): Fields {
    return this.tree?.kind === 'map' ? this.inner(change(this.tree), this.path) : this
  }

  at(key: string): string {
    return this.path === '' ? key : `${this.path}.${key}`
  }

  private ownText(): string | null {
    if (this.tree?.kind === 'leaf' && this.tree.value !== null) return this.tree.text
    this.wrong(this.path, this.tree, 'a string')
    return null
  }

  private inner(tree: TextTree, path: string): Fields {
    return new Fields(tree, this.report, path)
  }

  private wrong(path: string, tree: TextTree | undefined, expected: string): void {
    const at = path === '' ? '' : `${path}: `
    const message = `${at}invalid type: ${describe(tree)}, expected ${expected}`
    this.report.error({ code: 'invalid_value', message, line: tree?.line ?? this.line })
  }
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

/** Tells whether the value still holds a template and is therefore unknown. */
function isOpen(tree: TextTree): boolean {
  return tree.kind === 'leaf' && tree.isTemplated === true && /\{[{%]/.test(tree.text)
}

/** Reads a number; one from a template is parsed from its text. */
function numberIn(tree: TextTree): number | undefined {
  if (tree.kind !== 'leaf') return undefined
  if (typeof tree.value === 'number' && Number.isFinite(tree.value)) return tree.value
  const isNumber = tree.isTemplated === true && /^\s*-?\d+(?:\.\d+)?(?:e[-+]?\d+)?\s*$/i.test(tree.text)
  return isNumber ? Number(tree.text) : undefined
}

function describe(tree: TextTree | undefined): string {
  if (tree === undefined) return 'unit value'
  if (tree.kind === 'list') return 'sequence'
  return tree.kind === 'map' ? 'map' : describeLeaf(tree)
}

function describeLeaf({ value, text }: TextLeaf): string {
  if (value === null) return 'unit value'
  if (typeof value === 'boolean') return `boolean \`${value}\``
  if (typeof value === 'string') return `string ${JSON.stringify(value.slice(0, 80))}`
  return `${Number.isInteger(value) ? 'integer' : 'floating point'} \`${text}\``
}

function nearest(key: string, known: readonly string[]): string {
  const bare = (name: string) => name.toLowerCase().replace(/[_-]|s$/g, '')
  const found = known.find((name) => bare(name) === bare(key))
  return found === undefined ? '' : ` Did you mean "${found}"?`
}

/** Looks up a name from outside safely: `constructor` finds nothing. */
export function ownValue<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
