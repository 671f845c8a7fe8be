import { withChanges } from '../agent/build/identity.ts'
import { type AgentOrPromise, providedAgent, reuseFirst } from '../agent/build/provided.ts'
import { checkFit, firstText, hasText } from '../agent/build/read-subagents.ts'
import {
  type AgentCore,
  type AnyAgent,
  isAgent,
  type OwnSubagent,
  type SubagentConfig,
} from '../agent/definition/agent.ts'
import { readBriefing } from '../agent/definition/briefing.ts'
import { readForward } from '../agent/definition/subagent-options.ts'
import { SubAgentUnavailable } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { after } from '../base/maybe.ts'
import { type CheckedSchema, type JsonSchema, readSchema } from '../base/schema/schema.ts'
import { agentRequest } from '../grant/request.ts'
import type { KeyLimit } from '../graph/limits.ts'
import { keptOptions, NEW_NODE } from '../graph/rows.made.ts'
import type { KeptOptions } from '../graph/rows.ts'
import { readSessionSettings } from '../store/session-store.ts'
import type { ToolEntry } from '../tool/toolkit.ts'
import type { Offer } from './spawn.ts'

/** A subagent as an entry of its host's toolkit. */
export interface SubagentEntry extends ToolEntry, Offer {
  readonly presets: Presets | undefined
  /** Whether a provider makes the agent anew for each delegation. */
  readonly isProvided: boolean
  /** Whether the host's hooks decide on the subagent's calls too. */
  readonly inheritsHooks: boolean
}

/** A subagent before its host's model has seen anything. */
export interface SubagentSource {
  readonly name: string
  readonly config: SubagentConfig
  /** Whether a provider makes the agent anew for each delegation. */
  readonly isProvided: boolean
  /** The agent, or the first one its provider returned; null for a provider that has not been called yet. */
  first(): AgentOrPromise | null
  /** Resolves when `entry()` may be called; undefined if it may be called at once. */
  prepare(): Promise<unknown> | undefined
  entry(): SubagentEntry
}

/** The `message` contract: one text, and a session to continue. */
const MESSAGE_SCHEMA = {
  type: 'object',
  properties: {
    session_id: {
      type: 'string',
      description:
        'Session ID for multi-turn dialogue. Omit to start a NEW session. To CONTINUE an existing session and retain memory, you MUST extract the session_id from the previous response and pass it here.',
    },
    message: { type: 'string', description: 'Message to send to the agent' },
  },
  required: ['message'],
} as const

let messageSchema: CheckedSchema | undefined

/** Read once: every agent that takes a message has the same contract. */
function messageContract(): CheckedSchema {
  messageSchema ??= readSchema(MESSAGE_SCHEMA, 'the message contract')
  return messageSchema
}

/** Lists the subagents of an agent. Throws, with the reason, for a provider that returns none. */
export function subagentSources(host: AgentCore): SubagentSource[] {
  return [...host.subagents].map(([name, own]) => subagentSource(name, own))
}

export function subagentSource(name: string, { config, memberOf }: OwnSubagent): SubagentSource {
  const source = config.agent
  const given = isAgent(source) ? () => source : source
  const take = () =>
    after(providedAgent(given, name), (agent) => {
      checkFit(agent, config, `The subagent "${name}"`)
      return withChanges(agent, config)
    })
  const isProvided = !isAgent(source)
  // A provider with a name and a description is called only when its agent's input schema is needed.
  const isLate = isProvided && config.name !== undefined && hasText(config.description)
  const first = firstOf(take)
  if (!isLate) first()
  let made: SubagentEntry | undefined
  return {
    name,
    config,
    isProvided,
    first: () => (isLate && made === undefined ? null : first()),
    prepare: () => {
      const given = made === undefined ? first() : undefined
      return given instanceof Promise ? given : undefined
    },
    entry: () => {
      if (made !== undefined) return made
      const agent = first()
      if (agent instanceof Promise) throw notYet(name)
      made = entryOf(name, {
        config,
        memberOf,
        agent,
        take: isProvided ? reuseFirst<AgentOrPromise>(agent, take) : null,
      })
      return made
    },
  }
}

/** Calls the provider once, and again only after a rejected promise. */
function firstOf(take: () => AgentOrPromise): () => AgentOrPromise {
  let known: AgentOrPromise | undefined
  return () => {
    if (known !== undefined) return known
    known = take()
    if (known instanceof Promise) {
      known.then(
        (agent) => {
          known = agent
        },
        () => {
          known = undefined
        },
      )
    }
    return known
  }
}

function notYet(name: string): SubAgentUnavailable {
  return new SubAgentUnavailable('subagent_unavailable', `The provider of "${name}" has not given its agent yet.`)
}

export function isSubagentEntry(tool: ToolEntry): tool is SubagentEntry {
  return tool.delegates
}

/** A task that delegates may run again: it finds its child. The child has limits of its own. */
const DELEGATING: KeptOptions = { ...keptOptions(NEW_NODE), effect: 'idempotent' }

function entryOf(
  name: string,
  {
    config,
    memberOf,
    agent,
    take,
  }: OwnSubagent & {
    readonly agent: AnyAgent
    /** Returns the agent of one delegation; null if it is always the same agent. */
    readonly take: (() => AgentOrPromise) | null
  },
): SubagentEntry {
  const isTyped = agent.input !== null
  const description = firstText(config.description, agent.description) ?? `Call ${agent.name} to complete tasks`
  const input = agent.input ?? messageContract()
  const briefing = readBriefing(config.briefing, `subagents.${name}`) ?? agent.briefing
  return {
    name,
    options: DELEGATING,
    delegates: true,
    request: agentRequest(agent.name),
    needsGrant: true,
    memberOf,
    schema: { name, description, inputSchema: withoutPresets(input.jsonSchema, config.presets) },
    tool: null,
    contract: isTyped ? 'typed' : 'message',
    input,
    briefing: briefing ?? (isTyped && agent.reply === null ? SNAPSHOT : NO_BRIEFING),
    grant: config.grant,
    budget: config.budget,
    profile: config.profile,
    isShared: config.memory === 'session' && isTyped,
    presets: config.presets,
    inheritsHooks: config.hooks === 'inherit',
    onParentClose: config.onParentClose ?? 'cancel',
    promoteAfterMs: config.promoteAfterMs,
    attempts: config,
    keyed: keyOf(name, config),
    session: readSessionSettings(config.session, `subagents.${name}.session`),
    forward: readForward(config, `subagents.${name}`),
    isProvided: take !== null,
    agent,
    take: take ?? (() => agent),
  }
}

const SNAPSHOT = readBriefing('snapshot', '') ?? { mode: 'snapshot', tokens: 1 }
const NO_BRIEFING = { mode: 'none', tokens: 0 } as const

function keyOf(name: string, { concurrency, concurrencyKey = name }: SubagentConfig): KeyLimit | null {
  return concurrency === undefined ? null : { key: concurrencyKey, limit: concurrency }
}

export type Presets = { readonly [field: string]: Json }

/** Adds the presets to the input. They replace whatever the model wrote there. */
export function withPresets(input: unknown, presets: Presets | undefined): unknown {
  if (presets === undefined) return input
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  return { ...input, ...presets }
}

/** Removes preset fields from the schema, so that the model does not see them. */
function withoutPresets(schema: JsonSchema, presets: Presets | undefined): JsonSchema {
  if (presets === undefined) return schema
  const isShown = (field: string) => !Object.hasOwn(presets, field)
  const { properties, required, ...rest } = schema as { properties?: object; required?: readonly string[] }
  return {
    ...rest,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).filter(([field]) => isShown(field))),
    }),
    ...(required && { required: required.filter(isShown) }),
  }
}
