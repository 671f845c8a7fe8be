// Which agents work with files and start programs, and who may start these agents: others than the person at this machine only
// where code has said whose files owners have, and that programs of others are trusted.
//
// Owns:      the look at an agent and everything below it, before it runs.
// Called by: `start-run` before a run of an owner is recorded, `Runtime` before its history is changed, the lists of agents, and
//            the server before it listens.
// Must stay true:
//   - It refuses early and in words. What it cannot see, such as code that uses `context.files`, meets the same refusal at the
//     files themselves (`files/undecided-files`); a program that it cannot see meets the layer of `withoutPrograms`.
//   - An agent that no layer lets near files or programs is not refused.

import { baseOf } from '../../agent/build/asked-agent.ts'
import type { AgentCore } from '../../agent/definition/agent.ts'
import { fileDelegateLayers, fileUseLayers } from '../../agent/definition/file-layers.ts'
import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { hasOwnFolder, type Owners } from '../../base/owner-folder.ts'
import { backgroundAgents } from '../../delegation/background/tools.ts'
import { grantAt } from '../../delegation/child-authority.ts'
import type { SubagentSource } from '../../delegation/subagent.ts'
import type { FileDomain } from '../../files/files.ts'
import { undecided } from '../../files/undecided-files.ts'
import { readCeiling } from '../../grant/ceiling.ts'
import { mayEver } from '../../grant/decide.ts'
import { delegateLayer, type Layer, useLayer } from '../../grant/grant.ts'
import { WITHOUT_PROGRAMS } from '../../grant/principal.ts'
import type { ToolSource } from '../../tool/source.ts'
import { factsOf, isFileTool, type OwnerStore, type Tool, type WorksWith } from '../../tool/tool.ts'

export interface NeedsParts {
  readonly files: FileDomain | null
  readonly runtimeLayer: readonly Layer[]
  /** The subagents of an agent, before its model has seen anything. */
  readonly sourcesOf: (agent: AgentCore) => readonly SubagentSource[]
}

/** Throws a DefinitionError where nobody has said whose files a run of this owner would work with. */
export function requireFiles(agent: AgentCore, owner: string | null, parts: NeedsParts): void {
  const isDecided = !hasOwnFolder(owner) || parts.files === null || parts.files.owners !== null
  if (!isDecided && ownersOfFiles(agent, parts) !== null) throw undecided(`"${agent.name}"`)
}

/** Whose the files are that an agent works with; null for an agent that works with none. */
export function ownersOfFiles(agent: AgentCore, parts: NeedsParts): Owners | 'undecided' | null {
  const { files, runtimeLayer } = parts
  if (files === null) return null
  const may = reachOf(NOTHING_DENIED, runtimeLayer)
  return isAnyBelow(agent, may, { family: new Family(parts), isWanted: worksWithFiles })
    ? (files.owners ?? 'undecided')
    : null
}

/**
 * Throws a DefinitionError where an agent may start programs under these layers. For runs of others than the person at this machine,
 * in a runtime that does not trust their programs.
 */
export function requireNoPrograms(agent: AgentCore, ceiling: readonly Json[], parts: NeedsParts): void {
  if (!startsPrograms(agent, ceiling, parts)) return
  throw new DefinitionError('programs_untrusted', `Only the person at this machine starts "${agent.name}": ${WHY}`)
}

/** May this agent, or one below it, start programs under these layers? */
export function startsPrograms(agent: AgentCore, ceiling: readonly Json[], parts: NeedsParts): boolean {
  const may = reachOf({ files: false, programs: true }, [...parts.runtimeLayer, ...layersOfAsker(ceiling)])
  return isAnyBelow(agent, may, { family: new Family(parts), isWanted: mayStartPrograms })
}

const WHY =
  'it may start programs, and a program reads and writes what your user account can, the token of this machine and the store among it. Deny exec:* to the agent, the runtime or the token; give the token fewer agents; or trust everybody who can start it like yourself, with createRuntime({ trustPrograms: true }), on the command line --trust-programs.'

/**
 * The layers of whoever asks for a run, without the one that keeps programs from others, and without those that bind an agent or
 * its children alone.
 */
function layersOfAsker(ceiling: readonly Json[]): readonly Layer[] {
  return readCeiling(ceiling).filter(({ by, binds }) => by !== WITHOUT_PROGRAMS && binds === undefined)
}

/** Everything that an agent may reach. */
interface Reach {
  readonly files: boolean
  readonly programs: boolean
}

const NOTHING_DENIED: Reach = { files: true, programs: true }

const FILE_DOMAINS = ['file.list', 'file.read', 'file.write', 'file.delete']

function reachOf({ files, programs }: Reach, layers: readonly Layer[]): Reach {
  return {
    files: files && FILE_DOMAINS.some((domain) => mayEver(layers, domain)),
    programs: programs && mayEver(layers, 'exec'),
  }
}

function eitherOf(one: Reach, other: Reach): Reach {
  return { files: one.files || other.files, programs: one.programs || other.programs }
}

/** The place of an agent below the one that is started. */
interface Place {
  readonly may: Reach
  readonly depth: number
  readonly hostHasFiles: boolean
}

/** The means of an agent at its place. */
interface Found {
  readonly agent: AgentCore
  readonly has: (kind: WorksWith) => boolean
  /** It has the files of its host. */
  readonly inherits: boolean
  /** Everything that the agent may reach, itself or through children that have its tools. */
  readonly reached: Reach
  /** Everything that its children may reach. */
  readonly passedOn: Reach
}

interface Search {
  readonly family: Family
  readonly isWanted: (found: Found) => boolean
}

interface Walk extends Search {
  /** How each agent was met before. */
  readonly seen: Map<AgentCore, Set<string>>
}

/** Is there one that is wanted, among an agent and all below it? */
function isAnyBelow(agent: AgentCore, may: Reach, search: Search): boolean {
  return isAnyAt(agent, { may, depth: 0, hostHasFiles: false }, { ...search, seen: new Map() })
}

function worksWithFiles({ has, inherits, reached, passedOn }: Found): boolean {
  if (reached.files && (inherits || has('files'))) return true
  if (reached.programs && has('programs')) return true
  return has('any') && (passedOn.files || passedOn.programs)
}

function mayStartPrograms({ agent, has, reached, passedOn }: Found): boolean {
  const isProgram = ({ needs }: ToolSource) => needs.some(({ domain }) => domain === 'exec')
  const isStarting = agent.guards !== null || has('programs') || [...agent.sources.values()].some(isProgram)
  if (reached.programs && isStarting) return true
  return has('any') && passedOn.programs
}

function isAnyAt(agent: AgentCore, place: Place, walk: Walk): boolean {
  const { may, depth, hostHasFiles } = place
  if (!may.files && !may.programs) return false
  const met = `${may.files} ${may.programs} ${hostHasFiles} ${depth > 0}`
  const before = walk.seen.get(agent) ?? new Set()
  if (before.has(met)) return false
  walk.seen.set(agent, before.add(met))
  const grant = grantAt(agent, depth)
  const own = reachOf(may, [...fileUseLayers(agent), useLayer(agent.name, grant)])
  const passedOn = reachOf(may, [...fileDelegateLayers(agent), delegateLayer(agent.name, grant)])
  const tools = toolsOf(agent)
  const inherits = agent.files !== null && hostHasFiles
  const has = (kind: WorksWith) => tools.some((tool) => factsOf(tool).works === kind)
  const reached = has('same') ? eitherOf(own, passedOn) : own
  if (walk.isWanted({ agent, has, inherits, reached, passedOn })) return true
  const below = { may: passedOn, depth: depth + 1, hostHasFiles: inherits || tools.some(isFileTool) }
  return walk.family.below(agent).some((child) => isAnyAt(child, below, walk))
}

/** Its own tools, and those of its sources that are ready at once. */
function toolsOf({ tools, sources }: AgentCore): readonly Tool[] {
  return [...tools.values(), ...[...sources.values()].flatMap((source) => Object.values(source.tools ?? {}))]
}

/** The agents below others, as far as they are known. What a provider made is not looked into: it may offer itself, without end. */
class Family {
  private readonly sourcesOf: NeedsParts['sourcesOf']
  private readonly provided: Set<AgentCore> = new Set()

  constructor({ sourcesOf }: Pick<NeedsParts, 'sourcesOf'>) {
    this.sourcesOf = sourcesOf
  }

  below(given: AgentCore): readonly AgentCore[] {
    const agent = baseOf(given)
    if (this.provided.has(agent)) return []
    const found: AgentCore[] = [...backgroundAgents(agent.tools)]
    for (const source of this.sourcesOf(agent)) {
      const below = source.first()
      if (below === null || below instanceof Promise) continue
      if (source.isProvided) this.provided.add(baseOf(below))
      found.push(below)
    }
    return found
  }
}

/** Data of owners beside the rows: their files, and the data that tools of these agents and of all below them keep. */
export function ownerStoresOf(agents: Iterable<AgentCore>, parts: NeedsParts): readonly Pick<OwnerStore, 'forget'>[] {
  const { files } = parts
  const found = new Map<string, OwnerStore>()
  const family = new Family(parts)
  const seen = new Set<AgentCore>()
  const waiting = [...agents]
  for (let agent = waiting.pop(); agent !== undefined; agent = waiting.pop()) {
    if (seen.has(agent)) continue
    seen.add(agent)
    for (const store of toolsOf(agent).flatMap((tool) => factsOf(tool).store ?? [])) found.set(store.key, store)
    waiting.push(...family.below(agent))
  }
  const own = files === null ? [] : [{ forget: (owner: string) => files.forgetOwner(owner) }]
  return [...own, ...found.values()]
}
