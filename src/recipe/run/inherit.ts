import type { AgentCore } from '../../agent/agent.ts'
import { isBackgroundTool } from '../../delegation/background/tools.ts'
import type { Tool } from '../../tool/tool.ts'
import { isOpenTool } from '../open/open-tool.ts'
import type { InlineAgent } from './inline-agent.ts'

/** The tools of an agent and where they come from. */
export type Kit = Pick<AgentCore, 'tools' | 'sources' | 'groups' | 'meta'>

const NOTHING: Kit = { tools: new Map(), sources: new Map(), groups: new Map(), meta: 'none' }

/** The tools of its host that a child takes over: all of them, or those of the extensions it names. */
export function inherited(inline: InlineAgent, host: AgentCore | undefined): Kit {
  if (host === undefined) return NOTHING
  const groups = [...host.groups].filter(([name]) => isNamed(inline, name))
  const sources = [...host.sources].filter(([name]) => isNamed(inline, name))
  const tools = [...host.tools].filter(([name, tool]) => isPassed(name, tool, { inline, host }))
  return {
    tools: new Map(tools),
    sources: new Map(sources),
    groups: new Map(groups),
    meta: groups.length === 0 ? 'none' : host.meta,
  }
}

/** What starts children goes along, unless it has its own, so that a call of it can be answered. */
function isPassed(name: string, tool: Tool, { inline, host }: { inline: InlineAgent; host: AgentCore }): boolean {
  if (isOpenTool(tool)) return inline.open === null
  if (isBackgroundTool(tool) || isOwn(name)) return false
  const memberOf = extensionsWith(host, name)
  return memberOf.length === 0 ? inline.inherits === 'all' : memberOf.some((one) => isNamed(inline, one))
}

/** The names by which an agent's tools can be chosen from: its groups and its sources. */
export function extensionNames({ groups, sources }: AgentCore): readonly string[] {
  return [...new Set([...groups.keys(), ...sources.keys()])]
}

function extensionsWith({ groups, sources }: AgentCore, tool: string): readonly string[] {
  const inGroups = [...groups].filter(([, group]) => group.tools.includes(tool))
  const inSources = [...sources].filter(([, source]) => source.tools !== null && Object.hasOwn(source.tools, tool))
  return [...inGroups, ...inSources].map(([name]) => name)
}

function isNamed({ inherits }: InlineAgent, name: string): boolean {
  return inherits === 'all' || inherits?.includes(name) === true
}

/** What takes an output or checks an answer is each agent's own. */
function isOwn(name: string): boolean {
  return name.startsWith('recipe__')
}
