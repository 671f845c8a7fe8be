import { baseOf } from '../agent/build/asked-agent.ts'
import type { AgentRegistry } from '../agent/build/registry.ts'
import type { AgentCore } from '../agent/definition/agent.ts'
import type { Maker } from '../agent/hooks/node-run.ts'
import { DefinitionError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { ownEntry } from '../delegation/background/row-tool.ts'
import { eagerOffers } from '../delegation/eager-offers.ts'
import { type SubagentSource, subagentSources } from '../delegation/subagent.ts'
import type { Conversation, Id } from '../graph/rows.ts'
import type { Model } from '../model/model.ts'
import { toModel } from '../model/named/to-model.ts'
import { readInline } from '../recipe/inline/inline-agent.ts'
import { buildCore, inlineCore } from '../recipe/run/inline-core.ts'
import type { Ledger } from '../store/ledger.ts'
import type { Store } from '../store/store.ts'
import { RESET_TOOLS, resetToolsTool } from '../tool/groups.ts'
import { READ_RESULT, readResultTool } from '../tool/result.ts'
import type { Logger, Tool } from '../tool/tool.ts'
import { type ToolEntry, Toolkit, toolEntry } from '../tool/toolkit.ts'
import type { RuntimeOptions } from './options.ts'

const MOST_KEPT = 512

interface Made {
  readonly hash: string
  /** Of the registry, when it was made: what it takes over may be another's code by now. */
  readonly version: number
  readonly core: AgentCore
}

/** Finds the agent of any run: one this process has code for, or one that is made again from its conversation's row. */
export class AgentFinder implements Maker {
  readonly models: Models
  private readonly registry: AgentRegistry
  private readonly store: Store
  private readonly made: Map<Id, Made> = new Map()

  constructor(registry: AgentRegistry, store: Store, models: Models) {
    this.registry = registry
    this.store = store
    this.models = models
  }

  of(runId: Id, conversation: Conversation): AgentCore | undefined {
    if (conversation.agent.inline === undefined) return this.registry.of(runId, conversation)
    return this.registry.homeOf(runId) ?? this.again(conversation)
  }

  make(definition: Json, host: AgentCore): AgentCore {
    return buildCore(readInline(definition), host, (name) => this.modelNamed(name))
  }

  modelNamed(name: string): Model {
    const model = this.models.named(name)
    if (model === undefined) throw new DefinitionError('definition', 'A file or a call names a model by an empty text.')
    return model
  }

  hasModelNamed(name: string): boolean {
    return this.models.has(name)
  }

  forget(): void {
    this.made.clear()
  }

  private again(conversation: Conversation): AgentCore | undefined {
    const { id, agent } = conversation
    const { version } = this.registry
    const known = this.made.get(id)
    if (known !== undefined && known.hash === agent.hash && known.version === version) return known.core
    const host = () => this.hostOf(conversation)
    const core = inlineCore(agent.inline ?? null, { host, modelNamed: (name) => this.modelNamed(name) })
    if (core === undefined) return undefined
    if (this.made.size >= MOST_KEPT) this.made.clear()
    this.made.set(id, { hash: agent.hash, version, core })
    return core
  }

  private hostOf({ parentTurnId, parentConversationId }: Conversation): AgentCore | undefined {
    const host = this.store.conversation(parentConversationId ?? '')
    return host === undefined || parentTurnId === null ? undefined : this.of(parentTurnId, host)
  }
}

/** The models of an application, and the one for agents that name none. */
export class Models {
  /** What was given for all agents, or was found in the environment; null until then. */
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

  /** Looks for the model where nobody named one. Throws a DefinitionError when there is none. */
  async find(): Promise<void> {
    const { defaultModel } = await import('../model/named/default-model.ts')
    this.standard = await defaultModel()
    this.logger.info(`Neither agent nor runtime names a model: ${this.standard.id} is used.`)
  }
}

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
    const agent = baseOf(given)
    const known = this.made.get(agent)
    if (known !== undefined) return known
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

  /** What its providers promise, before its toolkit can be made. */
  late(given: AgentCore): Promise<unknown>[] {
    const agent = baseOf(given)
    return this.made.has(agent) ? [] : this.sourcesOf(agent).flatMap((source) => source.prepare() ?? [])
  }

  /** Those that its model may call, and those that items of its answer start. */
  allBelow(agent: AgentCore): SubagentSource[] {
    return [...this.sourcesOf(agent), ...eagerOffers(agent).map(({ source }) => source)]
  }

  /** What providers gave stays: they are called once per delegation. */
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
