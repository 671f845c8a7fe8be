// Texts that people write as data: YAML, JSON and TOML become one kind of tree, in which each value knows its place.
//
// Owns:      the tree, its problems, and how a tree is made, searched and copied.
// Called by: the readers of YAML and JSON beside it make trees; prompt files, recipes and agent files read them.
// Must stay true:
//   - Each value, list, map and key has the line and column where it begins, so every problem names its place.
//   - Trees are never changed: filling in a template or a mapping makes a copy.

import type { Json } from '../json.ts'
import type { Path } from '../text.ts'

/** A place in a text, counted from 1. */
export interface TextPlace {
  readonly line: number
  readonly column: number
}

/** A YAML, JSON or TOML text as a tree with the place of each value. Leaves keep their source text beside their value. */
export type TextTree = TextLeaf | TextList | TextMap

export interface TextLeaf extends TextPlace {
  readonly kind: 'leaf'
  readonly value: string | number | boolean | null
  /** The text as written if it was not quoted: `1.10`, `yes`, `007`. */
  readonly text: string
  /** The line of the first character; a block begins below its key. */
  readonly textLine: number
  /** The indentation of a block in the file; 0 if it is not a block. */
  readonly indent: number
  /** Whether it came from a template, which yields only texts: a number may be written in it. */
  readonly isTemplated?: boolean
}

export interface TextList extends TextPlace {
  readonly kind: 'list'
  readonly items: readonly TextTree[]
}

export interface TextMap extends TextPlace {
  readonly kind: 'map'
  readonly entries: ReadonlyMap<string, TextEntry>
}

/** An entry of a map, at the place of its key. */
export interface TextEntry extends TextPlace {
  readonly value: TextTree
}

/** An error at a place of the text. The reader of a file adds the file's name. */
export class TextProblem extends Error {
  readonly at: TextPlace
  readonly hint: string | undefined
  /** Whether the text breaks the rules of its language. */
  readonly isSyntax: boolean

  constructor(problem: string, at: TextPlace, hint?: string, isSyntax = false) {
    super(problem)
    this.at = { line: at.line, column: at.column }
    this.hint = hint
    this.isSyntax = isSyntax
  }
}

export function leafAt(value: TextLeaf['value'], { line, column }: TextPlace, text = String(value ?? '')): TextLeaf {
  return { kind: 'leaf', value, text, line, column, textLine: line, indent: 0 }
}

/** Builds a tree from plain data without places, such as TOML: everything is at one place. */
export function treeAt(value: Json, at: TextPlace = { line: 1, column: 1 }): TextTree {
  const { line, column } = at
  if (Array.isArray(value)) return { kind: 'list', items: value.map((item) => treeAt(item, at)), line, column }
  if (typeof value !== 'object' || value === null) return leafAt(value, at)
  const entries = Object.entries(value).map(([key, item]): [string, TextEntry] => {
    return [key, { line, column, value: treeAt(item, at) }]
  })
  return { kind: 'map', entries: new Map(entries), line, column }
}

/** Returns the typed value: numbers become numbers, unlike in fields for texts. */
export function jsonOf(tree: TextTree): Json {
  if (tree.kind === 'leaf') return tree.value
  if (tree.kind === 'list') return tree.items.map(jsonOf)
  return Object.fromEntries([...tree.entries].map(([key, { value }]) => [key, jsonOf(value)]))
}

/** Lists every value that is neither a list nor a map. */
export function* leavesOf(tree: TextTree): Generator<TextLeaf> {
  if (tree.kind === 'leaf') {
    yield tree
    return
  }
  const children = tree.kind === 'list' ? tree.items : [...tree.entries.values()].map(({ value }) => value)
  for (const child of children) yield* leavesOf(child)
}

/** Lists every text that is a value, not a key. */
export function textsOf(tree: TextTree): TextLeaf[] {
  return [...leavesOf(tree)].filter(({ value }) => typeof value === 'string')
}

/** Builds the leaf after its template was rendered. */
export function renderedLeaf(leaf: TextLeaf, text: string): TextLeaf {
  return { ...leaf, value: text, text, isTemplated: true }
}

/** Copies a tree and replaces some of its leaves. */
export function withLeaves(tree: TextTree, replaced: ReadonlyMap<TextLeaf, TextLeaf>): TextTree {
  if (tree.kind === 'leaf') return replaced.get(tree) ?? tree
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => withLeaves(item, replaced)) }
  const entries = [...tree.entries].map(([key, entry]): [string, TextEntry] => {
    return [key, { ...entry, value: withLeaves(entry.value, replaced) }]
  })
  return { ...tree, entries: new Map(entries) }
}

/** The entry of a map by its key, or of a list by its index. */
export function entryOf(tree: TextTree, key: string | number): TextEntry | undefined {
  if (tree.kind === 'map') return tree.entries.get(String(key))
  const item = tree.kind === 'list' && typeof key === 'number' ? tree.items[key] : undefined
  return item === undefined ? undefined : { line: item.line, column: item.column, value: item }
}

export function valueAt(tree: TextTree | undefined, key: string): TextTree | undefined {
  return tree?.kind === 'map' ? tree.entries.get(key)?.value : undefined
}

/** The place of the value at this path, or of the nearest one around it. */
export function placeAt(tree: TextTree, path: Path): TextPlace {
  const [key, ...others] = path
  const entry = key === undefined ? undefined : entryOf(tree, key)
  if (entry === undefined) return tree
  return others.length === 0 ? entry : placeAt(entry.value, others)
}

/** Treats a missing key, `~`, `null` and an empty value alike. */
export function isAbsent(tree: TextTree | undefined): tree is undefined {
  return tree === undefined || (tree.kind === 'leaf' && tree.value === null)
}
