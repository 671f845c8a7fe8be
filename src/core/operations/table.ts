// The table of operations. Routes, OpenAPI, the reference page, the attack matrix and both made files come from it.

import { AGENTS } from './agents.ts'
import { CONVERSATIONS, LANES } from './conversations.ts'
import { HISTORY } from './history.ts'
import { INBOX } from './inbox.ts'
import { NODES } from './nodes.ts'
import type { Operation } from './operation.ts'
import { OWNER_SETTINGS, OWNERS } from './owners.ts'
import { PROCESSES } from './processes.ts'
import { RUNS } from './runs.ts'
import { TOKENS } from './tokens.ts'
import { TREES } from './trees.ts'
import { USAGE } from './usage.ts'
import { WEBHOOKS } from './webhooks.ts'

/** Operations of a runtime, by subject. */
export const OF_RUNTIME: Subjects = {
  agents: AGENTS,
  runs: RUNS,
  conversations: CONVERSATIONS,
  trees: TREES,
  nodes: NODES,
  inbox: INBOX,
  owners: OWNERS,
  usage: USAGE,
  processes: PROCESSES,
}

/** Operations of one conversation that is open already, by subject. */
export const OF_CONVERSATION: Subjects = { lanes: LANES, history: HISTORY }

/** Operations that a server has beside its runtime, by subject. */
export const OF_SERVER: Subjects = { tokens: TOKENS, webhooks: WEBHOOKS, settings: OWNER_SETTINGS }

/** All operations, by subject. */
export const OPERATIONS: Subjects = { ...OF_RUNTIME, ...OF_CONVERSATION, ...OF_SERVER }

export type Subjects = Readonly<Record<string, Readonly<Record<string, Operation>>>>
