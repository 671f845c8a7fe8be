import { sha256 } from '../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../base/json.ts'
import type { AgentRef } from '../graph/rows.ts'
import type { AgentCore, AgentIdentity } from './agent.ts'

type Unidentified = Omit<AgentCore, 'identity'>

/** The agent with what tells it from others, which is worked out when it is first asked for. */
export function identified(core: Unidentified): AgentCore {
  return { ...core, identity: new Identity(core) }
}

/** Apart from the agent: an object that works out a field of its own when it is read is slow to read in all its fields. */
class Identity implements AgentIdentity {
  private readonly core: Unidentified
  private known: AgentRef | undefined

  constructor(core: Unidentified) {
    this.core = core
  }

  get ref(): AgentRef {
    this.known ??= refOf(this.core)
    return this.known
  }
}

function refOf(core: Unidentified): AgentRef {
  const { name, inline } = core
  const hash = hashOf(core)
  if (inline === null) return { name, hash }
  return { name, hash, inline: inline.definition, code: inline.code }
}

/** Changes when what the agent is told or may use changes; code inside its tools does not count. */
function hashOf(core: Unidentified): string {
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
    ...filedOf(core),
    budget: core.budget ?? null,
    contextTurns: core.contextTurns,
    ...codeOf(core),
  })
  const value: Json = shown.ok ? shown.value : core.name
  return sha256(canonicalJson(value)).slice(0, 16)
}

/** What code does for it, and where. */
function codeOf({ files, reply, extensions }: Unidentified): object {
  return {
    ...(files === null ? {} : { files }),
    ...(reply === null ? {} : { reply: reply.effect }),
    ...(extensions.length === 0 ? {} : { extensions: extensions.map(({ name }) => name) }),
  }
}

/** A definition that is kept whole has them in itself. */
function filedOf({ inline, fileLayers }: Unidentified): Partial<Pick<AgentCore, 'fileLayers'>> {
  return inline === null && fileLayers !== null ? { fileLayers } : {}
}

function groupsOf({ groups, meta, subagents }: Unidentified): unknown {
  const members = (group: string) =>
    [...subagents].filter(([, { memberOf }]) => memberOf.includes(group)).map(([name]) => name)
  const shown = [...groups].map(([name, { description, active, notes, tools }]) => {
    return [name, description, active, notes, tools, members(name)]
  })
  return { meta, shown }
}
