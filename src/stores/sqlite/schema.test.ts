import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { freshId } from '../../core/base/id.ts'
import { ROOT_STATES } from '../../core/graph/kinds.ts'
import { RowCache } from '../../core/store/row-cache.ts'
import { fullCommit } from '../../testing/conformance/store-read-laws.ts'
import { commitOf, next, nodeRow, placeIn, treeCommit, warningEvent } from '../../testing/conformance/store-rows.ts'
import { sqliteRegistry } from './beside/registry.ts'
import { findStone } from './beside/stones.ts'
import { commitTexts, writeCommit } from './commit.ts'
import { type Connection, connectTo } from './driver.ts'
import { type RunQuery, sqliteGraph, sqliteReader } from './read.ts'
import { migrate } from './schema.ts'
import { CheckedSpans } from './spans.ts'

const folder = tempFolder(afterAll)
const db = connectTo(join(folder, 'plans.db'))
migrate(db)
afterAll(() => {
  db.close()
})

/** Through all ids, or through all of a table that has few rows. */
const allowed = [/substr\(id, \?\)/, /FROM engines$/, /^SELECT DISTINCT CAST\(node_id AS BLOB\) FROM blocks$/]

test('every statement finds its rows by an index', async () => {
  const statements = new Set([...statementsOfReading(), ...statementsOfWriting(), ...(await statementsOfRegistry())])

  const scans = [...statements].filter((sql) => planOf(sql).some(isScan) && !allowed.some((one) => one.test(sql)))

  expect(statements.size).toBeGreaterThan(30)
  expect(scans).toEqual([])
})

function statementsOfReading(): string[] {
  const seen: string[] = []
  const scanner = scannerOn(listening(seen), () => new RowCache())
  const { conversation, turn, node, link, body, engine, edgesFrom, edgesTo, nodesOf, openNodes } = scanner
  for (const read of [conversation, turn, node, link, body, engine, edgesFrom, edgesTo, nodesOf, openNodes]) read('x')
  const { linksOf, openLinks, queuedTurn, lastSeq, blocks, overdue, unstopped, claimedBy, openRoots, nextDue } = scanner
  for (const read of [linksOf, openLinks, queuedTurn, lastSeq]) read('x')
  conversation(freshId(1))
  blocks('x', 0)
  for (const read of [overdue, unstopped]) read(1, 1)
  scanner.linkAt('x', 1)
  scanner.nodeByKey('x', 'task', 'key')
  scanner.turnsOf('x', { limit: 1 })
  for (const after of [{}, { after: null }, { after: 'ann' }]) {
    scanner.runnable({ now: 1, limit: 1, kinds: ['task'], agents: ['editor'], ...after })
  }
  scanner.engines()
  scanner.ownerOf('x')
  scanner.roots({ limit: 1 })
  scanner.findIds('x', 1)
  claimedBy('x', 1)
  openRoots({ limit: 1 })
  openRoots({ limit: 1, owner: 'ann' })
  for (const read of [scanner.awaiting, scanner.timed]) read({ limit: 1, owner: 'ann' })
  for (const owner of [{}, { owner: 'ann' }]) {
    for (const state of [{}, ...ROOT_STATES.map((state) => ({ state }))]) {
      scanner.roots({ limit: 1, ...owner, ...state })
      scanner.roots({ limit: 1, agent: 'editor', ...owner, ...state })
    }
  }
  nextDue(1)
  findStone(listening(seen), 'x')
  return seen
}

const spans = new CheckedSpans('schema')

async function statementsOfRegistry(): Promise<string[]> {
  const seen: string[] = []
  const heard = listening(seen)
  const registry = sqliteRegistry({ read: (query) => query(heard), write: (change) => change(heard) })
  const row = { kind: 'token', id: 'x', owner: 'ann', version: 1, at: 1, data: null }
  await registry.put(row)
  await registry.put({ ...row, version: 2 })
  await registry.get('token', 'x')
  await registry.list('token', { limit: 1 })
  await registry.list('token', { owner: 'ann', limit: 1 })
  await registry.drop('token', 'x')
  return seen
}

function statementsOfWriting(): string[] {
  const seen: string[] = []
  const writer = listening(seen)
  const cache = new RowCache()
  const read: RunQuery = (query) => query(writer)
  const graph = sqliteGraph({ read, cache: () => cache, spans: () => spans })
  const place = placeIn('root-b')
  const block = { nodeId: 'streams', rootId: 'root-b', epoch: 1, events: [] }
  const streams = nodeRow(place, 'streams', { state: 'running', epoch: 1 })
  const commits = [
    fullCommit(),
    treeCommit('root-b', { nodes: [streams] }),
    commitOf('root-b', { nodes: [next(streams)], blocks: [block], events: [warningEvent(place, 'one')] }),
    commitOf('root-b', { events: [warningEvent(place, 'two')] }),
    commitOf(null, { dropBlocks: ['streams'], dropEngines: ['engine-0'] }),
  ]
  for (const commit of commits) {
    cache.putCommit(commit, writeCommit({ db: writer, graph, cache }, commit, commitTexts(commit)))
  }
  const scanner = sqliteReader(graph, read)
  scanner.events('root-b', 1, 9)
  cache.clear()
  graph.tail('root-a')
  return seen
}

function scannerOn(connection: Connection, cache: () => RowCache) {
  const read: RunQuery = (query) => query(connection)
  return sqliteReader(sqliteGraph({ read, cache, spans: () => spans }), read)
}

function listening(seen: string[]): Connection {
  const hear = (sql: string): string => {
    seen.push(sql.replaceAll(/\s+/g, ' '))
    return sql
  }
  return {
    ...db,
    first: (sql, values) => db.first(hear(sql), values),
    all: (sql, values) => db.all(hear(sql), values),
    run: (sql, values) => db.run(hear(sql), values),
  }
}

function planOf(sql: string): string[] {
  const numbered = [...sql.matchAll(/\?(\d+)/g)].map(([, digits]) => Number(digits))
  const count = numbered.length > 0 ? Math.max(...numbered) : sql.split('?').length - 1 - sql.split("'?'").length + 1
  return db
    .all(
      `EXPLAIN QUERY PLAN ${sql}`,
      Array.from({ length: count }, () => '1'),
    )
    .map((row) => String(row[3]))
}

/** Tells whether a step reads a whole table. Rows that the query makes itself do not count. */
function isScan(step: string): boolean {
  const isFew = /^SCAN (?:CONSTANT ROW|json_each|trees|\(subquery|\d+ CONSTANT ROW|\d+-ROW VALUES CLAUSE)/.test(step)
  return step.startsWith('SCAN') && !isFew
}
