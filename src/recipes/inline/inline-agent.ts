import type { AgentCore } from '../../core/agent/definition/agent.ts'
import { DefinitionError } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import type { JsonSchema } from '../../core/base/schema/schema.ts'
import { isBackgroundTool } from '../../core/delegation/background/tools.ts'
import { type Budget, storedBudget } from '../../core/grant/budget.ts'
import { sinceSecrets } from '../../core/grant/former.ts'
import type { Grant } from '../../core/grant/grant.ts'
import type { ModelSettings } from '../../core/model/model.ts'
import type { Tool } from '../../core/tool/tool.ts'
import type { MemoryToolsOptions } from '../../core/tools/memory-tools.ts'
import type { AgentMemory, ToolSelection } from '../agent-file/agent-file.ts'
import type { FileHook } from '../agent-file/file-hook.ts'
import type { ExtensionConfig, RetryConfig } from '../agent-file/recipe.ts'
import { isOpenTool, type Mode, type OpenSpec } from './spec.ts'

/** A complete agent as data. Its conversation's row keeps it, and nothing else is needed to build it again. */
export interface InlineAgent {
  readonly form: 1
  /** `root` for a file that is run directly, `child` for an agent that another one described. */
  readonly role: 'root' | 'child'
  readonly name: string
  readonly description: string
  readonly instructions: string
  /** Whether its host gets only its last message, so that it is told to sum up. */
  readonly summary: boolean
  /** Reference material, separate from the instructions. */
  readonly context: string | null
  readonly prompt: string | null
  /** `provider/model`; null: the host's model. */
  readonly model: string | null
  readonly settings: ModelSettings
  readonly tools: ToolSelection
  /** Its own extensions. */
  readonly extensions: readonly ExtensionConfig[]
  /** The extensions it takes over from its host: null for none, `all` includes the host's other tools. */
  readonly inherits: 'all' | readonly string[] | null
  readonly grant: Grant | null
  /** The upper limit that its file sets. */
  readonly narrowing: Grant | null
  /** Whether requests that would ask a person are denied instead. */
  readonly neverAsks?: true
  /** Where its memory counts, where its file asks for one. */
  readonly remembers?: AgentMemory
  /** The hooks of its file. Left out where there are none. */
  readonly hooks?: readonly FileHook[]
  readonly mode: Mode
  readonly budget: Budget
  readonly input: JsonSchema | null
  readonly output: JsonSchema | null
  /** The schema of the output it must give through a tool, instead of a text answer. */
  readonly response: JsonSchema | null
  readonly retry: RetryConfig | null
  /** Its tools to start subagents; null for those of its host. */
  readonly open: OpenSpec | null
  /** The working folder of its programs. */
  readonly cwd: string
  /** The project whose skills it may load. The author of the definition chooses it, never a model. */
  readonly definitions: string
  /** How its extension `memory` keeps what it is told, as code says it: never its file, which a model may have written. */
  readonly memory?: MemoryToolsOptions
  /** The files that it was read from. Rows that have none are of before secrets were requests. */
  readonly files?: readonly string[]
  /** The one of them that lay where a run could write when it was read: its servers get no secret that it names. */
  readonly withheld?: string
  /** True where its file, or the call that describes it, names its model. */
  readonly namesModel?: true
}

/** Reads an agent from a row, which this version of the package or a later one wrote. */
export function readInline(stored: Json): InlineAgent {
  const given = stored as unknown as Partial<InlineAgent> | null
  if (given?.form === 1) return { ...asOfToday(given as InlineAgent), budget: storedBudget(given.budget ?? {}) }
  throw new DefinitionError('definition', 'This agent was kept by another version of legate, which is needed to go on.')
}

/**
 * Reads an agent of before secrets were requests. Its grant counts as the one of today where it was made from everything; its
 * file could say nothing about secrets, so it lets them pass. Whatever is above it decides.
 */
function asOfToday(given: InlineAgent): InlineAgent {
  const { files, grant, narrowing } = given
  if (files !== undefined) return given
  return {
    ...given,
    grant: grant?.use === undefined ? grant : { ...grant, ...sinceSecretsIn(grant, grant.use) },
    narrowing: narrowing?.use === undefined ? narrowing : { ...narrowing, use: [...narrowing.use, 'secret:*'] },
  }
}

function sinceSecretsIn({ ask = [] }: Grant, use: readonly string[]): Grant {
  const read = sinceSecrets({ allow: use, ask })
  return { use: read.allow, ask: read.ask }
}

/** The tools of an agent and their sources. */
export type Kit = Pick<AgentCore, 'tools' | 'sources' | 'groups' | 'meta'>

const NOTHING: Kit = { tools: new Map(), sources: new Map(), groups: new Map(), meta: 'none' }

/** Selects the host's tools that a child takes over: all, or those of the extensions it names. */
export function inheritedTools(inline: InlineAgent, host: AgentCore | undefined): Kit {
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

/**
 * Tells whether a tool of the host is passed on. Tools that start children are, unless the child has its own, so that a
 * call to one gets an answer.
 */
function isPassed(name: string, tool: Tool, { inline, host }: { inline: InlineAgent; host: AgentCore }): boolean {
  if (isOpenTool(tool)) return inline.open === null
  if (isBackgroundTool(tool) || isOwn(name)) return false
  const memberOf = extensionsWith(host, name)
  return memberOf.length === 0 ? inline.inherits === 'all' : memberOf.some((one) => isNamed(inline, one))
}

/** Lists the names by which an agent's tools can be selected: its groups and its sources. */
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

/** Recognizes tools that take the output or check the answer: each agent has its own. */
function isOwn(name: string): boolean {
  return name.startsWith('recipe__')
}
