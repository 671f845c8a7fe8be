import { DefinitionError } from '../../base/error.ts'
import { type Json, toJson } from '../../base/json.ts'
import type { Feeds } from '../../conversation/feeds.ts'
import type { Work } from '../../engine/engine.ts'
import type { FieldEvent } from '../../fields/field-event.ts'
import type { PathPattern } from '../../fields/path-pattern.ts'
import type { FileDomain } from '../../files/domain.ts'
import type { Files, Keeper } from '../../files/files.ts'
import type { Budget } from '../../grant/budget.ts'
import type { Layer } from '../../grant/grant.ts'
import type { Profiles } from '../../grant/profile.ts'
import type { Draft } from '../../graph/draft.ts'
import type { Delegated, Outcome } from '../../graph/outcome.ts'
import type { Conversation, Id, Node, Turn } from '../../graph/rows.ts'
import type { Model } from '../../model/model.ts'
import type { Step } from '../../rules/turn/expand.ts'
import type { Ledger } from '../../store/ledger.ts'
import type { Attempts } from '../../tool/attempts.ts'
import { permit } from '../../tool/permit.ts'
import type { Tape } from '../../tool/tape.ts'
import type { Logger } from '../../tool/tool.ts'
import type { Toolkit } from '../../tool/toolkit.ts'
import type { AgentCore } from '../definition/agent.ts'
import type { CompactionSettings } from '../definition/compaction-settings.ts'
import type { ExtensionCore } from '../definition/extension.ts'
import type { ExtensionRuns, HookPlace } from './extension-runs.ts'
import type { HookSet } from './hook-set.ts'

/** One node while it runs: its rows, its agent, the layers that bind it. */
export interface NodeRun {
  readonly node: Node
  readonly turn: Turn
  readonly conversation: Conversation
  readonly agent: AgentCore
  readonly toolkit: Toolkit
  /** Every layer that decides for this agent. */
  readonly layers: readonly Layer[]
  /** The hooks of its agent's extensions and the runtime's; null where there are none, which is usual. */
  readonly hooks: HookSet | null
  readonly work: Work
  readonly home: Home
  /** Its answer before that is stored, for the children that start with it. */
  readonly said: Node | null
}

/** A child that the commit of its task can start; if it does not, the task tries again. */
export interface ReadyChild {
  start(draft: Draft): void
  /** Called when the commit failed. */
  leave(): void
}

/** Starts children for items of an answer, each when it is complete. */
export interface EagerWork {
  readonly patterns: readonly PathPattern[]
  wants(event: FieldEvent): boolean
  /** Starts a child for one more item that is complete and fits. */
  start(event: FieldEvent): Promise<void>
  /** Ends the answer and returns the tasks of its items, in order: each item has its child after this. */
  finish(plan: Json): Promise<readonly Delegated[]>
}

/** Hooks of hosts, the nearest first. */
export interface HooksAbove {
  /** These may change a call. */
  readonly deciding: readonly Voice[]
  /** These may only watch it. */
  readonly watching: readonly Voice[]
}

/** An extension that hooks into a call, and the run that holds its state: the call's own, or a host's. */
export interface Voice {
  readonly extension: ExtensionCore
  readonly place: HookPlace
}

/** Makes agents from data, and models from names. */
export interface Maker {
  /** Uses this host where the agent inherits something. */
  make(definition: Json, host: AgentCore): AgentCore
  /** Finds a model by the name in a file or a call: the application's own, else a provider's. */
  modelNamed(name: string): Model
  /** True for one of the application's own. */
  hasModelNamed(name: string): boolean
}

/** The services of a process for all its nodes. */
export interface Home {
  readonly maker: Maker
  readonly ledger: Ledger
  readonly feeds: Feeds
  readonly logger: Logger
  /** The runtime's budget, above every run's. */
  readonly budget: Budget | undefined
  /** The attempts of delegations, where nothing nearer sets them. */
  readonly attempts: Attempts | undefined
  readonly profiles: Profiles
  /** When contexts are summarised automatically; null for never. */
  readonly compaction: CompactionSettings | null
  readonly runtime: object
  readonly extensionRuns: ExtensionRuns
  readonly files: FileDomain | null
  /** The application's own objects, passed to every tool. */
  readonly tracer: object | null
  readonly longTermMemory: object | null
  /** Words a failure without secrets. */
  readonly causeOf: (error: unknown) => string
  /** Set where runs are recorded or replayed; mostly null. */
  readonly tape: Tape | null
  /** Keeps the hidden class of a model call alive while there is none: see Ledger. */
  lastCall: unknown
  /** An agent's own model, else its host's, else the runtime's. */
  modelOf(agent: AgentCore, place: { readonly turn: Turn; readonly conversation: Conversation }): Model | null
  /** Adds an agent and its subagents to this process: later where one of their providers is async. */
  know(agent: AgentCore): undefined | Promise<undefined>
  /** Binds the agent object that runs a child in this process, before the child can start. */
  settleChild(runId: Id, agent: AgentCore): void
  /** Forgets a child that was not recorded. */
  leaveChild(runId: Id): void
  /** The agent of a conversation, if this process has code for it. */
  agentFor(conversation: Conversation): AgentCore | undefined
  waitFor(runId: Id): Promise<Outcome>
  /** The outcome of a run, or null as soon as the signal aborts. */
  waitUnless(runId: Id, signal: AbortSignal | undefined): Promise<Outcome | null>
  /** The node when it has ended; null as soon as the signal aborts. */
  waitForNode(nodeId: Id, signal: AbortSignal): Promise<Node | null>
  /** Returns the starter of children for items of an answer that is being written. */
  eagerFor(run: NodeRun): Promise<EagerWork>
  /** The calls of an answer that become children at once; the others are left to their tasks. */
  readyChildren(run: NodeRun, step: Step): readonly ReadyChild[]
  /** The hooks of a run's hosts that apply to its calls. */
  hooksAbove(run: NodeRun): HooksAbove | null
}

/** The runtime's files for a run: limited by its layers, and by the answers of people for its call. */
export function filesOf(run: NodeRun): Files {
  const { home, layers, node } = run
  if (home.files === null) throw new DefinitionError('definition', NO_FILES)
  const input = toJson(node.input.call?.input ?? null)
  return home.files.bind(layers, (request) => input.ok && permit(run, request, input.value).verdict === 'allow')
}

/** Tells which definitions the rules of a run keep from it. A runtime without files keeps none. */
export function keeperOf(run: NodeRun): Keeper {
  if (run.home.files === null) return () => false
  const files = filesOf(run)
  return (place) => files.isKept(place)
}

const NO_FILES = 'This runtime has no files: give it some with createRuntime({ files }).'
