import { SubAgentUnavailable } from '../base/error.ts'
import type { AgentCore, SubagentConfig } from './agent.ts'

/** Refuses settings that this agent has no use for: a misspelt preset would leave to the model what it must not set. */
export function checkFit(agent: AgentCore, { presets, memory }: Partial<SubagentConfig>, where: string): void {
  const fields = fieldsOf(agent)
  const unknown = Object.keys(presets ?? {}).find((field) => fields !== undefined && !fields.includes(field))
  if (unknown !== undefined) {
    refuse(`${where}.presets: the input of "${agent.name}" has no "${unknown}". It has ${fields?.join(', ')}.`)
  }
  if (memory === 'fresh' && agent.input === null) {
    const advice = `Give "${agent.name}" an input for a fresh child each time.`
    refuse(`${where}.memory: a subagent without an input keeps its sessions. ${advice}`)
  }
}

/** Undefined where any field will do, or where they cannot be told. */
function fieldsOf({ input }: AgentCore): readonly string[] | undefined {
  if (input === null) return MESSAGE_FIELDS
  const { properties = {}, additionalProperties } = input.jsonSchema as {
    readonly properties?: object
    readonly additionalProperties?: unknown
  }
  const fields = Object.keys(properties)
  if (additionalProperties === false) return fields
  return fields.length === 0 || additionalProperties !== undefined ? undefined : fields
}

const MESSAGE_FIELDS: readonly string[] = ['message', 'session_id']

function refuse(message: string): never {
  throw new SubAgentUnavailable('subagent_unavailable', message)
}
