// The tools of one agent: which ones its model is offered, and which entry a call belongs to. `runtime/resolve-agent`
// makes a toolkit from a definition, `agent/step/open-sources` adds tools of sources, `agent/request` offers the tools,
// and `agent/step` and `delegation/run` look up calls.
//
// Stays true:
// - Offering and running ask the same layers: a tool of which every call would be denied is not offered.
// - A toolkit is shared by all runs of an agent. One that differs for a run is another toolkit (`with`, `describe`).
// - Groups switch tools on and off; they grant nothing.

import type { Keeper } from '../files/files.ts'
import { decide, isForbidden } from '../grant/decide.ts'
import type { Layer } from '../grant/grant.ts'
import { type Request, toolRequest } from '../grant/request.ts'
import type { KeptOptions, Node } from '../graph/rows.ts'
import type { ToolSchema } from '../model/model.ts'
import { type GroupState, type Groups, isAvailable, NO_GROUPS, RESET_TOOLS } from './groups.ts'
import { READ_RESULT } from './result.ts'
import { isFileTool, type Tool, useOf } from './tool.ts'

/** A tool that a model may call: the user's own, or one that starts a child. */
export interface ToolEntry {
  readonly name: string
  /** The options that the task of a call keeps. */
  readonly options: KeptOptions
  readonly delegates: boolean
  /** The request of a call: `tool` and its name, or `agent` and the agent's name. */
  readonly request: Request
  /** False for a tool that shows only things its agent already has. */
  readonly needsGrant: boolean
  /** True: its code is ours and only reads and writes rows, so it also runs on replay. */
  readonly isOwn?: boolean
  readonly schema: ToolSchema
  /** Its groups; a tool in none is always available. */
  readonly memberOf: readonly string[]
  /** The code to run; null for a tool that starts a child. */
  readonly tool: Tool | null
  /** Set for a tool that may change meanwhile: a person who allowed an older version is asked again. */
  readonly version?: string
  /** Decides where a model sees it. Default: wherever it is allowed. */
  readonly isShown?: ((place: OfferPlace) => boolean) | undefined
  /** Writes its description each time before a model sees it. Default: a constant one. */
  readonly describe?: ((isKept: Keeper) => Promise<string>) | undefined
}

const NOT_DESCRIBED: ReadonlyMap<string, string> = new Map()

/** The situation in which tools are offered. */
export interface OfferPlace {
  readonly depth: number
  /** The model that will be called: `provider/model`. */
  readonly model: string
  /** Names of the tools that are allowed there. */
  readonly allowed: readonly string[]
}

/** The tools of one agent. One decision governs both which tools are offered and which may run. */
export class Toolkit {
  private readonly entries: ReadonlyMap<string, ToolEntry>
  private schemas: readonly ToolSchema[]
  private readonly groups: Groups
  /** Instructions for the model about the sources of its tools; may be empty. */
  readonly notes: string
  /** True when some tool is not shown everywhere, which is rare. */
  private readonly isChoosy: boolean
  private readonly late: readonly ToolEntry[]
  private described: ReadonlyMap<string, string> = NOT_DESCRIBED

  constructor(entries: ReadonlyMap<string, ToolEntry>, groups: Groups = NO_GROUPS, notes = '') {
    this.entries = entries
    this.groups = groups
    this.notes = notes
    this.late = [...entries.values()].filter(({ describe }) => describe !== undefined)
    this.isChoosy = [...entries.values()].some(({ isShown }) => isShown !== undefined)
    this.schemas = [...entries.values()].filter(({ name }) => name !== READ_RESULT).map(({ schema }) => schema)
  }

  /** Adds the tools of started sources. Existing tools win. */
  with(entries: readonly ToolEntry[], notes: string): Toolkit {
    const all = new Map([...entries.map((entry) => [entry.name, entry] as const), ...this.entries])
    return new Toolkit(all, this.groups, notes).withDescriptions(this.described)
  }

  /** Its file tools, without groups, for a child that inherits them. */
  fileEntries(): readonly ToolEntry[] {
    return [...this.entries].flatMap(([name, { tool }]) => {
      return tool !== null && isFileTool(tool) ? [toolEntry(name, tool)] : []
    })
  }

  find(name: string): ToolEntry | undefined {
    return this.entries.get(name)
  }

  /** True for a tool in no group, or in one that is on. */
  isOn({ memberOf }: ToolEntry, state: GroupState): boolean {
    return memberOf.length === 0 || isAvailable(memberOf, this.groups, state)
  }

  /** The tools that a model may see: on, and not denied, neither by name nor in everything they do. */
  private allowed(layers: readonly Layer[], state: GroupState): readonly ToolSchema[] {
    const isShown = ({ name }: ToolSchema) => this.isAllowed(name, layers, state)
    return this.schemas.every(isShown) ? this.schemas : this.schemas.filter(isShown)
  }

  /**
   * The tools that the model is offered: allowed tools, those that start a child only where one may start, and
   * `read_result` only where a result was cut.
   */
  offer(layers: readonly Layer[], scope: OfferScope): readonly ToolSchema[] {
    const { context, mayDelegate, groups } = scope
    const allowed = this.inPlace(this.allowed(layers, groups), scope)
    const shown = mayDelegate ? allowed : allowed.filter(({ name }) => this.entries.get(name)?.delegates === false)
    const cut = context.some((node) => node.output.bodyRef !== undefined)
    const reader = cut ? this.entries.get(READ_RESULT) : undefined
    return reader === undefined ? shown : [...shown, reader.schema]
  }

  /** True when a description must be computed before a model can see the tools. */
  get isLate(): boolean {
    return this.late.length > 0
  }

  /** The toolkit of one running agent, with computed descriptions: other agents may read others. */
  async describe(isKept: Keeper): Promise<Toolkit> {
    const said = new Map<string, string>()
    for (const { name, describe } of this.late) if (describe !== undefined) said.set(name, await describe(isKept))
    return new Toolkit(this.entries, this.groups, this.notes).withDescriptions(said)
  }

  /** Call it only on a new toolkit. */
  private withDescriptions(said: ReadonlyMap<string, string>): this {
    if (said.size === 0) return this
    this.described = said
    this.schemas = this.schemas.map((schema) => {
      const description = said.get(schema.name)
      return description === undefined || description === schema.description ? schema : { ...schema, description }
    })
    return this
  }

  private inPlace(schemas: readonly ToolSchema[], { depth, model }: OfferScope): readonly ToolSchema[] {
    if (!this.isChoosy) return schemas
    const place = { depth, model: model(), allowed: schemas.map(({ name }) => name) }
    return schemas.filter(({ name }) => this.entries.get(name)?.isShown?.(place) !== false)
  }

  private isAllowed(name: string, layers: readonly Layer[], state: GroupState): boolean {
    const entry = this.entries.get(name)
    if (entry === undefined || !this.isOn(entry, state)) return false
    if (entry.needsGrant && decide(layers, entry.request).verdict === 'deny') return false
    const use = entry.tool === null ? undefined : useOf(entry.tool)
    return use === undefined || !isForbidden(layers, use)
  }
}

interface OfferScope {
  readonly context: readonly Node[]
  readonly mayDelegate: boolean
  readonly groups: GroupState
  readonly depth: number
  readonly model: () => string
}

/** Built-in tools, which show or switch only things their agent already has. */
const OWN = [READ_RESULT, RESET_TOOLS]

export function toolEntry(name: string, tool: Tool, memberOf: readonly string[] = []): ToolEntry {
  return {
    name,
    options: tool,
    delegates: false,
    request: toolRequest(name),
    needsGrant: !OWN.includes(name),
    isOwn: OWN.includes(name),
    memberOf,
    get schema() {
      return { name, description: tool.description, inputSchema: tool.input.jsonSchema }
    },
    tool,
  }
}
