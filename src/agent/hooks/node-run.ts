import type { KeptAlive } from '../../base/collections.ts'
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
import type { EagerTask, Outcome } from '../../graph/outcome.ts'
import type { Conversation, Id, Node, Turn } from '../../graph/rows.ts'
import type { Model } from '../../model/model.ts'
import type { Expansion } from '../../rules/turn/expand.ts'
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

/** One node while it runs: its rows, whose it is, what binds it. */
export interface NodeRun {
  readonly node: Node
  readonly turn: Turn
  readonly conversation: Conversation
  readonly agent: AgentCore
  readonly toolkit: Toolkit
  /** Every layer that decides for this agent. */
  readonly layers: readonly Layer[]
  /** Of its extensions and the runtime's; null where there are none, as mostly. */
  readonly hooks: HookSet | null
  readonly work: Work
  readonly home: Home
  /** What it has answered, before that is stored: children that start with it know of it. */
  readonly said: Node | null
}

/** A child that can be started by the very commit that makes its task; where it is not, the task will try. */
export interface ReadyChild {
  start(draft: Draft): void
  /** The commit came to nothing. */
  leave(): void
}

/** Starts children for items of an answer, each when it is complete. */
export interface EagerWork {
  readonly patterns: readonly PathPattern[]
  wants(event: FieldEvent): boolean
  /** One more item that is complete and fits. */
  start(event: FieldEvent): Promise<void>
  /** The answer as it ended: each of its items has its child after this. Their tasks, in the order of the items. */
  finish(plan: Json): Promise<readonly EagerTask[]>
}

/** Hooks of hosts, the nearest first. */
export interface HooksAbove {
  /** May change a call. */
  readonly deciding: readonly Voice[]
  /** May only see it. */
  readonly watching: readonly Voice[]
}

/** An extension that has a word in a call, and the run it keeps its state for: the call's own, or a host's. */
export interface Voice {
  readonly extension: ExtensionCore
  readonly place: HookPlace
}

/** Makes agents of data, and models of names. */
export interface Maker {
  /** With this host, where the agent takes something over. */
  make(definition: Json, host: AgentCore): AgentCore
  /** A model by the name that a file or a call gives it: the application's own, else that of a provider. */
  modelNamed(name: string): Model
  /** Is it one of the application's own? */
  hasModelNamed(name: string): boolean
}

/** What a process has for all its nodes. */
export interface Home {
  readonly maker: Maker
  readonly ledger: Ledger
  readonly feeds: Feeds
  readonly logger: Logger
  /** The runtime's budget, over every run. */
  readonly budget: Budget | undefined
  /** How delegations are tried, where nobody nearer says it. */
  readonly attempts: Attempts | undefined
  readonly profiles: Profiles
  /** When contexts are summed up by themselves; null for never. */
  readonly compaction: CompactionSettings | null
  readonly runtime: object
  readonly extensionRuns: ExtensionRuns
  readonly files: FileDomain | null
  /** The application's own, handed to every tool as they are. */
  readonly tracer: object | null
  readonly longTermMemory: object | null
  /** What may be told of a failure. */
  readonly causeOf: (error: unknown) => string
  /** Where runs are recorded or played back; mostly null. */
  readonly tape: Tape | null
  /** The model call that was made last. */
  lastCall: KeptAlive
  /** An agent's own model, else its host's, else the runtime's. */
  modelOf(agent: AgentCore, place: { readonly turn: Turn; readonly conversation: Conversation }): Model | null
  /** Makes an agent known to this process, with those it may delegate to: later where a provider of theirs is async. */
  know(agent: AgentCore): undefined | Promise<undefined>
  /** Says which agent object runs a child in this process, before the child can start. */
  settleChild(runId: Id, agent: AgentCore): void
  /** The child came to nothing. */
  leaveChild(runId: Id): void
  /** The agent of a conversation, if this process has code for it. */
  agentFor(conversation: Conversation): AgentCore | undefined
  waitFor(runId: Id): Promise<Outcome>
  /** The same, or null as soon as the signal aborts. */
  waitUnless(runId: Id, signal: AbortSignal | undefined): Promise<Outcome | null>
  /** A node when it has ended; null as soon as the signal aborts. */
  waitForNode(nodeId: Id, signal: AbortSignal): Promise<Node | null>
  /** What starts children for items of an answer that is being written. */
  eagerFor(run: NodeRun): Promise<EagerWork>
  /** Those calls of an answer that become children at once; each of the others is left to its task. */
  readyChildren(run: NodeRun, step: Expansion): readonly ReadyChild[]
  /** What the hosts of a run have to say to its calls. */
  hooksAbove(run: NodeRun): HooksAbove | null
}

/** The runtime's files as a run may use them: by its layers, and by what a person has allowed for its call. */
export function filesOf(run: NodeRun): Files {
  const { home, layers, node } = run
  if (home.files === null) return ABSENT_FILES
  const input = toJson(node.input.call?.input ?? null)
  return home.files.bind(layers, (request) => input.ok && permit(run, request, input.value).verdict === 'allow')
}

/** Which definitions the rules of a run keep from it. A runtime without files keeps none. */
export function keeperOf(run: NodeRun): Keeper {
  if (run.home.files === null) return () => false
  const files = filesOf(run)
  return (place) => files.isKept(place)
}

const NO_FILES = 'This runtime has no files: give it some with createRuntime({ files }).'

function refuseFiles(): never {
  throw new DefinitionError('definition', NO_FILES)
}

/** The files of a runtime without files: code may name them, and each of their methods fails. */
const ABSENT_FILES: Files = new Proxy({} as Files, {
  get: (_files, name) => (typeof name === 'symbol' || name === 'then' ? undefined : refuseFiles),
})
