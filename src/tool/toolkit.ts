import type { Keeper } from '../files/files.ts'
import { decide, isForbidden } from '../grant/decide.ts'
import type { Layer } from '../grant/grant.ts'
import { type Request, toolRequest } from '../grant/request.ts'
import type { Effect, Node } from '../graph/rows.ts'
import type { ToolSchema } from '../model/model.ts'
import { type GroupState, type Groups, isAvailable, NO_GROUPS, RESET_TOOLS } from './groups.ts'
import { READ_RESULT } from './result.ts'
import { isFileTool, type Tool, useOf } from './tool.ts'

/** A tool as a model may call it: the user's own, or one that starts a child. */
export interface ToolEntry {
  readonly name: string
  readonly effect: Effect
  readonly timeoutMs: number | null
  readonly delegates: boolean
  /** What a call of it asks for: `tool` and its name, or `agent` and the agent's. */
  readonly request: Request
  /** False for a tool that shows only what its agent was already given. */
  readonly needsGrant: boolean
  /** Its code is ours and works on rows only: it runs also where runs are played back. */
  readonly isOwn?: boolean
  readonly schema: ToolSchema
  /** The groups it is in; one in none is always there. */
  readonly memberOf: readonly string[]
  /** The code to run; null for a tool that starts a child. */
  readonly tool: Tool | null
  /** Of one that may change while nobody looks: what was allowed before it changed is asked for again. */
  readonly version?: string
  /** Where it is shown to a model; left out: wherever it is allowed. */
  readonly isShown?: ((place: Place) => boolean) | undefined
  /** Says what it is for each time before a model is shown it; left out: always the same. */
  readonly describe?: ((isKept: Keeper) => Promise<string>) | undefined
}

const NOT_DESCRIBED: ReadonlyMap<string, string> = new Map()

/** Where tools are offered. */
export interface Place {
  readonly depth: number
  /** Of the model that will be asked: `provider/model`. */
  readonly model: string
  /** Names of the tools that are allowed there. */
  readonly allowed: readonly string[]
}

/** The tools one agent sees. What is offered and what may run come from one decision. */
export class Toolkit {
  private readonly entries: ReadonlyMap<string, ToolEntry>
  private schemas: readonly ToolSchema[]
  private readonly groups: Groups
  /** What the model is told of where its tools come from; empty for nothing. */
  readonly notes: string
  /** Is any of its tools not shown everywhere? Mostly none is. */
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

  /** The same with the tools of sources that were started. What it has already stays. */
  with(entries: readonly ToolEntry[], notes: string): Toolkit {
    const all = new Map([...entries.map((entry) => [entry.name, entry] as const), ...this.entries])
    return new Toolkit(all, this.groups, notes).told(this.described)
  }

  /** Its file tools, for a child that inherits them: groups are its own. */
  fileEntries(): readonly ToolEntry[] {
    return [...this.entries].flatMap(([name, { tool }]) => {
      return tool !== null && isFileTool(tool) ? [toolEntry(name, tool)] : []
    })
  }

  find(name: string): ToolEntry | undefined {
    return this.entries.get(name)
  }

  /** Is it in no group, or in one that is on? */
  isOn({ memberOf }: ToolEntry, state: GroupState): boolean {
    return memberOf.length === 0 || isAvailable(memberOf, this.groups, state)
  }

  /** The tools a model may know of: those that are on and not denied, neither by name nor in all that they do. */
  allowed(layers: readonly Layer[], state: GroupState): readonly ToolSchema[] {
    const isShown = ({ name }: ToolSchema) => this.isAllowed(name, layers, state)
    return this.schemas.every(isShown) ? this.schemas : this.schemas.filter(isShown)
  }

  /**
   * What the model is shown: allowed tools, those that start a child only where one may be started, and `read_result`
   * only where a result was cut.
   */
  offer(layers: readonly Layer[], scope: OfferScope): readonly ToolSchema[] {
    const { context, mayDelegate, groups } = scope
    const allowed = this.inPlace(this.allowed(layers, groups), scope)
    const shown = mayDelegate ? allowed : allowed.filter(({ name }) => this.entries.get(name)?.delegates === false)
    const cut = context.some((node) => node.output.bodyRef !== undefined)
    const reader = cut ? this.entries.get(READ_RESULT) : undefined
    return reader === undefined ? shown : [...shown, reader.schema]
  }

  /** Something must be found out before a model can be shown the tools. */
  get isLate(): boolean {
    return this.late.length > 0
  }

  /** The same for one agent that runs, once that is found out: others may know of other things. */
  async describe(isKept: Keeper): Promise<Toolkit> {
    const said = new Map<string, string>()
    for (const { name, describe } of this.late) if (describe !== undefined) said.set(name, await describe(isKept))
    return new Toolkit(this.entries, this.groups, this.notes).told(said)
  }

  /** Only for one that was just made. */
  private told(said: ReadonlyMap<string, string>): this {
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

/** Built in: they show or switch only what their agent was already given. */
const OWN = [READ_RESULT, RESET_TOOLS]

export function toolEntry(name: string, tool: Tool, memberOf: readonly string[] = []): ToolEntry {
  return {
    name,
    effect: tool.effect,
    timeoutMs: tool.timeoutMs,
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
