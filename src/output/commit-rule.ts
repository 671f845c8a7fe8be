import type { Frame } from './frame.ts'
import { ANY, LIST, OBJECT } from './kinds.ts'
import type { SchemaView } from './schema-view.ts'

/** Tells the document that is looked for from other things in brackets. */
export interface CommitRule {
  /** Bits of the kinds that the document may have. */
  readonly kinds: number
  readonly hasSchema: boolean
  /** `kind` is what the value shows of its kind: 0 where it is nothing that could become one. */
  commits(parent: Frame, key: string | number, kind: number): boolean
  commitsEmpty(kind: number): boolean
}

/**
 * An object is taken for the document at its first key that the schema knows, a list at its first item of a kind that
 * the schema asks for; where items have keys that are known, at the first of these. Without a schema anything counts.
 */
export function commitRule(view: SchemaView | undefined): CommitRule {
  if (view === undefined)
    return { kinds: ANY, hasSchema: false, commits: (_parent, _key, kind) => kind !== 0, commitsEmpty: () => true }
  const { items } = view
  const itemKeys = items === undefined || (items.kinds & OBJECT) === 0 ? undefined : items.keys
  const commitsItem = (kind: number): boolean => {
    if (items !== undefined && (items.kinds & kind) === 0) return false
    return kind !== OBJECT || itemKeys === undefined
  }
  return {
    kinds: view.kinds,
    hasSchema: true,
    commits(parent, key, kind) {
      if (kind === 0) return false
      if (parent.depth === 1) return parent.list === null ? knows(view.keys, key) : commitsItem(kind)
      return parent.depth === 2 && parent.parent?.list != null && parent.list === null && knows(itemKeys, key)
    },
    commitsEmpty: (kind) => (kind === OBJECT || kind === LIST) && view.mayBeEmpty,
  }
}

function knows(keys: ReadonlySet<string> | undefined, key: string | number): boolean {
  return keys === undefined || keys.has(String(key))
}
