// From the row of a conversation to its agent: definition, model, tools, hooks and the layers that bind it.
//
// Owns:      `AgentDirectory.resolve` (everything that a node needs of its agent), `know` (an agent and all below it become
//            known), and `AgentRegistry`, the agents that this process has code for.
// Called by: `execute-node` before each node, `start-run`, `Runtime`; rules and tools see it as `Agents`.
// Must stay true:
//   - Nothing here waits. Providers that answer later are asked by `know` and `promisedFor`.
//   - An agent that its row keeps whole is made from the row, never taken from another of its name.
//   - The layers come from `authority`: those frozen in the row, and those that hosts say now. Later ones only narrow (I1).

import { agentForRequest, baseOf } from '../agent/build/asked-agent.ts'
import { contextTurnsOf, profileOf } from '../agent/build/conversation-settings.ts'
import type { InlineCode } from '../agent/build/inline-code.ts'
import { type AgentCore, type AnyAgent, isAgent } from '../agent/definition/agent.ts'
import { promptIn } from '../agent/definition/agent-request.ts'
import type { GuardVoice } from '../agent/definition/call-guards.ts'
import type { ExtensionCore } from '../agent/definition/extension.ts'
import { fileUseLayers } from '../agent/definition/file-layers.ts'
import type { EnteringRun, ExtensionRuns } from '../agent/hooks/extension-runs.ts'
import { HookSet, sortExtensions } from '../agent/hooks/hook-set.ts'
import type { Agents, HooksAbove, NodeRun, RunSettings, Voice } from '../agent/hooks/node-run.ts'
import { IdMap } from '../base/collections.ts'
import { DefinitionError, StoreError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import type { CheckedSchema } from '../base/schema/schema.ts'
import { backgroundAgents } from '../delegation/background/tools.ts'
import { namedSecrets } from '../delegation/child-authority.ts'
import { isSubagentEntry, type SubagentSource } from '../delegation/subagent.ts'
import { freezeLayer } from '../grant/ceiling.ts'
import { type Layer, useLayer } from '../grant/grant.ts'
import { isOfThisMachine, type Principal } from '../grant/principal.ts'
import { type Profiles, profileLayer } from '../grant/profile.ts'
import { ALL_TURNS } from '../graph/kinds.ts'
import { hostOf, type RunPlace, type TreeReader } from '../graph/reader.ts'
import type { AgentRef, Conversation, Id, Node, Turn } from '../graph/rows.ts'
import { askedInRun } from '../graph/tasks.ts'
import type { Model } from '../model/model.ts'
import type { AgentInfo } from '../operations/look/agent-info.ts'
import type { NeedsParts } from '../operations/look/needs.ts'
import type { TurnBounds } from '../rules/turn/open-turn.ts'
import type { Ledger } from '../store/ledger.ts'
import { lookWith } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { Groups } from '../tool/groups.ts'
import type { Toolkit } from '../tool/toolkit.ts'
import { type HostAbove, hostsAbove, layersAt, layersPassedOn, type StandingRules, turnBounds } from './authority.ts'
import { type Models, Toolkits } from './equipment.ts'
import { checkIsAgent } from './options.ts'

const MOST_KEPT = 512
const NO_LAYERS: Turn['ceiling'] = []

export interface DirectoryParts {
  readonly ledger: Ledger
  readonly settings: RunSettings
  readonly extensionRuns: ExtensionRuns
  readonly models: Models
  /** The application's own layer, over every run. */
  readonly runtimeLayer: readonly Layer[]
  /** Extensions for every agent, after its own. */
  readonly extensions: readonly ExtensionCore[]
  /** May others than the person at this machine start agents that start programs? */
  readonly trustPrograms: boolean
}

/** Everything that a node needs of its agent, but the model. */
export type ResolvedAgent = Pick<
  NodeRun,
  'agent' | 'agentsVersion' | 'toolkit' | 'layers' | 'profile' | 'contextTurns' | 'hooks'
>

/** What was found for a node, and the ceiling of its turn. */
interface Found {
  readonly turnCeiling: Turn['ceiling']
  readonly resolved: ResolvedAgent
}

/** An agent that was made from its conversation's row. */
interface InlineAgent {
  readonly hash: string
  /** The version of the registry when it was made: what it takes over may be another's code by now. */
  readonly version: number
  readonly core: AgentCore
}

/**
 * Finds the agent of any run, and what it works with: one this process has code for, or one that is made again from its
 * conversation's row. Nothing here waits: providers that answer later are asked by `know` and `promisedFor`.
 */
export class AgentDirectory implements Agents {
  readonly registry: AgentRegistry
  readonly models: Models
  readonly profiles: Profiles
  /** The runtime's layers, frozen: they bind a turn in whichever process goes on with it. */
  readonly ceiling: readonly Json[]
  private readonly parts: DirectoryParts
  private readonly store: Store
  private readonly toolkits: Toolkits
  private readonly rules: StandingRules
  private readonly inline: Map<Id, InlineAgent> = new Map()
  private inlineCode: InlineCode | undefined
  private hookSets: WeakMap<AgentCore, HookSet> = new WeakMap()
  /** What was found last for an agent at the root, or under a conversation's ceiling: mostly the next node has the same. */
  private found: WeakMap<object, Found> = new WeakMap()
  /** True once an agent runs in this process under the budget of a day. */
  limitsDays = false
  /** The agents that the application named or started itself, by name: the newest of each. */
  private readonly told: Map<string, AgentCore> = new Map()
  /** Questions about an agent before it starts: does the agent work with files, or start programs? */
  readonly needs: NeedsParts
  /** Agents that wait for what their providers promised. */
  private readonly coming: Map<AgentCore, Promise<undefined>> = new Map()
  /** Has any agent here hooks that concern its children? Mostly none has. */
  private hasHooksForChildren = false
  /** Has any agent here a provider that is asked only when its tools are shown? Mostly none has. */
  hasLateProviders = false

  constructor(parts: DirectoryParts) {
    this.parts = parts
    this.store = parts.ledger.store
    this.models = parts.models
    this.profiles = parts.settings.profiles
    this.ceiling = parts.runtimeLayer.map(freezeLayer)
    this.registry = new AgentRegistry()
    this.toolkits = new Toolkits(parts.ledger)
    this.rules = { profiles: this.profiles, runtimeLayer: parts.runtimeLayer, agents: this }
    const sourcesOf = (agent: AgentCore) => this.toolkits.allBelow(agent)
    this.needs = { files: parts.settings.files, runtimeLayer: parts.runtimeLayer, sourcesOf }
  }

  /** May agents that whoever asks starts start programs? Null: the program itself asks. */
  trusts(by: Principal | null): boolean {
    return by === null || this.parts.trustPrograms || isOfThisMachine(by)
  }

  /** Which of these agents start programs under the layers of whoever asks. */
  async startingPrograms(agents: readonly AgentCore[], layers: readonly Json[]): Promise<readonly AgentCore[]> {
    await this.allKnown()
    const { startsPrograms } = await import('../operations/look/needs.ts')
    return agents.filter((agent) => startsPrograms(agent, layers, this.needs))
  }

  /** Grows with every agent that is added. */
  get version(): number {
    return this.registry.version
  }

  /** Finds everything that a node of this place needs of its agent. Throws where this process has no code for the agent. */
  resolve(place: RunPlace): ResolvedAgent {
    const { conversation } = place
    const agent = this.agentOf(place)
    // Most conversations have no settings of their own.
    if (conversation.metadata['agent'] === undefined) return this.standing(agent, place, undefined)
    const resolved = this.standing(agent, place, profileOf(conversation, this.profiles))
    return { ...resolved, contextTurns: contextTurnsOf(conversation, agent) }
  }

  /** What an agent has under the same two ceilings is the same for every node, until an agent of this process changes. */
  private standing(agent: AgentCore, place: RunPlace, profile: string | undefined): ResolvedAgent {
    const { version } = this.registry
    const { ceiling } = place.conversation
    const turnCeiling = place.turn.ceiling.length === 0 ? NO_LAYERS : place.turn.ceiling
    const key = ceiling.length > 0 ? ceiling : turnCeiling.length > 0 ? turnCeiling : agent
    const last = this.found.get(key)
    if (last !== undefined && last.turnCeiling === turnCeiling) {
      const { resolved } = last
      const isSame = resolved.agent === agent && resolved.agentsVersion === version && resolved.profile === profile
      // Its files are those of its host.
      if (isSame && agent.files === null) return resolved
    }
    const resolved: ResolvedAgent = {
      agent,
      agentsVersion: version,
      profile,
      contextTurns: agent.contextTurns ?? ALL_TURNS,
      hooks: this.hooksOf(agent),
      toolkit: this.toolkitOf(agent, place),
      layers: layersAt(agent, place, profile, this.rules),
    }
    if (resolved.layers.some(({ perDay }) => perDay !== undefined)) this.limitsDays = true
    this.found.set(key, { turnCeiling, resolved })
    return resolved
  }

  isCurrent({ agentsVersion, tree, conversation, turn }: NodeRun): boolean {
    if (agentsVersion !== this.registry.version) return false
    // Layers of a turn are only added.
    if (tree.turn(turn.id)?.ceiling.length !== turn.ceiling.length) return false
    return tree.conversation(conversation.id)?.version === conversation.version
  }

  of(tree: TreeReader, runId: Id, conversation: Conversation): AgentCore | undefined {
    if (conversation.agent.inline === undefined) return this.registry.of(tree, runId, conversation)
    return this.registry.homeOf(runId) ?? this.inlineOf(tree, conversation)
  }

  private agentOf({ tree, turn, conversation }: RunPlace): AgentCore {
    const agent = this.of(tree, turn.id, conversation)
    if (agent === undefined) throw new Error(`this process has no code for the agent "${conversation.agent.name}"`)
    return agent
  }

  /** The schema of the result that the tool of a call promises; null where it promises nothing, or this process has no code of it. */
  resultSchemaOf(tree: TreeReader, { turnId, conversationId, input }: Node): CheckedSchema | null {
    const conversation = tree.conversation(conversationId)
    const agent = conversation === undefined ? undefined : this.of(tree, turnId, conversation)
    const entry = agent === undefined ? undefined : this.toolkits.of(agent).find(input.call?.name ?? '')
    return entry?.tool?.output ?? null
  }

  /** The toolkit of an agent, with the file tools of its host where it inherits them. */
  private toolkitOf(agent: AgentCore, place: RunPlace): Toolkit {
    const own = this.toolkits.of(agent)
    const host = agent.files === null ? undefined : hostOf(place)
    const hostAgent = host === undefined ? undefined : this.of(host.tree, host.turn.id, host.conversation)
    if (host === undefined || hostAgent === undefined) return own
    return this.toolkits.withFiles(own, this.toolkitOf(hostAgent, host))
  }

  /** An agent's own model, else its host's, else the runtime's. */
  modelOf(agent: AgentCore, place: RunPlace): Model | null {
    if (agent.model !== null) return agent.inline === null ? agent.model : this.models.of(agent)
    const host = hostOf(place)
    const hostAgent = host === undefined ? undefined : this.of(host.tree, host.turn.id, host.conversation)
    if (host === undefined || hostAgent === undefined) return this.models.standard
    return this.modelOf(hostAgent, host)
  }

  /** An agent's extensions, then the runtime's. Throws a DefinitionError where they do not go together. */
  hooksOf(agent: AgentCore): HookSet | null {
    const { extensions } = this.parts
    if (agent.extensions.length === 0 && extensions.length === 0) return null
    const known = this.hookSets.get(agent)
    if (known !== undefined) return known.isEmpty ? null : known
    const made = new HookSet(sortExtensions([...agent.extensions, ...extensions], `agent "${agent.name}"`))
    this.hookSets.set(agent, made)
    return made.isEmpty ? null : made
  }

  /** Hooks that a host gave to a child decide for all below it, and so do the guards of its file; `onChildTool` only watches. */
  hooksAbove(run: NodeRun): HooksAbove | null {
    if (!this.hasHooksForChildren || run.conversation.depth === 0) return null
    const deciding: Voice[] = []
    const watching: Voice[] = []
    const guards: GuardVoice[] = []
    for (const host of hostsAbove(this, run)) this.addVoices(host, deciding, watching, guards)
    return deciding.length + watching.length + guards.length === 0 ? null : { deciding, watching, guards }
  }

  private addVoices(host: HostAbove, deciding: Voice[], watching: Voice[], guards: GuardVoice[]): void {
    const { tree, turn, agent, conversation, toolName } = host
    if (agent === undefined) return
    if (agent.guards !== null) {
      const { layers } = this.standing(agent, host, profileOf(conversation, this.profiles))
      guards.push({ guards: agent.guards, layers })
    }
    const hooks = this.hooksOf(agent)
    this.parts.extensionRuns.enter(turn, agent.name, hooks)
    const place = { tree, runId: turn.id, nodeId: null, purpose: null, work: null }
    const entry = this.toolkits.of(agent).find(toolName)
    const isInherited = entry !== undefined && isSubagentEntry(entry) && entry.inheritsHooks
    if (isInherited) for (const extension of hooks?.of('beforeTool') ?? []) deciding.push({ extension, place })
    for (const extension of hooks?.of('onChildTool') ?? []) watching.push({ extension, place })
  }

  bind(run: EnteringRun, agent: AgentCore): void {
    this.registry.bind(run.id, agent)
    const hooks = this.hooksOf(agent)
    if (hooks !== null) this.parts.extensionRuns.enter(run, agent.name, hooks)
  }

  release(runId: Id): void {
    this.registry.leave(runId)
    this.parts.extensionRuns.leave(runId)
  }

  make(definition: Json, host: AgentCore): AgentCore {
    return this.guarded(this.loadedCode().makeCore(definition, host, (name) => this.modelNamed(name)))
  }

  modelNamed(name: string): Model {
    const model = this.models.named(name)
    if (model === undefined) throw new DefinitionError('definition', 'A file or a call names a model by an empty text.')
    return model
  }

  hasModelNamed(name: string): boolean {
    return this.models.has(name)
  }

  /** Makes an agent known that the application named or started, also by its name. `runner` is the agent as one run has it. */
  tell(agent: AgentCore, runner: AgentCore = agent): undefined | Promise<undefined> {
    const known = this.know(runner)
    if (this.told.get(agent.name) !== agent) this.told.set(agent.name, baseOf(agent))
    return known
  }

  /** An agent by its name, among those that the application named or started. */
  named(name: string): AnyAgent | undefined {
    const found = this.told.get(name)
    return isAgent(found) ? found : undefined
  }

  /** Describes agents, sorted by name: by default all that can be started by name. */
  async infos(agents: Iterable<AgentCore> = this.told.values()): Promise<AgentInfo[]> {
    await this.allKnown()
    const { models, parts, needs } = this
    const { agentInfos } = await import('../operations/look/agent-info.ts')
    const modelOf = (agent: AgentCore) => models.of(agent) ?? models.standard
    return agentInfos(agents, { budget: parts.settings.budget, modelOf, needs })
  }

  /** All agents that this process has code for, those of files too. */
  all(): readonly AgentCore[] {
    return [...this.registry.all(), ...this.told.values()]
  }

  /** Makes an agent known with all below it, or none of them when one cannot work. */
  know(given: AgentCore): undefined | Promise<undefined> {
    if (this.registry.has(given)) return undefined
    const agent = baseOf(given)
    if (this.registry.has(agent)) return undefined
    const found = new Map<string, AgentCore>()
    const promised: Promise<unknown>[] = []
    this.collect(agent, { found, promised })
    if (promised.length > 0) return this.coming.get(agent) ?? this.knowLater(agent, promised)
    // One that its rows keep whole is never looked for by its name.
    for (const one of found.values()) if (one.inline === null) this.registry.add(one)
    return undefined
  }

  private knowLater(agent: AgentCore, promised: readonly Promise<unknown>[]): Promise<undefined> {
    const coming = Promise.all(promised)
      .finally(() => this.coming.delete(agent))
      .then(() => this.know(agent))
    this.coming.set(agent, coming)
    return coming
  }

  /** Resolves when every agent that the runtime was told of is known, or has failed. */
  async allKnown(): Promise<void> {
    if (this.coming.size > 0) await Promise.allSettled(this.coming.values())
  }

  /** An agent that a provider made is not looked into before it is used: it may offer the same provider again, without end. */
  private collect(agent: AgentCore, known: Known): void {
    const { found } = known
    const key = keyOf(agent)
    if (found.has(key) || this.registry.has(agent)) return
    found.set(key, agent)
    if (agent.guards !== null || this.hooksOf(agent)?.has('onChildTool') === true) this.hasHooksForChildren = true
    for (const source of this.toolkits.allBelow(agent)) this.collectSource(source, known)
    for (const below of backgroundAgents(agent.tools)) this.collect(below, known)
  }

  private collectSource(source: SubagentSource, known: Known): void {
    const { isProvided, config } = source
    if (config.profile !== undefined) profileLayer(config.profile, this.profiles)
    if (config.hooks === 'inherit') this.hasHooksForChildren = true
    // An agent that a provider made may have providers of its own: they are asked when its tools are shown.
    if (isProvided) this.hasLateProviders = true
    const below = source.first()
    if (below === null) return
    if (below instanceof Promise) known.promised.push(below)
    else if (isProvided) known.found.set(keyOf(below), below)
    else this.collect(below, known)
  }

  /** Waits for what providers of a node's agent and of its hosts promise; undefined where there is nothing to wait for. */
  promisedFor(tree: TreeReader, { turnId, conversationId }: Node): Promise<unknown> | undefined {
    const turn = tree.turn(turnId)
    const conversation = tree.conversation(conversationId)
    if (turn === undefined || conversation === undefined) return undefined
    const late: Promise<unknown>[] = []
    for (let at: RunPlace | undefined = { tree, turn, conversation }; at !== undefined; at = hostOf(at)) {
      const agent = this.of(at.tree, at.turn.id, at.conversation)
      if (agent !== undefined) late.push(...this.toolkits.late(agent))
    }
    return late.length === 0 ? undefined : Promise.all(late)
  }

  /** Every layer that decides for a run, or for an agent at the root. */
  async layersFor(of: Id | AgentCore): Promise<readonly Layer[]> {
    if (typeof of !== 'string') {
      checkIsAgent(of, 'runtime.explain(of, request)')
      return [...this.parts.runtimeLayer, ...fileUseLayers(of), useLayer(of.name, of.grant, namedSecrets(of))]
    }
    return lookWith(this.store, of, async (tree) => {
      const turn = tree.turn(of)
      const conversation = tree.conversation(turn?.conversationId ?? '')
      if (turn === undefined || conversation === undefined) throw await notFound(this.store, 'run', of)
      const place = { tree, turn, conversation }
      return this.standing(this.agentOf(place), place, profileOf(conversation, this.profiles)).layers
    })
  }

  /** What binds the run at the top of a tree, and what that run passes on: nothing in the tree may do what neither allows. */
  layersAtTop(run: RunPlace): readonly (readonly Layer[])[] {
    let top = run
    for (let host = hostOf(top); host !== undefined; host = hostOf(top)) top = host
    const agent = this.of(top.tree, top.turn.id, top.conversation)
    const profile = profileOf(top.conversation, this.profiles)
    const passedOn = layersPassedOn(agent, top, profile, this.rules)
    return agent === undefined ? [passedOn] : [this.standing(agent, top, profile).layers, passedOn]
  }

  boundsOf(tree: TreeReader, conversation: Conversation, ceiling: readonly Json[]): TurnBounds {
    const agent = this.of(tree, conversation.id, conversation)
    return turnBounds(conversation, { tree, agent, budget: this.parts.settings.budget, ceiling })
  }

  groupsOf(tree: TreeReader, conversation: Conversation): Groups | undefined {
    return this.of(tree, conversation.id, conversation)?.groups
  }

  /** Drops all that was worked out from definitions. What providers gave stays: they are called once per delegation. */
  forget(): void {
    this.registry.forgetHomes()
    this.toolkits.forget()
    this.found = new WeakMap()
    this.hookSets = new WeakMap()
    this.inline.clear()
  }

  private inlineOf(tree: TreeReader, conversation: Conversation): AgentCore | undefined {
    const { id, agent } = conversation
    const { version } = this.registry
    const known = this.inline.get(id)
    if (known !== undefined && known.hash === agent.hash && known.version === version) return known.core
    const host = () => this.hostAgentOf(tree, conversation)
    const core = this.loadedCode().inlineCore(agent.inline ?? null, {
      host,
      modelNamed: (name) => this.modelNamed(name),
    })
    if (core === undefined) return undefined
    this.guarded(core)
    if (this.inline.size >= MOST_KEPT) this.inline.clear()
    this.inline.set(id, { hash: agent.hash, version, core })
    return core
  }

  /** An agent from a row is met before its children are: the layers of a child name its hosts. */
  private guarded(agent: AgentCore): AgentCore {
    if (agent.guards !== null) this.hasHooksForChildren = true
    return agent
  }

  /** Takes the code that makes agents from rows: it is loaded with the code that runs nodes. */
  load(code: InlineCode): void {
    this.inlineCode = code
  }

  private loadedCode(): InlineCode {
    if (this.inlineCode !== undefined) return this.inlineCode
    throw new StoreError('store', 'An agent was made from its row before its runtime was started.')
  }

  private hostAgentOf(tree: TreeReader, below: Conversation): AgentCore | undefined {
    const { parentTurnId, parentConversationId } = below
    const host = tree.conversation(parentConversationId ?? '')
    return host === undefined || parentTurnId === null ? undefined : this.of(tree, parentTurnId, host)
  }
}

/** The agents found below one that becomes known, and those still to come. */
interface Known {
  readonly found: Map<string, AgentCore>
  readonly promised: Promise<unknown>[]
}

function keyOf({ name, identity }: AgentCore): string {
  return `${name}/${identity.ref.hash}`
}

/** A function that makes agents may make a new one each time: the newest of a name are enough to continue runs. */
const MAX_VERSIONS = 64
/** The most agents whose definition is told to other processes. */
const MAX_TOLD = 100

/** The agents that this process has code for. */
export class AgentRegistry {
  private readonly byName: Map<string, Map<string, AgentCore>> = new Map()
  /** The objects that runs of this process were started with: two agents of one name may hold different code. */
  private readonly home: IdMap<AgentCore> = new IdMap()
  private readonly known: WeakSet<AgentCore> = new WeakSet()
  /** The names of agents with code here; the empty name stands for agents that need none. */
  readonly names: Set<string> = new Set([''])
  /** Grows with every agent that becomes known. */
  version = 0
  /** True when an agent here wants copies of its sessions with a subagent. Mostly none does. */
  copiesSessions = false
  has(agent: AgentCore): boolean {
    return this.known.has(agent)
  }

  /** Adds an agent. */
  add(agent: AgentCore): void {
    this.known.add(agent)
    this.version++
    for (const { config } of agent.subagents.values()) this.copiesSessions ||= config.session !== undefined
    const { hash } = agent.identity.ref
    const versions = this.byName.get(agent.name)
    if (versions === undefined) {
      this.byName.set(agent.name, new Map([[hash, agent]]))
      this.names.add(agent.name)
      return
    }
    versions.delete(hash)
    versions.set(hash, agent)
    const [oldest = ''] = versions.keys()
    if (versions.size > MAX_VERSIONS) versions.delete(oldest)
  }

  all(): readonly AgentCore[] {
    return [...this.byName.values()].flatMap((versions) => [...versions.values()])
  }

  /** Whether this very definition is known. */
  hasVersion({ name, hash }: AgentRef): boolean {
    return this.byName.get(name)?.has(hash) === true
  }

  /** The hashes of all definitions that are known. */
  hashes(): string[] {
    return [...this.byName.values()].flatMap((versions) => [...versions.keys()])
  }

  /** The hash of the newest definition of each name, of the first hundred. */
  newest(): Readonly<Record<string, string>> {
    const named = [...this.byName].slice(0, MAX_TOLD)
    return Object.fromEntries(named.map(([name, versions]) => [name, [...versions.keys()].at(-1) ?? '']))
  }

  /** Binds the agent object that runs a run in this process. */
  bind(runId: Id, agent: AgentCore): void {
    this.home.set(runId, agent)
  }

  leave(runId: Id): void {
    this.home.delete(runId)
  }

  forgetHomes(): void {
    this.home.clear()
  }

  /** The runs that were started in this process. */
  runs(): Id[] {
    return [...this.home.entries()].map(([runId]) => runId)
  }

  /** The agent of a run: the object it was started with, else by name and hash, else the newest of the name. */
  of(tree: TreeReader, runId: Id, conversation: Pick<Conversation, 'agent'>): AgentCore | undefined {
    return this.home.get(runId) ?? this.asFound(tree, runId, this.find(conversation.agent))
  }

  /** Applies the run's request, where the rows hold one. */
  private asFound(tree: TreeReader, runId: Id, agent: AgentCore | undefined): AgentCore | undefined {
    const prompt = agent === undefined ? undefined : promptIn(askedInRun(tree, runId))
    if (agent === undefined || prompt === undefined) return agent
    const asked = agentForRequest(agent, prompt)
    this.home.set(runId, asked)
    return asked
  }

  /** The output schema of a run; undefined where this process does not have its code. */
  outputOf(tree: TreeReader, runId: Id): AgentCore['output'] | undefined {
    const turn = tree.turn(runId)
    const conversation = turn === undefined ? undefined : tree.conversation(turn.conversationId)
    return conversation === undefined ? undefined : this.of(tree, runId, conversation)?.output
  }

  /** The object a run was started with, if this process started it. */
  homeOf(runId: Id): AgentCore | undefined {
    return this.home.get(runId)
  }

  /** An agent that is stored whole in its row must not be mistaken for another of its name. */
  private find({ name, hash, inline }: AgentRef): AgentCore | undefined {
    if (inline !== undefined) return undefined
    const versions = this.byName.get(name)
    if (versions === undefined) return undefined
    return versions.get(hash) ?? [...versions.values()].at(-1)
  }
}
