import type { Check, Surroundings } from './check.ts'
import { background, orphans, parentage } from './conversation-checks.ts'
import { cycles, edgeEnds } from './edge-checks.ts'
import { blocks, pairs, sequence } from './event-checks.ts'
import type { Finding, FindingType } from './finding.ts'
import { linkEnds, linkOutcomes, lostChildren, twins, waits } from './link-checks.ts'
import { blockers, bodies, callsWithTasks, claims, nodeKinds, nodeTimes, openInEnded, versions } from './node-checks.ts'
import { places } from './place-checks.ts'
import type { TreeRows } from './tree-rows.ts'
import { accounts, clocks, holds, lanes, nodeOrder, outcomes } from './turn-checks.ts'

const CHECKS: readonly Check[] = [
  nodeKinds,
  nodeTimes,
  claims,
  blockers,
  openInEnded,
  callsWithTasks,
  bodies,
  versions,
  edgeEnds,
  cycles,
  outcomes,
  accounts,
  lanes,
  nodeOrder,
  clocks,
  holds,
  linkEnds,
  twins,
  linkOutcomes,
  waits,
  lostChildren,
  orphans,
  parentage,
  background,
  places,
  blocks,
  sequence,
  pairs,
]

/** Everything that is wrong with the rows of a tree, of these types. What is true after every commit is not wrong. */
export function auditTree(tree: TreeRows, around: Surroundings, types?: readonly FindingType[]): Finding[] {
  const wanted = types === undefined ? undefined : new Set(types)
  const found: Finding[] = []
  for (const check of CHECKS) {
    if (wanted !== undefined && !check.types.some((type) => wanted.has(type))) continue
    for (const one of check.find(tree, around)) if (wanted === undefined || wanted.has(one.type)) found.push(one)
  }
  return found
}
