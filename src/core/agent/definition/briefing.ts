import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { anything, int, readOptions } from '../../base/options.ts'
import type { Message } from '../../model/model.ts'

/**
 * The part of its host's context that a child gets. `snapshot`: the newest tool results, as data. `summary`: a summary
 * by the host's model. `fork`: the context itself, as messages. A function makes its own.
 */
export type Briefing = BriefingMode | { readonly mode: BriefingMode; readonly tokens: number }

export type BriefingMode = 'none' | 'snapshot' | 'summary' | 'fork' | BriefingFunction

/** Called once per delegation. If it throws, the delegation is unavailable, with the reason. */
export type BriefingFunction = (
  host: HostContext,
  input: Json,
) => Partial<DelegationContext> | Promise<Partial<DelegationContext>>

/** The knowledge of a host when it delegates: copies, oldest first. */
export interface HostContext {
  readonly conversation: readonly Message[]
  /** The newest four. */
  readonly recent_tool_results: readonly Message[]
  readonly long_term_refs: readonly Json[]
  readonly workspace_handles: readonly string[]
  readonly safety_flags: { readonly [name: string]: Json }
}

/** The context of a child, as data; also in the metadata of the delegation's result. Your own fields are kept. */
export interface DelegationContext {
  readonly input_payload: Json
  readonly recent_events: readonly RecentEvent[]
  /** The kind of the long-term memory, if there is one. */
  readonly long_term_refs: readonly Json[]
  /** Directories the child may use. */
  readonly workspace_pointers: readonly string[]
  /** Limits that somebody has set for the child. */
  readonly safety_flags: { readonly [name: string]: Json }
  readonly input_preview?: string
  readonly [own: string]: unknown
}

export interface RecentEvent {
  readonly id: string
  readonly role: string
  readonly name: string
  readonly preview: string
  readonly timestamp: string
}

export interface BriefingPlan {
  readonly mode: BriefingMode
  /** The most that the child reads, in estimated tokens: four characters count as one. */
  readonly tokens: number
}

const DEFAULT_TOKENS = { none: 0, snapshot: 4_000, summary: 1_000, fork: 32_000 } as const

const NOTHING_TOLD = { mode: anything, tokens: int(0) }
const SOME_TOLD = { mode: anything, tokens: int(1) }

/** Checks a briefing; undefined where there is none. */
export function readBriefing(given: Briefing | undefined, where: string): BriefingPlan | undefined {
  if (given === undefined) return undefined
  const plan = typeof given === 'object' && given !== null ? given : { mode: given }
  const { mode, tokens = defaultTokens(mode) } = plan as Partial<BriefingPlan> & { mode: BriefingMode }
  const isKnown = typeof mode === 'function' || Object.hasOwn(DEFAULT_TOKENS, String(mode))
  if (!isKnown) {
    refuse(
      `${where}.briefing is "none", "snapshot", "summary", "fork", a function, or { mode, tokens }, not ${JSON.stringify(mode)}.`,
    )
  }
  readOptions<Partial<BriefingPlan>>(`${where}.briefing`, plan, mode === 'none' ? NOTHING_TOLD : SOME_TOLD)
  return { mode, tokens }
}

function defaultTokens(mode: unknown): number {
  return DEFAULT_TOKENS[mode as keyof typeof DEFAULT_TOKENS] ?? DEFAULT_TOKENS.snapshot
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}
