// The authority in the rows of an imported tree: decisions, layers and definitions that later runs go by.
//
// Owns:      the list of these, and the words for each.
// Called by: `audit/archive`, for whoever may bring in history and nothing else.
// Must stay true:
//   - Whoever made a tree elsewhere has written its rows as he liked: nothing in them is a word of this store.
//   - A tree without such things is history. A run in it is bound by whoever starts the run.

import { readCeiling } from '../grant/ceiling.ts'
import type { Commit } from '../graph/commit.ts'
import type { Conversation } from '../graph/rows.ts'
import { permissionsIn } from '../rules/turn/approve.ts'

/** The first thing in these rows that later runs would go by; undefined where they are history alone. */
export function authorityIn({ conversations, turns }: Commit, ids: readonly (string | null)[]): string | undefined {
  const whole = conversations.find(({ agent }) => agent.inline !== undefined)
  if (whole !== undefined)
    return `it holds the whole definition of the agent ${nameOf(whole)}, with all that this one may do`
  const allowed = conversations.find((row) => permissionsIn(row) > 0)
  if (allowed !== undefined) return `requests of ${nameOf(allowed)} are allowed in it for good`
  const known = new Set(ids)
  for (const { ceiling } of [...conversations, ...turns]) {
    const wrong = otherLayer(ceiling, known)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

/** A layer says who asked, and whose day a run counts for. */
function otherLayer(ceiling: Conversation['ceiling'], known: ReadonlySet<string | null>): string | undefined {
  try {
    const named = readCeiling(ceiling).flatMap(({ principal, perDay }) => [principal, perDay?.owner])
    const other = named.find((id) => id !== undefined && !known.has(id))
    return other === undefined ? undefined : `a layer of it is of ${JSON.stringify(other)}`
  } catch {
    return 'a layer of it cannot be read'
  }
}

function nameOf({ agent }: Conversation): string {
  return JSON.stringify(agent.name)
}
