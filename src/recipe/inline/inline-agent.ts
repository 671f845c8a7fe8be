import type { AgentCore } from '../../agent/definition/agent.ts'
import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import { isBackgroundTool } from '../../delegation/background/tools.ts'
import type { Budget } from '../../grant/budget.ts'
import type { Grant } from '../../grant/grant.ts'
import type { ModelSettings } from '../../model/model.ts'
import type { Tool } from '../../tool/tool.ts'
import type { ToolChoice } from '../agent-file/agent-file.ts'
import type { ExtensionConfig, RetryConfig } from '../recipe/recipe.ts'
import { isOpenTool, type Mode, type OpenSpec } from './spec.ts'

/** An agent as data, whole: what its conversation's row keeps, and all that is needed to make it again. */
export interface InlineAgent {
  readonly form: 1
  /** A recipe or agent file that is run itself, or a child that an agent has described. */
  readonly role: 'root' | 'child'
  readonly name: string
  readonly description: string
  readonly instructions: string
  /** Its last message is all its host gets: it is told to sum up. */
  readonly summary: boolean
  /** Reference material, told apart from what it is and does. */
  readonly context: string | null
  readonly prompt: string | null
  /** `provider/model`; null: its host's. */
  readonly model: string | null
  readonly settings: ModelSettings
  readonly tools: ToolChoice
  /** Its own. */
  readonly extensions: readonly ExtensionConfig[]
  /** Which of its host's extensions it takes over: null for none, `all` with its host's other tools too. */
  readonly inherits: 'all' | readonly string[] | null
  readonly grant: Grant | null
  /** What its file says it may do at most. */
  readonly narrowing: Grant | null
  /** What would be asked for is denied. */
  readonly neverAsks?: true
  readonly mode: Mode
  readonly budget: Budget
  readonly input: JsonSchema | null
  readonly output: JsonSchema | null
  /** What it must give through a tool of its own, instead of an answer in words. */
  readonly response: JsonSchema | null
  readonly retry: RetryConfig | null
  /** The tools it has to start subagents; null for those of its host. */
  readonly open: OpenSpec | null
  /** Where its programs run. */
  readonly cwd: string
  /** The project whose skills it may load: chosen by whoever wrote its definition, never by a model. */
  readonly definitions: string
}

/** What a row keeps. Written by this package, perhaps by a later version of it. */
export function readInline(stored: Json): InlineAgent {
  const given = stored as unknown as Partial<InlineAgent> | null
  if (given?.form === 1) return given as InlineAgent
  throw new DefinitionError('definition', 'This agent was kept by another version of legate, which is needed to go on.')
}

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
