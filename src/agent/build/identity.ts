import { SubAgentUnavailable } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import type { AgentRef } from '../../graph/rows.ts'
import { type ModelLike, toModel } from '../../model/named/to-model.ts'
import { type AgentCore, type AgentIdentity, type AnyAgent, markAgent, type Tools } from '../definition/agent.ts'
import { withToolsOfCode } from '../definition/file-layers.ts'
import { refuseForReply } from '../definition/input.ts'
import { type Repair, readRepair } from '../definition/repair.ts'
import { readKit } from './read-kit.ts'

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

export interface Changes {
  readonly name?: string | undefined
  readonly model?: ModelLike | undefined
  /** Instead of all it has. */
  readonly tools?: Tools | undefined
  readonly repair?: Repair | undefined
  readonly files?: 'inherit' | undefined
}

/** An agent with another name, model, set of tools, files or way to repair its answers: its hash is another too. The agent itself where nothing changes. */
export function variant(agent: AnyAgent, { name, model, tools, repair, files }: Changes): AnyAgent {
  if ([name, model, tools, repair, files].every((change) => change === undefined)) return agent
  if (model !== undefined) refuseForReply(agent, 'another one')
  if (tools !== undefined) refuseForReply(agent, 'tools')
  if (repair !== undefined) refuseForReply(agent, 'a repair')
  const changed: Omit<AgentCore, 'identity'> = {
    ...agent,
    name: name ?? agent.name,
    model: toModel(model) ?? agent.model,
    ...(tools === undefined ? {} : kitOf(agent, tools)),
    files: files ?? agent.files,
    repair: readRepair(repair, agent.output, `agent "${agent.name}"`) ?? agent.repair,
    // Its rows cannot keep it as its file any more. What the file takes away still binds it.
    inline: null,
  }
  return markAgent(identified(changed)) as AnyAgent
}

/** Its subagents stay; tools that are made of subagents join them. */
function kitOf(
  agent: AnyAgent,
  tools: Tools,
): Pick<AgentCore, 'tools' | 'sources' | 'subagents' | 'groups' | 'fileLayers'> {
  const kit = readKit({ name: agent.name, tools }, `agent "${agent.name}"`)
  const taken = [...kit.tools.keys(), ...kit.subagents.keys()].find((name) => agent.subagents.has(name))
  if (taken !== undefined) {
    const message = `agent "${agent.name}": "${taken}" is a tool and a subagent. Rename one of them.`
    throw new SubAgentUnavailable('subagent_unavailable', message)
  }
  return {
    tools: kit.tools,
    sources: kit.sources,
    subagents: new Map([...agent.subagents, ...kit.subagents]),
    groups: new Map([...kit.groups, ...agent.groups]),
    fileLayers: withToolsOfCode(agent.fileLayers, kit),
  }
}
