import { type JsonSchema, refersTo, resolvePointer } from '../base/schema/json-schema.ts'
import { ANY, BOOLEAN, LIST, NULL, NUMBER, OBJECT, STRING, valueKind } from './chars.ts'
import type { OpenContainer } from './frame.ts'

/**
 * The facts that a JSON Schema shows at first sight: the kinds of its value, the keys it knows, the schema of its
 * items.
 */
export interface SchemaView {
  /** The possible kinds as bits. */
  readonly kinds: number
  /** Undefined where the schema knows every key. */
  readonly keys: ReadonlySet<string> | undefined
  /** True when it accepts an object or list with nothing in it. */
  readonly mayBeEmpty: boolean
  readonly items: SchemaView | undefined
}

/** Follows references between schemas. A circle, or a keyword that is not understood, restricts nothing. */
export function viewSchema(schema: JsonSchema): SchemaView {
  return view(schema, { root: schema, seen: [], hasItems: true })
}

export function isSchemaObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

interface Walk {
  readonly root: JsonSchema
  /** The schemas around this one that describe the same value. */
  readonly seen: readonly unknown[]
  /** False inside items, because nobody needs the items of items. */
  readonly hasItems: boolean
}

const anything: SchemaView = { kinds: ANY, keys: undefined, mayBeEmpty: true, items: undefined }

function view(schema: unknown, walk: Walk): SchemaView {
  if (!isSchemaObject(schema) || walk.seen.includes(schema)) return anything
  const inner = { ...walk, seen: [...walk.seen, schema] }
  const parts = [viewOwn(schema, walk)]
  const target = refersTo(schema)
  if (target !== undefined) parts.push(view(resolvePointer(walk.root, target), inner))
  if (Array.isArray(schema['allOf'])) parts.push(...schema['allOf'].map((part) => view(part, inner)))
  for (const word of ['anyOf', 'oneOf']) {
    const branches = schema[word]
    if (Array.isArray(branches) && branches.length > 0) parts.push(branches.map((part) => view(part, inner)).reduce(or))
  }
  return parts.reduce(and)
}

function viewOwn(schema: JsonSchema, walk: Walk): SchemaView {
  const isEmptyFine =
    !(Array.isArray(schema['required']) && schema['required'].length > 0) && isZero(schema['minItems'])
  const { items } = schema
  return {
    kinds: kindsOf(schema),
    keys: keysOf(schema),
    mayBeEmpty: isEmptyFine && isZero(schema['minProperties']),
    items: walk.hasItems && items !== undefined ? view(items, { ...walk, seen: [], hasItems: false }) : undefined,
  }
}

/** Joins two views of which a value must fit both. */
function and(a: SchemaView, b: SchemaView): SchemaView {
  return {
    kinds: a.kinds & b.kinds,
    keys: a.keys === undefined ? b.keys : joined(a.keys, b.keys ?? []),
    mayBeEmpty: a.mayBeEmpty && b.mayBeEmpty,
    items: a.items ?? b.items,
  }
}

/**
 * Joins two views of which a value must fit one. A schema that allows no object says nothing of keys, one that allows
 * no list nothing of items.
 */
function or(a: SchemaView, b: SchemaView): SchemaView {
  return {
    kinds: a.kinds | b.kinds,
    keys: eitherKeys(a, b),
    mayBeEmpty: a.mayBeEmpty || b.mayBeEmpty,
    items: eitherItems(a, b),
  }
}

function eitherKeys(a: SchemaView, b: SchemaView): ReadonlySet<string> | undefined {
  if ((a.kinds & OBJECT) === 0) return b.keys
  if ((b.kinds & OBJECT) === 0) return a.keys
  return a.keys && b.keys && joined(a.keys, b.keys)
}

function eitherItems(a: SchemaView, b: SchemaView): SchemaView | undefined {
  if ((a.kinds & LIST) === 0) return b.items
  if ((b.kinds & LIST) === 0) return a.items
  return a.items && b.items && or(a.items, b.items)
}

function joined(a: Iterable<string>, b: Iterable<string>): ReadonlySet<string> {
  return new Set([...a, ...b])
}

function keysOf({ properties, patternProperties }: JsonSchema): ReadonlySet<string> | undefined {
  if (!isSchemaObject(properties) || patternProperties !== undefined) return undefined
  const keys = Object.keys(properties)
  return keys.length === 0 ? undefined : new Set(keys)
}

function kindsOf(schema: JsonSchema): number {
  const { type } = schema
  const bits = (Array.isArray(type) ? type : [type]).reduce<number>((sum, name) => sum | (kindNames.get(name) ?? 0), 0)
  if (bits !== 0) return bits
  if ('const' in schema) return valueKind(schema['const'])
  return Array.isArray(schema['enum']) ? schema['enum'].reduce<number>((sum, value) => sum | valueKind(value), 0) : ANY
}

const kindNames = new Map<unknown, number>([
  ['object', OBJECT],
  ['array', LIST],
  ['string', STRING],
  ['number', NUMBER],
  ['integer', NUMBER],
  ['boolean', BOOLEAN],
  ['null', NULL],
])

function isZero(least: unknown): boolean {
  return typeof least !== 'number' || least <= 0
}

/** Tells the document that the caller looks for from other text in brackets. */
export interface CommitRule {
  /** The possible kinds of the document as bits. */
  readonly kinds: number
  readonly hasSchema: boolean
  /** `kind` is the kind that the value shows so far; 0 where it can become no value. */
  commits(parent: OpenContainer, key: string | number, kind: number): boolean
  commitsEmpty(kind: number): boolean
}

/**
 * Commits an object at its first key that the schema knows, and a list at its first item of a kind that the schema
 * wants; where the items have known keys, at the first of these. Without a schema anything commits.
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
