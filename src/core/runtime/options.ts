import { type AnyAgent, isAgent, type RunOptions } from '../agent/definition/agent.ts'
import { type CompactionOptions, readCompaction } from '../agent/definition/compaction-settings.ts'
import { checkExtension, type ExtensionCore } from '../agent/definition/extension.ts'
import type { RunSettings } from '../agent/hooks/node-run.ts'
import type { Clock, Scheduler } from '../base/clock.ts'
import { DefinitionError, InputError, messageOf } from '../base/error.ts'
import { type Json, toJson } from '../base/json.ts'
import {
  anything,
  code,
  flag,
  int,
  list,
  number,
  type OptionRules,
  oneOf,
  orJust,
  readOptions,
  record,
} from '../base/options.ts'
import type { SettleWord } from '../conversation/inbox/settle.ts'
import type { KindDefinition } from '../delegation/run/kind.ts'
import { ON_CHANGED, type OnChanged } from '../engine/abilities.ts'
import type { Engine, EngineFactory } from '../engine/engine.ts'
import type { FileDomain } from '../files/files.ts'
import { type Budget, checkBudget } from '../grant/budget.ts'
import { type CallLimits, checkLimits } from '../grant/call-limits.ts'
import { checkGrant, type Grant } from '../grant/grant.ts'
import type { Principal } from '../grant/principal.ts'
import { type Profiles, withProfiles } from '../grant/profile.ts'
import { CANCEL_GRACE_MS } from '../graph/kinds.ts'
import type { Id } from '../graph/rows.ts'
import { type ModelLike, toModel } from '../model/named/to-model.ts'
import type { Store } from '../store/store.ts'
import { ATTEMPTS, type Attempts } from '../tool/attempts.ts'
import type { Telemetry } from '../tool/telemetry.ts'
import type { Logger } from '../tool/tool.ts'

export interface RuntimeOptions {
  /** Where graphs are kept. Default: in memory, the newest 1000 ended trees. Closed with the runtime. */
  readonly store?: Store
  /** Agents this process has code for, beside those it starts: needed to go on with runs of other processes. */
  readonly agents?: readonly AnyAgent[]
  /** For agents that name no model. Left out: `LEGATE_MODEL`, your config file's, or a local Ollama's. */
  readonly model?: ModelLike
  /** Models by the names that recipes, agent files and calls give them, before any provider is asked for one. */
  readonly models?: Readonly<Record<string, ModelLike>>
  /** Node kinds of your own. */
  readonly kinds?: Readonly<Record<string, KindDefinition>>
  /** A layer over every run. `{ use: [] }` denies everything. */
  readonly grant?: Grant
  /** Named layers for subagents, beside the built-in ones: subagents: { x: { agent, profile } }. */
  readonly profiles?: Profiles
  /** Limits over every run; each run has the smaller of this and its agent's. */
  readonly budget?: Budget
  /** The most model calls at a time and in a minute, per owner and per model, over all processes of the store. */
  readonly limits?: CallLimits
  /** How delegations are tried, where neither the call, the host's settings nor the agent says it. */
  readonly delegation?: Attempts
  /** How contexts are kept within what a model can read; false: they are not. Default: summed up at 0.8 of a window that is known. */
  readonly compaction?: CompactionOptions | false
  /** The files that agents work with, as far as their grants allow: `diskFiles({ workspace })` or `memoryFiles()`. */
  readonly files?: FileDomain
  /**
   * True: principals other than the person at this machine may start agents that start programs. A program reads and writes what
   * your user account can. Default false: such a start is refused.
   */
  readonly trustPrograms?: boolean
  /** Receives warnings and what your tools log. Default: errors become warnings of the process. */
  readonly logger?: Logger
  /** Hooks for every agent and child: called after an agent's own. Their `methods` are an agent's: use them there. */
  readonly extensions?: readonly ExtensionCore[]
  /** Takes a trace of every run: `otel()` of `legate/otel`. */
  readonly telemetry?: Telemetry
  /** Your object, handed to every tool of every agent and child as `context.tracer`. */
  readonly tracer?: object
  /** Your object, handed to every tool of every agent and child as `context.longTermMemory`. */
  readonly longTermMemory?: object
  /** Cleans the cause of a failure before it is recorded and before a model reads it. */
  readonly redact?: (cause: string) => string
  readonly engine?: {
    /** Nodes that run at the same time in this process. Default 256; 0: it runs none, and only reads and changes rows. */
    readonly workers?: number
    /** How long `close` and a cancelled node may take. Default 5 s. */
    readonly graceMs?: number
    /** How often it looks at all rows for work that is due. Default 1 s; 2 s where a queue brings work. */
    readonly sweepMs?: number
    /** How long other processes wait for a sign of life before they take over its work. Default 15 s. */
    readonly leaseMs?: number
    /** How long a model may think before its first word; then it is asked again. Default 30 min. */
    readonly firstWordMs?: number
    /** How long a model may be silent in the middle of its answer; then it is asked again. Default 5 min. */
    readonly stalledMs?: number
    /**
     * How it treats runs whose agent was defined differently when they began. `continue` (default): it goes on with the
     * definition it has. `wait`: it leaves them to a process that has the old one, as during a rollout.
     */
    readonly onChanged?: OnChanged
    /** Makes the engine that runs nodes. Default: the local one. `engineConformance` of `legate/testing` judges yours. */
    readonly create?: EngineFactory
  }
  /** For tests. */
  readonly clock?: Clock
  /** For simulations: turns of the event loop and chance, driven by a seed. */
  readonly scheduler?: Scheduler
}

/** A person's answer to a node that awaits approval. */
export interface ApprovalWord {
  /** Whether the request goes ahead. */
  readonly allow: boolean
  /** Who says so: recorded. Default `user`. */
  readonly by?: string
  /** The reason that the model reads when you deny it. */
  readonly reason?: string
  /** Allow the same request for the rest of its conversation. */
  readonly always?: boolean
  /** Allow it with these arguments instead. */
  readonly edit?: Json
  /** Answers only the request that was listed with this `seen`. Without it: whatever the node asks for now. */
  readonly seen?: string
}

/** An answer to a question that an agent has asked. */
export interface AnswerWord {
  /** The answer. */
  readonly text: string
  /** Who says so: recorded. Default `user`. */
  readonly by?: string
  /** Answers only the question that was listed with this `seen`. Without it: whatever the node asks. */
  readonly seen?: string
}

/** The result of a call that was executed outside: `tool({ execute: 'outside' })`. */
export interface ResultWord {
  /** The result, as JSON. It must fit the `output` of the tool. */
  readonly result: Json
  /** True: it failed, and the result says why. */
  readonly isError?: boolean
  /** Who says so: recorded. Default `user`. */
  readonly by?: string
  /** Is the result of the call that was listed with this `seen`, and of no other. Without it: of whatever the node calls. */
  readonly seen?: string
}

/**
 * A word of a principal: who says it is known, and what the principal saw goes with it. A no and the answer to a question may go
 * without `seen`: they allow nothing.
 */
export type ScopedWord =
  | (Omit<ApprovalWord, 'by' | 'seen'> & Seen)
  | (Pick<ApprovalWord, 'reason'> & { readonly allow: false })
  | Omit<AnswerWord, 'by'>
  | (Omit<ResultWord, 'by' | 'seen'> & Seen)

/** A word of a principal on a call whose effect may or may not have happened. */
export type ScopedSettleWord = SettleWord & Seen

interface Seen {
  /** The hash that the request was shown with: 64 hex digits. */
  readonly seen: string
}

export interface StartOptions extends RunOptions {
  /** Goes on in this conversation instead of a new one; waits its turn when a run is going on there. */
  readonly conversationId?: Id
  /** Makes the conversation of that id where there is none. */
  readonly createConversation?: boolean
  /**
   * Goes on in the conversation that you know by this text, such as the id of a chat in `useChat`, or begins it. The same
   * text of another owner or another agent is another conversation. If the conversation was deleted, a new one begins.
   */
  readonly conversationKey?: string
  /**
   * While a run is going on there: `queue` (default) waits its turn; `restart` stops that run, and what it had begun is not
   * shown to the model that answers this input.
   */
  readonly whileRunning?: 'queue' | 'restart'
  /**
   * The owner of the conversation, such as the id of a user. A new conversation keeps it. If the conversation belongs to
   * another owner, the run is refused as if it did not exist. Pass it wherever a caller names the conversation. Default: the
   * run continues a conversation of any owner.
   */
  readonly owner?: string
  /**
   * Your name for this start, such as the id of a web request. If you start the same request of the same owner again under it,
   * you get the first run: its result, its events. Another request is refused with `conflict`, and the key of a deleted
   * run with `deleted`. Tools and the agent's definition are not compared.
   */
  readonly key?: string
  /** The title of a new conversation. */
  readonly title?: string
  /** The place of the caller in a trace, as W3C Trace Context writes it. Default: where the code that starts the run is. */
  readonly traceparent?: string
}

/** The options of a run that a principal starts: its owner is the principal. */
export type ScopedStartOptions = Omit<StartOptions, 'owner' | 'createConversation'>

/** A start on behalf of a principal. Its layers bind a conversation that it makes, and the turn. */
export interface ScopedStart {
  readonly options: ScopedStartOptions
  readonly by: Principal
  readonly layers: readonly Json[]
}

export const ENGINE_DEFAULTS = {
  workers: 256,
  graceMs: CANCEL_GRACE_MS,
  sweepMs: 1_000,
  leaseMs: 15_000,
  firstWordMs: 1_800_000,
  stalledMs: 300_000,
  onChanged: 'continue',
} as const
/** Where a queue brings work, the sweep is only its net. */
const QUEUE_SWEEP_MS = 2_000

const OPTIONS = {
  store: anything,
  agents: list,
  model: anything,
  models: record,
  kinds: record,
  grant: record,
  profiles: record,
  budget: record,
  limits: record,
  delegation: record,
  compaction: orJust(false, record),
  files: anything,
  trustPrograms: flag,
  logger: record,
  extensions: list,
  telemetry: anything,
  tracer: anything,
  longTermMemory: anything,
  redact: anything,
  engine: record,
  clock: anything,
  scheduler: anything,
}

const ENGINE = {
  workers: number(0),
  graceMs: number(0),
  sweepMs: number(1),
  leaseMs: number(1),
  firstWordMs: number(1),
  stalledMs: number(1),
  onChanged: oneOf(...ON_CHANGED),
  create: code,
}

const KIND: OptionRules<KindDefinition> = {
  execute: code,
  executable: flag,
  anchor: flag,
  transcript: flag,
  leaf: flag,
  editable: flag,
  retriable: flag,
  rerunnable: flag,
  previewChars: int(0),
}

/** Refuses what could never work: a mistake is said where it was made. */
export function checkOptions(options: RuntimeOptions): void {
  readOptions('createRuntime()', options, OPTIONS)
  if (options.engine !== undefined) readOptions('createRuntime({ engine })', options.engine, ENGINE)
  for (const [kind, definition] of Object.entries(options.kinds ?? {})) {
    const { execute } = readOptions(`createRuntime({ kinds }): the node kind "${kind}"`, definition, KIND)
    if (execute === undefined) refuse(`the node kind "${kind}" needs execute(node, context).`)
  }
  checkParts(options)
  for (const agent of options.agents ?? []) checkIsAgent(agent, 'createRuntime({ agents })')
  checkModels(options)
  checkExtensions(options.extensions)
  checkHandles(options)
  if (options.grant !== undefined) checkGrant(options.grant, 'createRuntime')
  if (options.budget !== undefined) checkBudget(options.budget, 'createRuntime')
  if (options.limits !== undefined) checkLimits(options.limits, 'createRuntime({ limits })')
  if (options.delegation !== undefined) readOptions('createRuntime({ delegation })', options.delegation, ATTEMPTS)
}

function checkParts({ store, clock, scheduler }: RuntimeOptions): void {
  if (store !== undefined && typeof store?.commit !== 'function') {
    refuse(
      'createRuntime({ store }): make one with sqliteStore(path), postgresStore(url), jsonStore(folder) or memoryStore().',
    )
  }
  if (clock !== undefined && (typeof clock?.now !== 'function' || typeof clock.at !== 'function')) {
    refuse('createRuntime({ clock }): it needs now() and at(time, run).')
  }
  const needs = [scheduler?.defer, scheduler?.pause, scheduler?.random]
  if (scheduler !== undefined && !needs.every((one) => typeof one === 'function')) {
    refuse('createRuntime({ scheduler }): it needs defer(run), pause(ms) and random().')
  }
}

function checkModels({ model, models = {} }: RuntimeOptions): void {
  if (model !== undefined && toModel(model) === undefined) {
    refuse('createRuntime({ model }) is not a model: give "provider/model", a model of the AI SDK, or a Model.')
  }
  for (const [name, one] of Object.entries(models)) {
    if (toModel(one) === undefined) refuse(`createRuntime({ models }): "${name}" is not a model.`)
  }
}

function checkHandles({ tracer, longTermMemory, redact, files, telemetry }: RuntimeOptions): void {
  if (telemetry !== undefined && typeof telemetry?.begin !== 'function') {
    refuse('createRuntime({ telemetry }): make it with otel() of legate/otel.')
  }
  if (files !== undefined && typeof files?.bind !== 'function') {
    refuse('createRuntime({ files }): make them with diskFiles({ ... }) or memoryFiles({ ... }).')
  }
  checkHandle(tracer, 'tracer')
  checkHandle(longTermMemory, 'longTermMemory')
  if (redact !== undefined && typeof redact !== 'function') {
    refuse(
      'createRuntime({ redact }) must be a function that takes a text and returns the part of it that may be shown.',
    )
  }
}

function checkExtensions(extensions: RuntimeOptions['extensions'] = []): void {
  for (const extension of extensions) checkExtension(extension, 'createRuntime({ extensions })')
}

function checkHandle(handle: unknown, key: string): void {
  if (handle === undefined || (typeof handle === 'object' && handle !== null)) return
  refuse(`createRuntime({ ${key} }) must be an object: tools get it as context.${key}.`)
}

/** Refuses what a factory made that is no engine. */
export function checkEngine(engine: Partial<Engine> | null | undefined): void {
  const missing = ENGINE_METHODS.filter((name) => typeof engine?.[name] !== 'function')
  if (missing.length === 0) return
  refuse(`createRuntime({ engine: { create } }): it must give an engine; this has no ${missing.join('(), ')}().`)
}

const ENGINE_METHODS = ['start', 'claims', 'committed', 'takeUp', 'stop', 'halt'] as const

export function checkIsAgent(agent: unknown, where: string): void {
  if (!isAgent(agent)) throw notAnAgent(where)
}

export function notAnAgent(where: string): DefinitionError {
  return new DefinitionError('definition', `${where}: that is not an agent. Make it with agent({ ... }).`)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}

type EngineSettings = NonNullable<RuntimeOptions['engine']>

/** Reads the options of the engine on a store. */
export function engineSettings(
  given: EngineSettings | undefined,
  { wakes }: Store,
): EngineSettings & Required<Omit<EngineSettings, 'create'>> {
  const sweepMs = wakes === undefined ? ENGINE_DEFAULTS.sweepMs : QUEUE_SWEEP_MS
  return { ...ENGINE_DEFAULTS, sweepMs, ...given }
}

/** Reads what holds for all runs of a runtime. */
export function settingsOf(options: RuntimeOptions): RunSettings {
  const { redact, budget, delegation, profiles = {}, files, tracer, longTermMemory, compaction, telemetry } = options
  return {
    logger: options.logger ?? warningLogger,
    budget,
    attempts: delegation,
    profiles: withProfiles(profiles, 'createRuntime'),
    compaction: readCompaction(compaction),
    files: files ?? null,
    tracer: tracer ?? null,
    longTermMemory: longTermMemory ?? null,
    telemetry: telemetry ?? null,
    causeOf: redact === undefined ? messageOf : (error: unknown) => told(error, redact),
  }
}

/** A policy that fails tells nothing. */
function told(error: unknown, redact: (cause: string) => string): string {
  try {
    const text: unknown = redact(messageOf(error))
    return typeof text === 'string' ? text : UNTOLD
  } catch {
    return UNTOLD
  }
}

const UNTOLD = 'The cause is not told.'

/** A library does not print; what went wrong inside it must still be seen. */
export const warningLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (message) => process.emitWarning(message, { type: 'LegateWarning' }),
}

/** The attributes of a run: a copy, so that nobody changes what was said. */
export function readAttributes(attributes: unknown): { readonly [name: string]: Json } {
  const json = toJson(attributes)
  const where = 'run(agent, input, { attributes })'
  if (!json.ok) throw new InputError('invalid_input', `${where}: they are not JSON. ${json.error}`)
  const { value } = json
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InputError('invalid_input', `${where}: they are an object, such as { tenant: 'acme' }.`)
  }
  if (JSON.stringify(value).length <= MOST_ATTRIBUTES) return value
  throw new InputError('invalid_input', `${where}: they have at most ${MOST_ATTRIBUTES} characters as JSON.`)
}

/** Every run below the one that is given them has them in its row. */
const MOST_ATTRIBUTES = 100_000
