// The one form of a tree that comes from outside: rows, edges, texts, records and events as the stores write them.
//
// Owns:      the law of that form, and the words for what breaks it.
// Called by: `audit/archive`, before anybody else reads an imported tree.
// Must stay true:
//   - Every reader sees the same tree: a row stands there once, under the letter and the id that its text says, and its text has
//     no key twice and none that nobody knows.
//   - A text says what its row says. Texts of older versions say it with more fields.
//   - Ids have the form of ids, counts are finite and not negative, and whoever follows rows from one to the next comes to an end.

import { isId } from '../base/id.ts'
import { canonicalJson, type Json, parseOwnJson } from '../base/json.ts'
import type { Column, Columns } from '../base/keep-shape.ts'
import type { Commit } from '../graph/commit.ts'
import type { Conversation, Id } from '../graph/rows.ts'
import { CONVERSATION_COLUMNS, LINK_COLUMNS, NODE_COLUMNS, TURN_COLUMNS } from '../graph/rows.ts'
import type { WholeTree, WrittenRow } from '../store/archive.ts'
import { conversationText, linkText, nodeText, turnText, unpackTree } from '../store/codec/tree-text.ts'
import type { RowLetter } from '../store/commit-chain.ts'
import { isMoment, wrongEvent, wrongField } from './field-form.ts'

/** Finds the first thing of a tree from outside that has not the form of stored trees; undefined where all has it. */
export function wrongForm(tree: WholeTree): string | undefined {
  try {
    const wrong = wrongPlaces(tree)
    if (wrong !== undefined) return wrong
    const rows = unpackTree(tree)
    return wrongFields(rows) ?? wrongTexts(tree, rows) ?? wrongWays(rows)
  } catch {
    return 'a row or event is not what rows and events are'
  }
}

const ORDER: readonly RowLetter[] = ['c', 't', 'n', 'l']
const NAMES: Readonly<Record<RowLetter, string>> = { c: 'conversation', t: 'turn', n: 'node', l: 'link' }

/** Checks the order of a tree: rows once and in their order, edges and texts once, records with names of commits. */
function wrongPlaces({ rootId, rows, edges, bodies, records }: WholeTree): string | undefined {
  if (!isId(rootId)) return 'the id of its root is not an id'
  const seen = new Set<string>()
  let before = 0
  for (const row of rows) {
    const { letter, id, turnId } = row
    const wrong = wrongText(row)
    if (wrong !== undefined) return wrong
    if (turnId !== null && !isId(turnId)) return 'a row names a turn by an id that is not valid'
    if (seen.has(letter + id)) return `the ${NAMES[letter]} ${id} stands in it twice`
    seen.add(letter + id)
    const place = ORDER.indexOf(letter)
    if (place < before) return 'its rows are not in the order of conversations, turns, nodes and links'
    before = place
  }
  if (isDouble(edges.map(({ from, to, type }) => `${from} ${to} ${type}`))) return 'an edge stands in it twice'
  const ends = edges.flatMap(({ conversationId, from, to }) => [conversationId, from, to])
  if (!ends.every(isId)) return 'an edge names an id that is not valid'
  if (isDouble(bodies.map(({ hash }) => hash))) return 'a text stands in it twice'
  const isKept = records.every(({ kind, at, seq }) => /^[a-z]{1,20}$/.test(kind) && isMoment(at) && seq >= 0)
  return isKept ? undefined : 'a commit of it is not valid'
}

function isDouble(names: readonly string[]): boolean {
  return new Set(names).size < names.length
}

/** A row's text, without the rows around it. */
function wrongText({ letter, id, text }: WrittenRow): string | undefined {
  const name = NAMES[letter]
  if (!isId(id)) return `a ${name} has an id that is not valid`
  const row = parseOwnJson(text)
  // A key that stands there twice, and blanks: others would read something else.
  if (JSON.stringify(row) !== text) return `the text of the ${name} ${id} is not as stores write it`
  const keys = Object.keys(Object(row))
  if (keys[0] !== name) return `the text of the ${name} ${id} is of something else`
  const unknown = keys.find((key) => !KEYS[letter].has(key))
  return unknown === undefined
    ? undefined
    : `the ${name} ${id} has the key ${JSON.stringify(unknown)}, which rows do not have`
}

const KEYS: Readonly<Record<RowLetter, ReadonlySet<string>>> = {
  c: keysOf(CONVERSATION_COLUMNS),
  t: keysOf(TURN_COLUMNS),
  n: keysOf(NODE_COLUMNS),
  l: keysOf(LINK_COLUMNS),
}

/** The keys of a row's text, in this version and in older ones. */
function keysOf<Row>(columns: Columns<Row>): ReadonlySet<string> {
  const keys = Object.entries<Columns<Row>[keyof Row]>(columns).flatMap(([key, { text }]) => {
    if (typeof text !== 'object') return [key]
    const { as, first } = text as { readonly as?: string; readonly first?: readonly [name: string, by: string] }
    // The id of a row has one name: with two of them the row would be two.
    return [
      ...(key === 'id' ? [] : [key]),
      ...(as === undefined ? [] : [as]),
      ...(first === undefined ? [] : [first[0]]),
    ]
  })
  return new Set(keys)
}

function wrongFields({ rootId, conversations, turns, nodes, links, events }: Commit): string | undefined {
  return (
    wrongRow(conversations, CONVERSATION_COLUMNS, rootId) ??
    wrongRow(turns, TURN_COLUMNS, rootId) ??
    wrongRow(nodes, NODE_COLUMNS, rootId) ??
    wrongRow(links, LINK_COLUMNS, rootId) ??
    events.map(wrongEvent).find((wrong) => wrong !== undefined)
  )
}

function wrongRow(
  rows: readonly { readonly id: Id }[],
  columns: { readonly [name: string]: Column<unknown> },
  rootId: Id | null,
): string | undefined {
  for (const row of rows) {
    for (const [key, column] of Object.entries(columns)) {
      const given: unknown = Reflect.get(row, key)
      const wrong = wrongField(key, column, given)
      if (wrong !== undefined) return `the field "${key}" of ${row.id} ${wrong}`
    }
    if (Reflect.get(row, 'rootId') !== rootId) return `${row.id} is of another tree`
  }
  return undefined
}

/** Compares each text with the text that its row has now. Only texts of older versions differ, and give the same row again. */
function wrongTexts(tree: WholeTree, { conversations, turns, nodes, links }: Commit): string | undefined {
  const written = [
    ...conversations.map(conversationText),
    ...turns.map(turnText),
    ...nodes.map(nodeText),
    ...links.map(linkText),
  ]
  if (tree.rows.every(({ text }, at) => text === written[at]?.text)) return undefined
  const again = unpackTree({ ...tree, rows: written })
  const before = [...conversations, ...turns, ...nodes, ...links]
  const after = [...again.conversations, ...again.turns, ...again.nodes, ...again.links]
  const other = before.find((row, at) => !isSame(row, after[at]))
  return other === undefined ? undefined : `the text of ${other.id} is not as stores write it`
}

function isSame(a: object, b: object | undefined): boolean {
  return b !== undefined && canonicalJson(a as Json) === canonicalJson(b as Json)
}

/** A way along rows that comes back to where it was has no end. */
function wrongWays({ conversations, turns, nodes }: Commit): string | undefined {
  const ways: readonly (readonly (readonly [Id, Id | null | undefined])[])[] = [
    conversations.map(({ id, parentConversationId }) => [id, parentConversationId]),
    conversations.map(({ id, lane }) => [id, lane?.before]),
    conversations.map(({ id, lane }) => [id, lane?.from?.laneId]),
    turns.map(({ id, wokenBy }) => [id, wokenBy]),
    turns.map(({ id, history }) => [id, history?.source]),
    nodes.map(({ id, retryOf }) => [id, retryOf]),
  ]
  return ways.some(isCircle) ? 'its rows follow each other in a circle' : undefined
}

function isCircle(way: readonly (readonly [Id, Id | null | undefined])[]): boolean {
  const next = new Map(way)
  const done = new Set<Id>()
  for (const [first] of way) {
    const passed = new Set<Id>()
    for (let at: Id | null | undefined = first; at != null && !done.has(at); at = next.get(at)) {
      if (passed.has(at)) return true
      passed.add(at)
    }
    for (const id of passed) done.add(id)
  }
  return false
}

/** The root conversation of a tree of this form; undefined where it is not there. */
export function rootOf(rows: Pick<Commit, 'rootId' | 'conversations'>): Conversation | undefined {
  return rows.conversations.find(({ id }) => id === rows.rootId)
}
