import type { Json } from '../../core/base/json.ts'

/** A YAML, JSON or TOML text as a tree with line numbers. Leaves keep their source text beside their value. */
export type TextTree = TextLeaf | TextList | TextMap

export interface TextLeaf {
  readonly kind: 'leaf'
  readonly value: string | number | boolean | null
  /** The text as written if it was not quoted: `1.10`, `yes`, `007`. */
  readonly text: string
  readonly line: number
  /** The line of the first character; a block begins below its key. */
  readonly textLine: number
  /** The indentation of a block in the file; 0 if it is not a block. */
  readonly indent: number
  /** Whether it came from a template, which yields only texts: a number may be written in it. */
  readonly isTemplated?: boolean
}

export interface TextList {
  readonly kind: 'list'
  readonly items: readonly TextTree[]
  readonly line: number
}

export interface TextMap {
  readonly kind: 'map'
  readonly entries: ReadonlyMap<string, TextEntry>
  readonly line: number
}

export interface TextEntry {
  readonly line: number
  readonly value: TextTree
}

function leafOf(value: TextLeaf['value'], line: number, text: string = value === null ? '' : String(value)): TextLeaf {
  return { kind: 'leaf', value, text, line, textLine: line, indent: 0 }
}

/** Returns the typed value: numbers become numbers, unlike in fields for texts. */
export function jsonOf(tree: TextTree): Json {
  if (tree.kind === 'leaf') return tree.value
  if (tree.kind === 'list') return tree.items.map(jsonOf)
  return Object.fromEntries([...tree.entries].map(([key, { value }]) => [key, jsonOf(value)]))
}

/** Builds a tree from plain data without lines, such as TOML: everything is on one line. */
export function treeOf(value: Json, line = 1): TextTree {
  if (Array.isArray(value)) return { kind: 'list', items: value.map((item) => treeOf(item, line)), line }
  if (typeof value !== 'object' || value === null) return leafOf(value, line)
  const entries = Object.entries(value).map(([key, item]): [string, TextEntry] => [
    key,
    { line, value: treeOf(item, line) },
  ])
  return { kind: 'map', entries: new Map(entries), line }
}

/** Lists every text that is a value, not a key. */
export function* textsOf(tree: TextTree): Generator<TextLeaf> {
  if (tree.kind === 'leaf') {
    if (typeof tree.value === 'string') yield tree
    return
  }
  const children = tree.kind === 'list' ? tree.items : [...tree.entries.values()].map(({ value }) => value)
  for (const child of children) yield* textsOf(child)
}

/** Builds the leaf after its template was rendered. */
export function renderedLeaf(leaf: TextLeaf, text: string): TextLeaf {
  return { ...leaf, value: text, text, isTemplated: true }
}

/** Copies a tree and replaces some of its leaves. */
export function withLeaves(tree: TextTree, replaced: ReadonlyMap<TextLeaf, TextLeaf>): TextTree {
  if (tree.kind === 'leaf') return replaced.get(tree) ?? tree
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => withLeaves(item, replaced)) }
  const entries = [...tree.entries].map(([key, { line, value }]): [string, TextEntry] => {
    return [key, { line, value: withLeaves(value, replaced) }]
  })
  return { ...tree, entries: new Map(entries) }
}

export function entryOf(tree: TextTree | undefined, key: string): TextTree | undefined {
  return tree?.kind === 'map' ? tree.entries.get(key)?.value : undefined
}

/** Treats a missing key, `~`, `null` and an empty value alike. */
export function isAbsent(tree: TextTree | undefined): tree is undefined {
  return tree === undefined || (tree.kind === 'leaf' && tree.value === null)
}
