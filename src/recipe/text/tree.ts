import type { Json } from '../../base/json.ts'

/** What a YAML, JSON or TOML text says, with where it says it. Leaves keep their source text beside their value. */
export type Tree = Leaf | ListTree | MapTree

export interface Leaf {
  readonly kind: 'leaf'
  readonly value: string | number | boolean | null
  /** As it was written where it was not quoted: `1.10`, `yes`, `007`. */
  readonly text: string
  readonly line: number
  /** The line of the first character of the text; that of a block is below its key. */
  readonly textLine: number
  /** How far a block is indented in the file; 0 for all that is no block. */
  readonly indent: number
  /** It came from a template, which can give texts only: a number may be written in it. */
  readonly isTemplated?: boolean
}

export interface ListTree {
  readonly kind: 'list'
  readonly items: readonly Tree[]
  readonly line: number
}

export interface MapTree {
  readonly kind: 'map'
  readonly entries: ReadonlyMap<string, Entry>
  readonly line: number
}

export interface Entry {
  readonly line: number
  readonly value: Tree
}

function leafOf(value: Leaf['value'], line: number, text: string = value === null ? '' : String(value)): Leaf {
  return { kind: 'leaf', value, text, line, textLine: line, indent: 0 }
}

/** The typed value: numbers are numbers, unlike in fields that hold texts. */
export function jsonOf(tree: Tree): Json {
  if (tree.kind === 'leaf') return tree.value
  if (tree.kind === 'list') return tree.items.map(jsonOf)
  return Object.fromEntries([...tree.entries].map(([key, { value }]) => [key, jsonOf(value)]))
}

/** The same of plain data that has no lines, such as TOML: all on the first. */
export function treeOf(value: Json, line = 1): Tree {
  if (Array.isArray(value)) return { kind: 'list', items: value.map((item) => treeOf(item, line)), line }
  if (typeof value !== 'object' || value === null) return leafOf(value, line)
  const entries = Object.entries(value).map(([key, item]): [string, Entry] => [
    key,
    { line, value: treeOf(item, line) },
  ])
  return { kind: 'map', entries: new Map(entries), line }
}

/** Every text that stands as a value, not as a key. */
export function* textsOf(tree: Tree): Generator<Leaf> {
  if (tree.kind === 'leaf') {
    if (typeof tree.value === 'string') yield tree
    return
  }
  const children = tree.kind === 'list' ? tree.items : [...tree.entries.values()].map(({ value }) => value)
  for (const child of children) yield* textsOf(child)
}

/** The leaf after its template was rendered. */
export function renderedLeaf(leaf: Leaf, text: string): Leaf {
  return { ...leaf, value: text, text, isTemplated: true }
}

/** The same tree with these leaves instead of some of its own. */
export function withLeaves(tree: Tree, replaced: ReadonlyMap<Leaf, Leaf>): Tree {
  if (tree.kind === 'leaf') return replaced.get(tree) ?? tree
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => withLeaves(item, replaced)) }
  const entries = [...tree.entries].map(([key, { line, value }]): [string, Entry] => {
    return [key, { line, value: withLeaves(value, replaced) }]
  })
  return { ...tree, entries: new Map(entries) }
}

export function entryOf(tree: Tree | undefined, key: string): Tree | undefined {
  return tree?.kind === 'map' ? tree.entries.get(key)?.value : undefined
}

/** Left out, `~`, `null` or nothing after the colon: all the same. */
export function isAbsent(tree: Tree | undefined): tree is undefined {
  return tree === undefined || (tree.kind === 'leaf' && tree.value === null)
}
