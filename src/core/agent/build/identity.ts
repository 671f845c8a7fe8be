import { SubAgentUnavailable } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import { keptOptions } from '../../graph/rows.made.ts'
import type { AgentRef } from '../../graph/rows.ts'
import { type ModelLike, toModel } from '../../model/named/to-model.ts'
import { type AgentCore, type AgentIdentity, type AnyAgent, markAgent, type Tools } from '../definition/agent.ts'
import { withToolsOfCode } from '../definition/file-layers.ts'
import { refuseForReply } from '../definition/input.ts'
import { type Repair, readRepair } from '../definition/repair.ts'
import { readKit } from './read-kit.ts'

type AgentWithoutIdentity = Omit<AgentCore, 'identity'>

/** Adds the identity, which is computed at its first use. */
export function withIdentity(core: AgentWithoutIdentity): AgentCore {
  return { ...core, identity: new Identity(core) }
}

/** Separate from the agent, because an object with a lazily computed field makes all its fields slow to read. */
class Identity implements AgentIdentity {
  private readonly core: AgentWithoutIdentity
  private known: AgentRef | undefined

  constructor(core: AgentWithoutIdentity) {
    this.core = core
  }

  get ref(): AgentRef {
    this.known ??= refOf(this.core)
    return this.known
  }
}

function refOf(core: AgentWithoutIdentity): AgentRef {
  const { name, inline } = core
  const hash = hashOf(core)
  if (inline === null) return { name, hash }
  return { name, hash, inline: inline.definition, code: inline.code }
}

/**
 * The hash changes with the agent's instructions and with everything it may use; code inside its tools does not count.
 */
function hashOf(core: AgentWithoutIdentity): string {
  const tools = [...core.tools].map(([name, tool]) => {
    const { description, input, output } = tool
    return [name, description, input.jsonSchema, output?.jsonSchema ?? null, ...Object.values(keptOptions(tool))]
  })
  const shown = toJson({
    name: core.name,
    description: core.description,
    instructions: core.instructions,
    ...(core.prompt === null ? {} : { prompt: core.prompt }),
    ...(core.inline === null ? {} : { inline: core.inline.definition }),
    // The rows name the model itself, so its provider need not be known yet.
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

/** The parts of an agent that are code, and where they apply. */
function codeOf({ files, reply, extensions }: AgentWithoutIdentity): object {
  return {
    ...(files === null ? {} : { files }),
    ...(reply === null ? {} : { reply: reply.effect }),
    ...(extensions.length === 0 ? {} : { extensions: extensions.map(({ name }) => name) }),
  }
}

/** A definition that is stored whole contains its layers. */
function filedOf({ inline, fileLayers }: AgentWithoutIdentity): Partial<Pick<AgentCore, 'fileLayers'>> {
  return inline === null && fileLayers !== null ? { fileLayers } : {}
}

function groupsOf({ groups, meta, subagents }: AgentWithoutIdentity): unknown {
  const members = (group: string) =>
    [...subagents].filter(([, { memberOf }]) => memberOf.includes(group)).map(([name]) => name)
  const shown = [...groups].map(([name, { description, active, notes, tools }]) => {
    return [name, description, active, notes, tools, members(name)]
  })
  return { meta, shown }
}

export interface AgentChanges {
  readonly name?: string | undefined
  readonly model?: ModelLike | undefined
  /** Replaces all of its tools. */
  readonly tools?: Tools | undefined
  readonly repair?: Repair | undefined
  readonly files?: 'inherit' | undefined
}

/**
 * An agent with another name, model, set of tools, files or repair: its hash changes too. Returns the agent itself
 * where nothing changes.
 */
export function withChanges(agent: AnyAgent, { name, model, tools, repair, files }: AgentChanges): AnyAgent {
  if ([name, model, tools, repair, files].every((change) => change === undefined)) return agent
  if (model !== undefined) refuseForReply(agent, 'another one')
  if (tools !== undefined) refuseForReply(agent, 'tools')
  if (repair !== undefined) refuseForReply(agent, 'a repair')
  const changed: Omit<AgentCore, 'identity'> = {
    ...agent,
    name: name ?? agent.name,
    model: toModel(model) ?? agent.model,
    isModelOfFile: model === undefined && agent.isModelOfFile,
    ...(tools === undefined ? {} : kitOf(agent, tools)),
    files: files ?? agent.files,
    repair: readRepair(repair, agent.output, `agent "${agent.name}"`) ?? agent.repair,
    // The rows can no longer store the agent as its file. The restrictions of the file still bind it.
    inline: null,
  }
  return markAgent(withIdentity(changed)) as AnyAgent
}

/** Keeps its subagents; tools made of subagents join them. */
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
