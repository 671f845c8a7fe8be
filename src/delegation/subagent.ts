import { type AgentCore, type AnyAgent, isAgent, type SubagentConfig, type SubagentValue } from '../agent/definition.ts'
import { messageOf, SubAgentUnavailable } from '../base/error.ts'
import { readSchema } from '../base/schema.ts'
import type { ToolEntry } from '../tool/toolkit.ts'
import { type Presets, withoutPresets } from './presets.ts'
import type { Offer } from './spawn.ts'
import { toolNameOf } from './tool-name.ts'

/** A subagent as its host's toolkit holds it. */
export interface SubagentEntry extends ToolEntry, Offer {
  /** `agent` is only what a provider gave first; each delegation asks it anew. */
  readonly isProvided: boolean
  readonly presets: Presets | undefined
}

/** The `message` contract: one text, and a session to go on with. */
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

/** The tools an agent's subagents make. What cannot work is refused here, with the reason. */
export function subagentEntries(host: AgentCore): SubagentEntry[] {
  const seen = new Set(host.tools.keys())
  const taken = (name: string) =>
    new SubAgentUnavailable('subagent_unavailable', `"${host.name}" has two tools named "${name}". Use keys.`)
  return [...membersOf(host)].map(([name, { value, memberOf, isClashing }]) => {
    if (isClashing || seen.has(name)) throw taken(name)
    seen.add(name)
    return entry(name, readConfig(value), memberOf)
  })
}

interface Member {
  readonly value: SubagentValue
  /** The same one may be in several groups. */
  readonly memberOf: string[]
  isClashing: boolean
}

/** All subagents of a host by their tool's name: those of no group, then those of its groups. */
function membersOf(host: AgentCore): Map<string, Member> {
  const members = new Map<string, Member>()
  for (const [name, value] of named(host.subagents)) {
    members.set(name, { value, memberOf: [], isClashing: members.has(name) })
  }
  for (const [group, { subagents }] of host.groups) {
    for (const [name, value] of named(subagents)) {
      const known = members.get(name)
      if (known === undefined) members.set(name, { value, memberOf: [group], isClashing: false })
      else if (known.value === value && known.memberOf.length > 0) known.memberOf.push(group)
      else known.isClashing = true
    }
  }
  return members
}

function named(subagents: AgentCore['subagents']): [string, SubagentValue][] {
  return isMap(subagents) ? [...subagents] : subagents.map((agent) => [toolNameOf(agent.name), agent])
}

export function isSubagentEntry(tool: ToolEntry): tool is SubagentEntry {
  return tool.delegates
}

function isMap(subagents: AgentCore['subagents']): subagents is ReadonlyMap<string, SubagentValue> {
  return subagents instanceof Map
}

function entry(name: string, config: SubagentConfig, memberOf: readonly string[]): SubagentEntry {
  const source = config.agent
  const provider = isAgent(source) ? () => source : source
  const agent = takeFrom(provider, name)
  let spare: AnyAgent | undefined = agent
  const description = config.description?.trim() || agent.description.trim() || `Call ${agent.name} to complete tasks`
  const input = agent.input ?? readSchema(MESSAGE_SCHEMA, 'the message contract')
  return {
    name,
    effect: 'idempotent',
    timeoutMs: null,
    delegates: true,
    domain: 'agent',
    asks: agent.name,
    needsGrant: true,
    memberOf,
    schema: { name, description, inputSchema: withoutPresets(input.jsonSchema, config.presets) },
    tool: null,
    contract: agent.input === null ? 'message' : 'typed',
    input,
    briefing: config.briefing ?? (agent.input === null ? 'none' : 'snapshot'),
    budget: config.budget,
    profile: config.profile,
    isShared: config.memory === 'session' && agent.input !== null,
    presets: config.presets,
    onParentClose: config.onParentClose ?? 'cancel',
    agent,
    isProvided: !isAgent(source),
    take: () => {
      const taken = spare ?? takeFrom(provider, name)
      spare = isAgent(source) ? source : undefined
      return taken
    },
  }
}

function takeFrom(provider: () => AnyAgent, name: string): AnyAgent {
  const agent = callProvider(provider, name)
  if (isAgent(agent)) return agent
  throw new SubAgentUnavailable('subagent_unavailable', `The subagent "${name}" is not an agent. Make it with agent().`)
}

function callProvider(provider: () => AnyAgent, name: string): AnyAgent {
  try {
    return provider()
  } catch (error) {
    throw new SubAgentUnavailable('subagent_unavailable', `The provider of "${name}" failed: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

function readConfig(value: SubagentValue): SubagentConfig {
  return isAgent(value) || typeof value === 'function' ? { agent: value } : value
}
