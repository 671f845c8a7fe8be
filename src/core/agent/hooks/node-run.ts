// One node while it runs (`NodeRun`), and everything that a process has for all its nodes (`Home`).
//
// Owns:      the types that join `runtime`, `agent` and `delegation`, and the files that a run may use.
// Called by: `runtime/resolve-agent` and `runtime/execute-node` make a run and hand it to `agent/step` and `delegation/run`;
//            hooks and tools read it.
// Must stay true:
//   - A run is what rows and agents were when the node began. Code that waited reads rows anew before it relies on them.
//   - Nothing in `LiveParts` is needed to continue a run: another process has none of it (I3, I5).
//   - Code gets files only through `filesOf`, which binds them to the layers of the run (I11).

import { DefinitionError } from '../../base/error.ts'
import { type Json, toJson } from '../../base/json.ts'
import type { KeptAlive } from '../../base/keep-shape.ts'
import type { NodeEnds, TurnEnds } from '../../conversation/ends.ts'
import type { Feeds } from '../../conversation/feeds.ts'
import type { LiveTrace } from '../../conversation/trace/live-trace.ts'
import type { CallGate } from '../../engine/call-gate.ts'
import type { Work } from '../../engine/engine.ts'
import type { FieldEvent } from '../../fields/field-event.ts'
import type { PathPattern } from '../../fields/path-pattern.ts'
import type { FileDomain, Files, Keeper, OwnerFolder } from '../../files/files.ts'
import type { Budget } from '../../grant/budget.ts'
import type { Layer } from '../../grant/grant.ts'
import type { Profiles } from '../../grant/profile.ts'
import type { Draft } from '../../graph/draft.ts'
import type { EagerTask } from '../../graph/outcome.ts'
import type { RunPlace, TreeReader } from '../../graph/reader.ts'
import type { Conversation, Id, Node, Turn } from '../../graph/rows.ts'
import type { Model } from '../../model/model.ts'
import type { Expansion } from '../../rules/turn/expand.ts'
import type { Ledger } from '../../store/ledger.ts'
import type { Attempts } from '../../tool/attempts.ts'
import { permit } from '../../tool/permit.ts'
import type { Tape } from '../../tool/tape.ts'
import type { Telemetry } from '../../tool/telemetry.ts'
import type { Logger } from '../../tool/tool.ts'
import type { Toolkit } from '../../tool/toolkit.ts'
import type { AgentCore } from '../definition/agent.ts'
import type { GuardVoice } from '../definition/call-guards.ts'
import type { CompactionSettings } from '../definition/compaction-settings.ts'
import type { ExtensionCore } from '../definition/extension.ts'
import type { EnteringRun, ExtensionRuns, HookPlace } from './extension-runs.ts'
import type { HookSet } from './hook-set.ts'

/** One node while it runs: its rows, and everything that `resolve` found for it. `execute` needs nothing else. */
export interface NodeRun {
  /** The rows of its tree, as they are now. */
  readonly tree: TreeReader
  readonly node: Node
  readonly turn: Turn
  readonly conversation: Conversation
  readonly agent: AgentCore
  /** The version of the process's agents when this was resolved: it grows when one becomes known. */
  readonly agentsVersion: number
  readonly toolkit: Toolkit
  /** The agent's own model, else its host's, else the runtime's; null where there is none. */
  readonly model: Model | null
  /** Every layer that decides for this agent. */
  readonly layers: readonly Layer[]
  /** The profile that binds the conversation; undefined for none. */
  readonly profile: string | undefined
  /** How many rounds of the conversation the model is shown. */
  readonly contextTurns: number
  /** The hooks of its extensions and the runtime's; null where there are none, as mostly. */
  readonly hooks: HookSet | null
  readonly work: Work
  readonly home: Home
  /** The answer before it is stored, for the children that start with it; null for every other run. */
  readonly said: Node | null
}

/** A child that can be started by the very commit that makes its task; where it is not, the task will try. */
export interface ReadyChild {
  /** A part of the plan of that commit. */
  start(draft: Draft): void
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
  /** Programs of their files: each may refuse a call. */
  readonly guards: readonly GuardVoice[]
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

/** Everything that a process has for all its nodes: the ledger, and four parts by what they hold. */
export interface Home {
  readonly ledger: Ledger
  readonly agents: Agents
  readonly children: ChildStarter
  readonly live: LiveParts
  readonly settings: RunSettings
}

/** The agents and models that this process has code for. */
export interface Agents {
  /** Makes an agent known to this process, with those it may delegate to: later where a provider of theirs is async. */
  know(agent: AgentCore): undefined | Promise<undefined>
  /** Says which agent object runs a child in this process, before the child can start. */
  bind(run: EnteringRun, agent: AgentCore): void
  /** Forgets a run that came to nothing. */
  release(runId: Id): void
  /** The agent of a run, if this process has code for it. */
  of(tree: TreeReader, runId: Id, conversation: Conversation): AgentCore | undefined
  /** True once an agent runs in this process under the budget of a day. */
  readonly limitsDays: boolean
  /** The layers of the run at the top of a tree, and those that it passes on: nothing in the tree may do more than both. */
  layersAtTop(run: RunPlace): readonly (readonly Layer[])[]
  /** Do the agents and the conversation still say what they said when the run was resolved? */
  isCurrent(run: NodeRun): boolean
  /** Makes an agent from data. The host is the one that it takes something over from. */
  make(definition: Json, host: AgentCore): AgentCore
  /** A model by the name that a file or a call gives it: the application's own, else that of a provider. */
  modelNamed(name: string): Model
  /** Is it one of the application's own? */
  hasModelNamed(name: string): boolean
  /** The hooks of a run's hosts that have a word in its calls. */
  hooksAbove(run: NodeRun): HooksAbove | null
}

/** Starts children for an answer: `delegation` implements it, and a model step calls it. */
export interface ChildStarter {
  /** Those calls of an answer that become children at once; each of the others is left to its task. */
  ready(run: NodeRun, step: Expansion): readonly ReadyChild[]
  /** Starts children for items of an answer that is being written. */
  eager(run: NodeRun): Promise<EagerWork>
}

/** The state that this process holds for its open runs. Another process can continue them without it. */
export interface LiveParts {
  /** The runtime that runs them, as users hold it. */
  readonly runtime: object
  readonly feeds: Feeds
  readonly ends: TurnEnds
  readonly nodeEnds: NodeEnds
  readonly extensions: ExtensionRuns
  /** Where runs are recorded or played back; mostly null. */
  readonly tape: Tape | null
  /** Tells a telemetry what happens; mostly null. */
  readonly trace: LiveTrace | null
  /** Lets model calls begin as far as limits allow. */
  readonly gate: CallGate
  /** Tells what went wrong beside the runs. */
  readonly report: (error: unknown) => void
  /** The model call that was made last. */
  lastCall: KeptAlive
  /** The child that was prepared last. */
  lastChild: KeptAlive
}

/** The settings that the application gave once for all its runs. */
export interface RunSettings {
  readonly logger: Logger
  /** The runtime's budget, over every run. */
  readonly budget: Budget | undefined
  /** How delegations are tried, where nobody nearer says it. */
  readonly attempts: Attempts | undefined
  readonly profiles: Profiles
  /** When contexts are summed up by themselves; null for never. */
  readonly compaction: CompactionSettings | null
  readonly files: FileDomain | null
  /** The application's own, handed to every tool as they are. */
  readonly tracer: object | null
  readonly longTermMemory: object | null
  /** Takes the spans of runs; null where nobody traces. */
  readonly telemetry: Telemetry | null
  /** Says what may be told of a failure. */
  readonly causeOf: (error: unknown) => string
}

/**
 * The files of the run's owner as the run may use them: by its layers, and by what a person has allowed for its call. Every
 * conversation of a tree has the owner of its root.
 */
export function filesOf(run: NodeRun): Files {
  const { home, layers, node, conversation } = run
  if (home.settings.files === null) return ABSENT_FILES
  const input = toJson(node.input.call?.input ?? null)
  return home.settings.files
    .of(conversation.owner)
    .bind(layers, (request) => input.ok && permit(run, request, input.value).verdict === 'allow')
}

/** Where programs of the run's owner run that nobody gave a folder; null where that is the folder of this process. */
export function ownFolderOf({ home, conversation }: NodeRun): OwnerFolder | null {
  return home.settings.files?.folderOf(conversation.owner) ?? null
}

/** Which definitions the rules of a run keep from it. A runtime without files keeps none. */
export function keeperOf(run: NodeRun): Keeper {
  if (run.home.settings.files === null) return () => false
  const files = filesOf(run)
  return (place) => files.isKept(place)
}

/** The path of a file that a run of the tree may write without being asked: its text may be a model's. Null where none may. */
export function writablePath(run: NodeRun, file: string): string | null {
  const files = run.home.settings.files?.of(run.conversation.owner)
  if (files === undefined) return null
  for (const layers of run.home.agents.layersAtTop(run)) {
    const path = files.writablePath(file, layers)
    if (path !== null) return path
  }
  return null
}

const NO_FILES = 'This runtime has no files: give it some with createRuntime({ files }).'

function refuseFiles(): never {
  throw new DefinitionError('definition', NO_FILES)
}

/** The files of a runtime without files: code may name them, no rule hides anything, and each other method fails. */
const ABSENT_FILES: Files = new Proxy({ isKept: () => false } as unknown as Files, {
  get: (files, name) =>
    Reflect.get(files, name) ?? (typeof name === 'symbol' || name === 'then' ? undefined : refuseFiles),
})
