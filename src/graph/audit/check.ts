import type { Kinds } from '../kinds.ts'
import type { Id } from '../rows.ts'
import type { Finding, FindingType } from './finding.ts'
import type { TreeRows } from './tree-rows.ts'

/** What a tree's own rows do not say. */
export interface Surroundings {
  readonly kinds: Kinds
  /** Does the engine live, as far as can be known? */
  readonly isAlive: (engineId: Id) => boolean
  readonly hasBody: (hash: string) => boolean
}

/** One family of defects. Reads rows only; finds each defect once. */
export interface Check {
  readonly types: readonly FindingType[]
  find(tree: TreeRows, around: Surroundings): Iterable<Finding>
}
