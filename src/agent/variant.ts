import { SubAgentUnavailable } from '../base/error.ts'
import { type ModelLike, toModel } from '../model/to-model.ts'
import { type AgentCore, type AnyAgent, markAgent, type Tools } from './agent.ts'
import { withToolsOfCode } from './file-layers.ts'
import { identified } from './identified.ts'
import { readKit } from './read-kit.ts'
import { type Repair, readRepair } from './repair.ts'
import { refuseForReply } from './reply-core.ts'

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
