import type { WholeTree } from './archive.ts'

export const FORMAT = 'tree'
export const VERSION = 1

/**
 * A whole tree as JSON Lines: a header, every commit with its events, every row as it is stored, edges, texts, and an end
 * that says how many lines there were. Rows keep their bytes: whoever takes them can hold them against the commits.
 */
export function* toLines({ rootId, rows, edges, bodies, records }: WholeTree): Generator<string> {
  const hash = records.at(-1)?.hash ?? ''
  yield JSON.stringify({ legate: FORMAT, version: VERSION, rootId, hash })
  for (const { kind, at, seq, marks, hash: own, events } of records) {
    yield `["commit",${JSON.stringify({ kind, at, seq, marks, hash: own })}]`
    yield `["events",${events}]`
  }
  for (const { letter, turnId, text } of rows) yield `["row","${letter}",${JSON.stringify(turnId)},${text}]`
  for (const { from, to, type, conversationId } of edges) yield JSON.stringify(['edge', conversationId, from, to, type])
  for (const { hash: name, text } of bodies) yield JSON.stringify(['body', name, text])
  const lines = 2 + 2 * records.length + rows.length + edges.length + bodies.length
  yield JSON.stringify({ end: hash, lines })
}
