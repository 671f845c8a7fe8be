import { DefinitionError, SubAgentUnavailable } from '../../base/error.ts'
import type { Schema } from '../../base/schema/schema.ts'
import { isToolSource, SOURCE_SEPARATOR, type ToolSource } from '../../tool/source.ts'
import { subagentIn, type Tool } from '../../tool/tool.ts'
import {
  type AgentCore,
  type AgentDefinition,
  type GroupCore,
  type GroupedTools,
  isAgent,
  type OwnSubagent,
  type Sources,
  type SubagentConfig,
  type Tools,
  toolkitMark,
} from '../definition/agent.ts'
import { freeName, type NameClash, resolveClash } from '../definition/subagent-options.ts'
import { type NamedSubagent, readSubagents, readTools } from './read-subagents.ts'

type Kit = Pick<AgentCore, 'tools' | 'sources' | 'subagents' | 'groups'>

/** Reads the tools and subagents of a definition, in groups or not, each under one name. */
export function readKit(
  {
    tools,
    sources,
    subagents,
    toolkit,
    name,
  }: Pick<
    AgentDefinition<Schema | undefined, Schema | undefined>,
    'name' | 'tools' | 'sources' | 'subagents' | 'toolkit'
  >,
  where: string,
): Kit {
  const kit = new KitReader(name, where)
  kit.addTools(tools ?? {}, null)
  const given = readSources(sources, where)
  for (const source of given.values()) kit.addTools(source.tools ?? {}, null)
  const groups = toolkit === undefined ? NO_GROUPS : groupsIn(toolkit, where)
  for (const [group, { tools: inGroup, onNameClash }] of groups) kit.addTools(inGroup ?? {}, group, onNameClash)
  kit.addSubagents(readSubagents(subagents ?? {}, where), null)
  for (const [group, { subagents: inGroup, onNameClash }] of groups) {
    kit.addSubagents(readSubagents(inGroup ?? {}, `${where}, group "${group}"`), group, onNameClash)
  }
  return { ...kit.finish(groups), sources: given }
}

function groupsIn(toolkit: GroupedTools, where: string): GroupedTools['groups'] {
  if (toolkit?.[toolkitMark] !== true) refuse(`${where}: make its toolkit with toolkit({ groups }).`)
  return toolkit.groups
}

const NO_GROUPS: GroupedTools['groups'] = new Map()
/** The group of a tool made of a subagent, unless it is put elsewhere. */
export const SUBAGENTS_GROUP = 'subagents'

interface Member {
  readonly what: 'tool' | 'subagent'
  readonly value: unknown
  readonly memberOf: string[]
  readonly config: SubagentConfig | null
  readonly onClash: NameClash | undefined
}

/**
 * Collects an agent's tools and subagents by name: one object may be in several groups, but two objects may not share a
 * name.
 */
class KitReader {
  private readonly members: Map<string, Member> = new Map()
  private readonly host: string
  private readonly where: string

  constructor(host: string, where: string) {
    this.host = host
    this.where = where
  }

  addTools(tools: Tools, group: string | null, onClash?: NameClash): void {
    for (const [name, tool] of readTools(tools, group === null ? this.where : `${this.where}, group "${group}"`)) {
      const config = subagentIn(tool) as SubagentConfig | undefined
      if (config === undefined) this.add(name, { what: 'tool', value: tool, config: null, onClash }, group)
      else this.addSubagent({ name, value: tool, config }, group, onClash)
    }
  }

  addSubagents(subagents: readonly NamedSubagent[], group: string | null, onClash?: NameClash): void {
    for (const subagent of subagents) this.addSubagent(subagent, group, onClash)
  }

  private addSubagent({ name, value, config }: NamedSubagent, group: string | null, onClash?: NameClash): void {
    const member = { what: 'subagent', value, config, onClash: config.onNameClash ?? onClash } as const
    this.add(name, member, group ?? config.group ?? null)
  }

  finish(given: GroupedTools['groups']): Omit<Kit, 'sources'> {
    const tools = new Map<string, Tool>()
    const subagents = new Map<string, OwnSubagent>()
    for (const [name, { value, config, memberOf }] of this.members) {
      this.checkGroups(name, memberOf, given)
      if (config === null) tools.set(name, value as Tool)
      else subagents.set(name, { config, memberOf })
    }
    return { tools, subagents, groups: this.groups(given) }
  }

  private add(name: string, member: Omit<Member, 'memberOf'>, group: string | null): void {
    const known = this.members.get(name)
    if (known === undefined) {
      this.members.set(name, { ...member, memberOf: group === null ? [] : [group] })
      return
    }
    if (known.value === member.value && known.memberOf.length > 0 && group !== null) {
      known.memberOf.push(group)
      return
    }
    this.resolveNames(name, known, { ...member, memberOf: group === null ? [] : [group] })
  }

  private resolveNames(name: string, first: Member, second: Member): void {
    const settled = resolveClash(first.onClash, second.onClash)
    if (settled === null) this.refuseTwo(name, first, second)
    const [stays, goes] = settled.stays === 'first' ? [first, second] : [second, first]
    this.members.set(name, stays)
    if (settled.isRenamed)
      this.members.set(
        freeName(name, (other) => this.members.has(other)),
        goes,
      )
  }

  private refuseTwo(name: string, one: Pick<Member, 'what'>, other: Pick<Member, 'what'>): never {
    if (one.what === 'tool' && other.what === 'tool') {
      refuse(`${this.where}: there is another tool "${name}". Rename one of them.`)
    }
    const words =
      one.what === other.what
        ? `"${this.host}" has two tools named "${name}". Use keys.`
        : `${this.where}: "${name}" is a tool and a subagent. Rename one of them.`
    throw new SubAgentUnavailable('subagent_unavailable', `agent(): ${words}`)
  }

  /** The group of hand-made subagents appears with the first of them. */
  private checkGroups(name: string, memberOf: readonly string[], given: GroupedTools['groups']): void {
    const missing = memberOf.find((group) => !given.has(group) && group !== SUBAGENTS_GROUP)
    if (missing === undefined) return
    const known = [...given.keys()].join(', ') || 'none'
    const words = `the subagent "${name}" belongs to the group "${missing}", which there is not. There are: ${known}.`
    throw new SubAgentUnavailable('subagent_unavailable', `agent(): ${this.where}: ${words}`)
  }

  private groups(given: GroupedTools['groups']): ReadonlyMap<string, GroupCore> {
    const isMade = (name: string) => [...this.members.values()].some(({ memberOf }) => memberOf.includes(name))
    if (given.size === 0 && !isMade(SUBAGENTS_GROUP)) return NO_GROUP_CORES
    const groups = new Map<string, GroupCore>()
    for (const [name, { description, active, notes = '' }] of given) {
      groups.set(name, { description, active, notes, tools: this.toolsOf(name) })
    }
    if (!groups.has(SUBAGENTS_GROUP) && isMade(SUBAGENTS_GROUP)) {
      const description = `Delegated subagents for ${this.host}`
      groups.set(SUBAGENTS_GROUP, { description, active: true, notes: '', tools: [] })
    }
    return groups
  }

  private toolsOf(group: string): string[] {
    const inGroup = ({ what, memberOf }: Member) => what === 'tool' && memberOf.includes(group)
    return [...this.members].filter(([, member]) => inGroup(member)).map(([name]) => name)
  }
}

const NO_GROUP_CORES: ReadonlyMap<string, GroupCore> = new Map()

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}

const NONE: ReadonlyMap<string, ToolSource> = new Map()

/** The sources of a definition by their names. */
function readSources(sources: Sources | undefined, where: string): ReadonlyMap<string, ToolSource> {
  if (sources === undefined) return NONE
  if (typeof sources !== 'object' || sources === null || Array.isArray(sources)) {
    refuse(`${where}: sources are an object, { name: mcpServer({ ... }) }.`)
  }
  for (const [name, source] of Object.entries(sources)) {
    // The end of a source's name must be visible in the names of its tools.
    const isName = /^[a-zA-Z0-9](?:[a-zA-Z0-9_-]{0,38}[a-zA-Z0-9-])?$/.test(name) && !name.includes(SOURCE_SEPARATOR)
    if (!isName) {
      refuse(`${where}: "${name}" is not a name for a source: letters, digits, - and single _ inside, at most 40.`)
    }
    if (!isToolSource(source)) {
      refuse(`${where}: sources.${name} is not a source: make it with mcpServer({ ... }) or builtinToolkit(name).`)
    }
  }
  return new Map(Object.entries(sources))
}

/** True for a source that must be started. */
export function isLive({ tools }: ToolSource): boolean {
  return tools === null
}

/** True when the agent has sources that must be started before its first step. */
export function hasLiveSources({ sources }: AgentCore): boolean {
  return [...sources.values()].some(isLive)
}

/** A secret that a source needs and that has no value. */
export interface MissingSecret {
  readonly key: string
  readonly source: string
  readonly agent: string
}

/** The secrets without a value that an agent and its subagents need, each key once: ask for them before a run. */
export function missingSecrets(agent: AgentCore): MissingSecret[] {
  const found = new Map<string, MissingSecret>()
  collect(agent, found, new Set())
  return [...found.values()]
}

/** Agents of a provider function are unknown before they are used. */
function collect(agent: AgentCore, found: Map<string, MissingSecret>, seen: Set<AgentCore>): void {
  if (seen.has(agent)) return
  seen.add(agent)
  for (const [source, { missing }] of agent.sources) {
    for (const key of missing()) if (!found.has(key)) found.set(key, { key, source, agent: agent.name })
  }
  for (const { config } of agent.subagents.values()) if (isAgent(config.agent)) collect(config.agent, found, seen)
}
