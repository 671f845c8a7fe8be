import { RecipeError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { Path } from '../../base/text.ts'

/** A place in a file, counted from 1. */
export interface PromptPlace {
  readonly line: number
  readonly column: number
}

/** The data of a file, with the place of each value. */
export type PromptTree = PromptLeaf | PromptList | PromptMap

export interface PromptLeaf {
  readonly kind: 'leaf'
  readonly value: string | number | boolean | null
  readonly at: PromptPlace
}

export interface PromptList {
  readonly kind: 'list'
  readonly items: readonly PromptTree[]
  readonly at: PromptPlace
}

export interface PromptMap {
  readonly kind: 'map'
  readonly entries: readonly PromptEntry[]
  readonly at: PromptPlace
}

export interface PromptEntry {
  readonly key: string
  /** The place of the key. */
  readonly at: PromptPlace
  readonly value: PromptTree
}

/** The data of a tree without the places. */
export function dataOf(tree: PromptTree): Json {
  if (tree.kind === 'leaf') return tree.value
  if (tree.kind === 'list') return tree.items.map(dataOf)
  return Object.fromEntries(tree.entries.map(({ key, value }) => [key, dataOf(value)]))
}

/** Makes a tree from plain data, all at one place. */
export function treeAt(value: Json, at: PromptPlace): PromptTree {
  if (typeof value !== 'object' || value === null) return { kind: 'leaf', value, at }
  if (Array.isArray(value)) return { kind: 'list', items: value.map((item) => treeAt(item, at)), at }
  const entries = Object.entries(value).map(([key, item]) => ({ key, at, value: treeAt(item, at) }))
  return { kind: 'map', entries, at }
}

export function entryOf(tree: PromptTree, key: string | number): PromptEntry | undefined {
  if (tree.kind === 'map') return tree.entries.find((entry) => entry.key === key)
  const item = tree.kind === 'list' && typeof key === 'number' ? tree.items[key] : undefined
  return item === undefined ? undefined : { key: String(key), at: item.at, value: item }
}

/** The place of the value at this path, or of the nearest one around it. */
export function placeOf(tree: PromptTree, path: Path): PromptPlace {
  const [key, ...others] = path
  const entry = key === undefined ? undefined : entryOf(tree, key)
  if (entry === undefined) return tree.at
  return others.length === 0 ? entry.at : placeOf(entry.value, others)
}

export interface FileTrouble {
  /** The problem, in words. */
  readonly problem: string
  readonly file: string
  readonly at?: PromptPlace
  /** How to fix it. */
  readonly hint?: string
  readonly cause?: unknown
}

/** The error for a problem of a prompt file: `file:line:column: problem hint`; `details` has the parts. */
export function fileError({ problem, file, at, hint, cause }: FileTrouble): RecipeError {
  const place = at === undefined ? file : `${file}:${at.line}:${at.column}`
  const sentence = /[.!?]$/.test(problem) ? problem : `${problem}.`
  return new RecipeError('recipe', [`${place}: ${sentence}`, hint].filter(Boolean).join(' '), {
    details: { problem, file, line: at?.line ?? null, column: at?.column ?? null, hint: hint ?? null },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** A problem at a place of the text; the reader of the file adds its name. */
export class FileProblem extends Error {
  readonly at: PromptPlace
  readonly hint: string | undefined

  constructor(problem: string, at: PromptPlace, hint?: string) {
    super(problem)
    this.at = at
    this.hint = hint
  }
}
