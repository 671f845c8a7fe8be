import type { Wait } from '../rows.ts'

export type JoinStatus = 'met' | 'not_met'

/**
 * Is the wait over? `all`, `any` and a number ask for that many children that completed, and are over as soon as that is
 * so or cannot be any more; `settled` asks for all ends, good or bad.
 */
export function joinStatus(join: Wait['join'], outcomes: readonly (string | null)[]): JoinStatus | undefined {
  const open = outcomes.filter((status) => status === null).length
  if (join === 'settled') return open === 0 ? 'met' : undefined
  const completed = outcomes.filter((status) => status === 'completed').length
  const wanted = join === 'all' ? outcomes.length : join === 'any' ? 1 : join
  if (completed >= wanted) return 'met'
  return completed + open < wanted ? 'not_met' : undefined
}
