import type { Conversation, Id } from '../../graph/rows.ts'
import type { Removal, Tombstone } from '../archive.ts'
import { tombstoneOf } from '../tombstone.ts'
import type { Connection } from './driver.ts'
import { bury, conversationIn, removeTree } from './remove.ts'
import { COMMITS_PER_TREE, SPAN } from './rows.ts'
import { type FileSpan, findTrees, readRecords, readSpan, treeByLog } from './tree.ts'
import { verifySqlite } from './verify.ts'

/** As `removeTree`. A tree that is not what its commits wrote goes too: nobody else can get rid of it. */
export function removeEvenAltered(db: Connection, rootId: Id, removal: Removal): Tombstone | undefined {
  try {
    const stone = removeTree(db, rootId, removal)
    if (stone !== undefined || !isAltered(db, rootId)) return stone
  } catch (error) {
    if (!isAltered(db, rootId)) throw error
  }
  return removeAltered(db, rootId, removal)
}

function isAltered(db: Connection, rootId: Id): boolean {
  return verifySqlite(db, rootId).findings.some((one) => one.rootId === rootId)
}

/** Goes by the log and the seals. Rows may say anything, and what another tree wrote stays. */
function removeAltered(db: Connection, rootId: Id, removal: Removal): Tombstone | undefined {
  const tree = treeByLog(db, rootId) ?? findTrees(db, rootId).byRoot.get(rootId)?.tree
  if (tree === undefined) return undefined
  const numbers = spansOf(db, rootId, tree)
  const spans = numbers.map((n) => readSpan(db, n))
  const { seq = 0, hash = '' } = readRecords(db, tree).at(-1) ?? {}
  const conversations = spans.flatMap((span) => readConversation(span) ?? [])
  const turns = spans.flatMap(({ turn }) => turn ?? [])
  const stone = tombstoneOf({ rootId, hash, seq, conversations, turns }, removal)
  if (removal.dryRun === true) return stone
  db.run(DROP_KEYS, [JSON.stringify(numbers.map((n) => n / SPAN))])
  bury(db, { rootId, tree, spans: numbers }, stone)
  return stone
}

const DROP_KEYS = `DELETE FROM keys WHERE n / ${SPAN} IN (SELECT value FROM json_each(?))`
const SEALED = 'SELECT n FROM seals WHERE writer >= ? AND writer < ?'

/** All that commits of this tree began; and those that no commit began and that say that they are of it. */
function spansOf(db: Connection, rootId: Id, tree: number): number[] {
  const first = tree * COMMITS_PER_TREE
  const sealed = db.all(SEALED, [first, first + COMMITS_PER_TREE]).map(([n]) => Number(n))
  const claimed = findTrees(db, rootId).byRoot.get(rootId)?.spans ?? []
  const isUnsealed = (n: number) => db.first('SELECT 1 FROM seals WHERE n = ?', [n]) === undefined
  return [...sealed, ...claimed.filter(isUnsealed)]
}

function readConversation(span: FileSpan): Conversation | undefined {
  try {
    return conversationIn(span)
  } catch {
    return undefined
  }
}
