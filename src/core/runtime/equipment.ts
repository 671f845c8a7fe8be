import { baseOf } from '../agent/build/asked-agent.ts'
import type { AgentCore } from '../agent/definition/agent.ts'
import { ownEntry } from '../delegation/background/row-tool.ts'
import { eagerOffers } from '../delegation/eager-offers.ts'
import { type SubagentSource, subagentSources } from '../delegation/subagent.ts'
import type { Model } from '../model/model.ts'
import { toModel } from '../model/named/to-model.ts'
import type { Ledger } from '../store/ledger.ts'
import { RESET_TOOLS, resetToolsTool } from '../tool/groups.ts'
import { READ_RESULT, readResultTool } from '../tool/result.ts'
import type { Logger, Tool } from '../tool/tool.ts'
import { type ToolEntry, Toolkit, toolEntry } from '../tool/toolkit.ts'
import type { RuntimeOptions } from './options.ts'

/** The toolkit of each agent: its tools, its subagents, and what is built in. Made once. */
export class Toolkits {
  private readonly ledger: Ledger
  private made: WeakMap<AgentCore, Toolkit> = new WeakMap()
  /** The last one that was made of a toolkit, and of whose. */
  private readonly inherited: WeakMap<Toolkit, { readonly host: Toolkit; readonly toolkit: Toolkit }> = new WeakMap()
  private readonly sources: WeakMap<AgentCore, readonly SubagentSource[]> = new WeakMap()

  constructor(ledger: Ledger) {
    this.ledger = ledger
  }

  of(given: AgentCore): Toolkit {
    const known = this.made.get(given)
    if (known !== undefined) return known
    const agent = baseOf(given)
    const toolkit = this.made.get(agent) ?? this.make(agent)
    this.made.set(given, toolkit)
    return toolkit
  }

  private make(agent: AgentCore): Toolkit {
    const entries = new Map<string, ToolEntry>()
    for (const [name, tool] of agent.tools) entries.set(name, ownEntry(name, tool, groupsWith(agent, name)))
    for (const source of this.sourcesOf(agent)) entries.set(source.name, source.entry())
    entries.set(READ_RESULT, toolEntry(READ_RESULT, readResultTool(this.ledger.store)))
    if (agent.groups.size > 0 && agent.meta !== 'none') {
      entries.set(RESET_TOOLS, toolEntry(RESET_TOOLS, this.resetTool(agent, agent.meta, entries)))
    }
    const toolkit = new Toolkit(entries, agent.groups)
    this.made.set(agent, toolkit)
    return toolkit
  }

  /** An agent's toolkit with the file tools of its host's. What it has already stays. */
  withFiles(own: Toolkit, host: Toolkit): Toolkit {
    const known = this.inherited.get(own)
    if (known?.host === host) return known.toolkit
    const toolkit = own.with(host.fileEntries(), own.notes)
    this.inherited.set(own, { host, toolkit })
    return toolkit
  }

  sourcesOf(agent: AgentCore): readonly SubagentSource[] {
    const known = this.sources.get(agent)
    if (known !== undefined) return known
    const sources = subagentSources(agent)
    this.sources.set(agent, sources)
    return sources
  }

  /** Waits for the agents that its providers promise, before its toolkit can be made. */
  late(given: AgentCore): Promise<unknown>[] {
    const agent = baseOf(given)
    return this.made.has(agent) ? [] : this.sourcesOf(agent).flatMap((source) => source.prepare() ?? [])
  }

  /** The subagents that the agent's model may call, and those that items of its answer start. */
  allBelow(agent: AgentCore): SubagentSource[] {
    return [...this.sourcesOf(agent), ...eagerOffers(agent).map(({ source }) => source)]
  }

  /** Keeps the agents that providers gave: each is called once per delegation. */
  forget(): void {
    this.made = new WeakMap()
  }

  private resetTool(
    { groups }: AgentCore,
    meta: 'absolute' | 'additive',
    entries: ReadonlyMap<string, ToolEntry>,
  ): Tool {
    const membersOf = (group: string) =>
      [...entries.values()]
        .filter(({ memberOf }) => memberOf.includes(group))
        .map(({ name, schema }) => ({ name, description: schema.description }))
    return resetToolsTool(this.ledger, { groups, meta, membersOf })
  }
}

function groupsWith({ groups }: AgentCore, tool: string): readonly string[] {
  if (groups.size === 0) return NO_NAMES
  return [...groups].filter(([, { tools }]) => tools.includes(tool)).map(([name]) => name)
}

const NO_NAMES: readonly string[] = []

/** The models of an application, and the one for agents that name none. */
export class Models {
  /** The model that was given for all agents or found in the environment; null until then. */
  standard: Model | null
  private readonly own: ReadonlyMap<string, Model>
  private readonly logger: Logger

  constructor({ model, models = {} }: Pick<RuntimeOptions, 'model' | 'models'>, logger: Logger) {
    this.logger = logger
    this.standard = toModel(model) ?? null
    this.own = new Map(Object.entries(models).flatMap(([name, one]) => [[name, toModel(one)]] as [string, Model][]))
  }

  has(name: string): boolean {
    return this.own.has(name)
  }

  /** A model by its name: the application's own, else that of a provider. */
  named(name: string): Model | undefined {
    return this.own.get(name) ?? toModel(name)
  }

  /** An agent's own: where a file names it, the application may have one of that name. */
  of(agent: Pick<AgentCore, 'model' | 'inline'>): Model | null {
    const name = agent.inline?.model ?? null
    return (name === null ? undefined : this.own.get(name)) ?? agent.model
  }

  /** Has an agent that nobody delegates to a model, or does it need none? */
  hasFor(agent: Pick<AgentCore, 'model' | 'reply'>): boolean {
    return agent.model !== null || this.standard !== null || agent.reply !== null
  }

  /** Looks for the model of an agent that names none. Throws a DefinitionError when there is none. */
  async find(agent: string): Promise<void> {
    const { modelFor } = await import('../model/named/find-model.ts')
    this.standard = await modelFor(agent)
    this.logger.info(`Neither agent nor runtime names a model: ${this.standard.id} is used.`)
  }
}
