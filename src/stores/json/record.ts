import { crc32 } from 'node:zlib'
import { parseOwnJson } from '../../core/base/json.ts'
import { type Commit, emptyCommit } from '../../core/graph/commit.ts'
import { eachLimit, type TurnLimits } from '../../core/graph/limits.ts'
import { USUAL_TURN } from '../../core/graph/rows.made.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { Tombstone, WholeTree } from '../../core/store/archive.ts'
import { asNew } from '../../core/store/archive.ts'
import { fromJournal, type JournalEvent, toJournal } from '../../core/store/codec/event-text.ts'
import { recordOf } from '../../core/store/codec/grown-tree.ts'
import { unpackTree } from '../../core/store/codec/tree-text.ts'
import type { Piece } from '../../core/store/memory/snapshot.ts'
import type { ChainLink, StoredTree, Tables } from '../../core/store/memory/tables.ts'
import type { RegistryRow } from '../../core/store/registry.ts'

/** The contents of a line of the journal. */
export type JournalEntry = Header | CommitEntry | TreeEntry | StoneEntry | RegistryEntry | ForgottenEntry | Piece

export interface CommitEntry {
  readonly commit: Commit
  /** The commit's entry in its tree's record; left out for a commit of no tree. */
  readonly link?: ChainLink
}

/** A whole tree that another store exported, in one line. */
export interface TreeEntry {
  readonly tree: WholeTree
}

/** The deletion of a tree. */
export interface StoneEntry {
  readonly stone: Tombstone
}

/** A change of the registry: a row that was put, or the place of one that was dropped. */
export type RegistryEntry =
  | { readonly registered: RegistryRow }
  | { readonly dropped: Pick<RegistryRow, 'kind' | 'id'> }

/** An owner of whom nothing is kept beside the trees any more. */
export interface ForgottenEntry {
  readonly forgotten: string
  /** The day of which his usage stays. */
  readonly keptDay?: string
}

/** The first line. */
export interface Header {
  readonly store: string
  readonly version: number
}

/** Writes one line: a checksum of the rest, the number of the line in its journal, and the entry as JSON. */
export function toLine(entry: JournalEntry, number: number): string {
  const rest = `${number} ${JSON.stringify(packed(entry))}`
  return `${sumOf(rest)} ${rest}\n`
}

export interface JournalLine {
  readonly number: number
  readonly entry: JournalEntry
}

/** Undefined for a line that is damaged. */
export function readLine(line: string): JournalLine | undefined {
  const rest = line.slice(9)
  const space = rest.indexOf(' ')
  if (space < 1 || line[8] !== ' ' || sumOf(rest) !== line.slice(0, 8)) return undefined
  return { number: Number(rest.slice(0, space)), entry: unpacked(parseOwnJson(rest.slice(space + 1)) as JournalEntry) }
}

/** Omits empty lists: most lists of a commit are empty. */
function packed(entry: JournalEntry): object {
  if ('commit' in entry) return { ...entry, commit: withoutEmpty(entry.commit) }
  return 'rows' in entry ? { rows: withoutEmpty(entry.rows) } : entry
}

function unpacked(entry: JournalEntry): JournalEntry {
  if ('commit' in entry) return { ...entry, commit: whole(entry.commit) }
  return 'rows' in entry ? { rows: whole(entry.rows) } : entry
}

function withoutEmpty(commit: Commit): object {
  const events = commit.events.map(toJournal)
  const turns = commit.turns.map((turn) => ({ ...turn, limits: toJournalLimits(turn.limits) }))
  const full = Object.entries({ ...commit, events, turns }).filter(
    ([, value]) => !Array.isArray(value) || value.length > 0,
  )
  return Object.fromEntries(full)
}

function whole(written: Commit): Commit {
  const commit = { ...emptyCommit(written.kind, written.at, written.rootId), ...written }
  const events = commit.events.map((event) => fromJournal(event as unknown as JournalEvent))
  // A journal of before a column was added does not have it.
  const turns = commit.turns.map((turn) => ({
    ...USUAL_TURN,
    ...turn,
    limits: fromJournalLimits(turn.limits as JournalLimits),
  }))
  return { ...commit, events, turns }
}

/** The limits of a run with the names that journals use. */
type JournalLimits = Omit<TurnLimits, 'modelCalls'> & { readonly turns?: number }

function toJournalLimits({ modelCalls: turns, ...others }: TurnLimits): JournalLimits {
  return { turns, ...others }
}

function fromJournalLimits({ turns = 0, ...others }: JournalLimits): TurnLimits {
  return eachLimit((name) => (name === 'modelCalls' ? turns : others[name]))
}

function sumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}

/** The commit's future entry in its tree's record; undefined for a commit of no tree, or where no record is kept. */
export function nextLink(tables: Tables, commit: Commit): ChainLink | undefined {
  const { rootId } = commit
  const tree = rootId === null ? undefined : tables.trees.get(rootId)
  if (rootId === null || tree?.chain === null) return undefined
  const turnOf = (id: Id): Id => tables.nodes.get(id)?.row.turnId ?? ''
  const before = { hash: tree?.chain?.at(-1)?.hash ?? '', seq: tree?.seq ?? 0 }
  const { events: _, ...link } = recordOf(commit, before, turnOf)
  return link
}

export function extend(tree: StoredTree, link: ChainLink): void {
  tree.chain ??= []
  tree.chain.push(link)
}

/** The rows of a whole tree, as a commit with new rows. */
export function newRows(whole: WholeTree): Commit {
  const { conversations, turns, nodes, links, ...rest } = unpackTree(whole)
  return {
    ...rest,
    conversations: conversations.map(asNew),
    turns: turns.map(asNew),
    nodes: nodes.map(asNew),
    links: links.map(asNew),
  }
}
