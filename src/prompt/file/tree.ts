import { RecipeError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { Path } from '../../base/text.ts'

/** Where something stands in a file, counted from 1. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** What a file says, with where it says it. */
export type Tree = Leaf | ListTree | MapTree

export interface Leaf {
  readonly kind: 'leaf'
  readonly value: string | number | boolean | null
  readonly at: Place
}

export interface ListTree {
  readonly kind: 'list'
  readonly items: readonly Tree[]
  readonly at: Place
}

export interface MapTree {
  readonly kind: 'map'
  readonly entries: readonly Entry[]
  readonly at: Place
}

export interface Entry {
  readonly key: string
  /** Of the key. */
  readonly at: Place
  readonly value: Tree
}

/** The data alone. */
export function dataOf(tree: Tree): Json {
  if (tree.kind === 'leaf') return tree.value
  if (tree.kind === 'list') return tree.items.map(dataOf)
  return Object.fromEntries(tree.entries.map(({ key, value }) => [key, dataOf(value)]))
}

/** Plain data as if it all stood at one place. */
export function treeAt(value: Json, at: Place): Tree {
  if (typeof value !== 'object' || value === null) return { kind: 'leaf', value, at }
  if (Array.isArray(value)) return { kind: 'list', items: value.map((item) => treeAt(item, at)), at }
  const entries = Object.entries(value).map(([key, item]) => ({ key, at, value: treeAt(item, at) }))
  return { kind: 'map', entries, at }
}

export function entryOf(tree: Tree, key: string | number): Entry | undefined {
  if (tree.kind === 'map') return tree.entries.find((entry) => entry.key === key)
  const item = tree.kind === 'list' && typeof key === 'number' ? tree.items[key] : undefined
  return item === undefined ? undefined : { key: String(key), at: item.at, value: item }
}

/** Where the value at this path is written, or the nearest one around it. */
export function placeOf(tree: Tree, path: Path): Place {
  const [key, ...others] = path
  const entry = key === undefined ? undefined : entryOf(tree, key)
  if (entry === undefined) return tree.at
  return others.length === 0 ? entry.at : placeOf(entry.value, others)
}

export interface Trouble {
  /** What is wrong. */
  readonly problem: string
  readonly file: string
  readonly at?: Place
  /** What can be done about it. */
  readonly hint?: string
  readonly cause?: unknown
}

/** What is wrong with a prompt file, where and what to do: `file:line:column: problem hint`; `details` has the parts. */
export function fileError({ problem, file, at, hint, cause }: Trouble): RecipeError {
  const place = at === undefined ? file : `${file}:${at.line}:${at.column}`
  const sentence = /[.!?]$/.test(problem) ? problem : `${problem}.`
  return new RecipeError('recipe', [`${place}: ${sentence}`, hint].filter(Boolean).join(' '), {
    details: { problem, file, line: at?.line ?? null, column: at?.column ?? null, hint: hint ?? null },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Something wrong at a place of the text in hand; who reads the file adds its name. */
export class Wrong extends Error {
  readonly at: Place
  readonly hint: string | undefined

  constructor(problem: string, at: Place, hint?: string) {
    super(problem)
    this.at = at
    this.hint = hint
  }
}
