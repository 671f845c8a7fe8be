import type { Kinds } from '../graph/kinds.ts'
import type { TreeRows } from '../graph/reader.ts'
import type { Id } from '../graph/rows.ts'
import type { Finding, FindingType } from '../store/archive.ts'

/** Facts beyond a tree's own rows that checks need. */
export interface AuditContext {
  readonly kinds: Kinds
  /** True where the engine lives, as far as can be known. */
  readonly isAlive: (engineId: Id) => boolean
}

/** One family of defects. Reads rows only; finds each defect once. */
export interface Check {
  readonly types: readonly FindingType[]
  find(tree: TreeRows, around: AuditContext): Iterable<Finding>
}
