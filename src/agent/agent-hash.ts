import { sha256 } from '../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../base/json.ts'
import type { AgentCore } from './agent.ts'

/** The hash is worked out when it is first asked for. */
export function withHash(core: Omit<AgentCore, 'hash'>): AgentCore {
  let hash: string | undefined
  return {
    ...core,
    get hash() {
      hash ??= hashOf(core)
      return hash
    },
  }
}

/** Changes when what the agent is told or may use changes; code inside its tools does not count. */
function hashOf(core: Omit<AgentCore, 'hash'>): string {
  const tools = [...core.tools].map(([name, { description, input, output, effect, timeoutMs }]) => {
    return [name, description, input.jsonSchema, output?.jsonSchema ?? null, effect, timeoutMs]
  })
  const shown = toJson({
    name: core.name,
    description: core.description,
    instructions: core.instructions,
    ...(core.prompt === null ? {} : { prompt: core.prompt }),
    ...(core.inline === null ? {} : { inline: core.inline.definition }),
    // What rows keep names its model itself: who has it need not be known yet.
    model: core.inline === null ? (core.model?.id ?? null) : core.inline.model,
    settings: core.settings,
    tools,
    ...(core.sources.size === 0 ? {} : { sources: [...core.sources].map(([name, { about }]) => [name, about]) }),
    subagents: [...core.subagents.keys()],
    ...(core.groups.size === 0 ? {} : { groups: groupsOf(core) }),
    input: core.input?.jsonSchema ?? null,
    output: core.output?.jsonSchema ?? null,
    ...(core.repair === null ? {} : { repair: core.repair }),
    ...(core.eager === null ? {} : { eager: [...core.eager.keys()] }),
    grant: core.grant ?? null,
    budget: core.budget ?? null,
    contextTurns: core.contextTurns,
    ...(core.extensions.length === 0 ? {} : { extensions: core.extensions.map(({ name }) => name) }),
  })
  const value: Json = shown.ok ? shown.value : core.name
  return sha256(canonicalJson(value)).slice(0, 16)
}

function groupsOf({ groups, meta, subagents }: Omit<AgentCore, 'hash'>): unknown {
  const members = (group: string) =>
    [...subagents].filter(([, { memberOf }]) => memberOf.includes(group)).map(([name]) => name)
  const shown = [...groups].map(([name, { description, active, notes, tools }]) => {
    return [name, description, active, notes, tools, members(name)]
  })
  return { meta, shown }
}
