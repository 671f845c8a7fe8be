import type { Layer } from '../../grant/grant.ts'
import { type Profiles, profileLayer } from '../../grant/profile.ts'
import { ALL_TURNS, CONTEXT_TURNS } from '../../graph/kinds.ts'
import type { Conversation } from '../../graph/rows.ts'
import type { AgentCore } from '../definition/agent.ts'

/** The agent in a conversation's metadata: `agent { key, policy_profile, context_turns }`, as stored. */
export interface StoredAgent {
  readonly key?: unknown
  readonly policy_profile?: unknown
  readonly context_turns?: unknown
}

/** Undefined where the metadata holds none; metadata may hold anything. */
export function storedAgentOf({ metadata }: Conversation): StoredAgent | undefined {
  const said = metadata['agent']
  return typeof said === 'object' && said !== null && !Array.isArray(said) ? said : undefined
}

/**
 * The profile that currently binds a conversation. A profile that nobody defined counts as the narrowest, because it
 * must not widen.
 */
export function profileOf(conversation: Conversation, profiles: Profiles): string | undefined {
  const stored = storedAgentOf(conversation)?.policy_profile
  if (stored === undefined) return undefined
  const name = typeof stored === 'string' ? stored.trim().toLowerCase() : ''
  return Object.hasOwn(profiles, name) ? name : NARROWEST
}

const NARROWEST = 'minimal'

/** The profile's layer, in words that models of such conversations know. */
export function storedProfileLayer(name: string, profiles: Profiles): Layer {
  return { ...profileLayer(name, profiles), by: `the profile ${name} (tool_not_in_profile)` }
}

/** How many rounds its model sees. Ignores a stored value that is no valid number. */
export function contextTurnsOf(conversation: Conversation, agent: AgentCore): number {
  const stored = storedAgentOf(conversation)
  if (stored === undefined || stored.context_turns === undefined) return agent.contextTurns ?? ALL_TURNS
  return isContextTurns(stored.context_turns) ? stored.context_turns : CONTEXT_TURNS
}

export function isContextTurns(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 1_000
}
