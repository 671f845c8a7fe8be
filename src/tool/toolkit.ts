import { decide } from '../grant/decide.ts'
import type { Layer } from '../grant/grant.ts'
import type { Effect, Node } from '../graph/rows.ts'
import type { ToolSchema } from '../model/model.ts'
import { READ_RESULT } from './read-result.ts'
import type { Tool } from './tool.ts'

/** A tool as a model may call it: the user's own, or one that starts a child. */
export interface ToolEntry {
  readonly name: string
  readonly effect: Effect
  readonly timeoutMs: number | null
  readonly delegates: boolean
  /** The grant it needs: `tool` and its name, or `agent` and the agent's. */
  readonly domain: 'tool' | 'agent'
  readonly asks: string
  /** False for a tool that shows only what its agent was already given. */
  readonly needsGrant: boolean
  readonly schema: ToolSchema
  /** The code to run; null for a tool that starts a child. */
  readonly tool: Tool | null
}

/** The tools one agent sees. What is offered and what may run come from one decision. */
export class Toolkit {
  private readonly entries: ReadonlyMap<string, ToolEntry>
  private readonly schemas: readonly ToolSchema[]

  constructor(entries: ReadonlyMap<string, ToolEntry>) {
    this.entries = entries
    this.schemas = [...entries.values()].filter(({ name }) => name !== READ_RESULT).map(({ schema }) => schema)
  }

  find(name: string): ToolEntry | undefined {
    return this.entries.get(name)
  }

  /** The tools a model may know of: those that are not denied. */
  allowed(layers: readonly Layer[]): readonly ToolSchema[] {
    if (this.schemas.every(({ name }) => this.isAllowed(name, layers))) return this.schemas
    return this.schemas.filter(({ name }) => this.isAllowed(name, layers))
  }

  /**
   * What the model is shown: allowed tools, those that start a child only where one may be started, and `read_result`
   * only where a result was cut.
   */
  offer(layers: readonly Layer[], context: readonly Node[], mayDelegate: boolean): readonly ToolSchema[] {
    const allowed = this.allowed(layers)
    const shown = mayDelegate ? allowed : allowed.filter(({ name }) => this.entries.get(name)?.delegates === false)
    const cut = context.some((node) => node.output.bodyRef !== undefined)
    const reader = cut ? this.entries.get(READ_RESULT) : undefined
    return reader === undefined ? shown : [...shown, reader.schema]
  }

  private isAllowed(name: string, layers: readonly Layer[]): boolean {
    const entry = this.entries.get(name)
    return entry !== undefined && decide(layers, entry.domain, entry.asks).verdict !== 'deny'
  }
}

export function toolEntry(name: string, tool: Tool): ToolEntry {
  return {
    name,
    effect: tool.effect,
    timeoutMs: tool.timeoutMs,
    delegates: false,
    domain: 'tool',
    asks: name,
    needsGrant: name !== READ_RESULT,
    get schema() {
      return { name, description: tool.description, inputSchema: tool.input.jsonSchema }
    },
    tool,
  }
}
