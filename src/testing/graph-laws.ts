import { auditTree } from '../graph/audit/audit-tree.ts'
import type { TreeRows } from '../graph/audit/tree-rows.ts'
import { BUILT_IN_KINDS } from '../graph/kinds.ts'

/** What is true of a tree after every commit, and so whenever its processes were killed. */
export function brokenGraph(tree: TreeRows): string[] {
  return auditTree(tree, ANYWHERE)
    .filter(({ type }) => type !== 'unknown_kind')
    .map(({ type, message }) => `${type}: ${message}`)
}

/** Claims of processes that are gone are not wrong: others take them over. */
const ANYWHERE = { kinds: BUILT_IN_KINDS, isAlive: () => true, hasBody: () => true }
