import { realpath } from 'node:fs/promises'
import type { AnyAgent } from '../../core/agent/definition/agent.ts'
import { filesOf, keeperOf, type NodeRun, writablePath } from '../../core/agent/hooks/node-run.ts'
import { isLegateError } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import type { RowToolEnd } from '../../core/delegation/background/row-tool.ts'
import {
  type BackgroundDelegation,
  type Delegation,
  type Offer,
  type SpawnResult,
  spawn,
} from '../../core/delegation/spawn.ts'
import { textOf } from '../../core/graph/content.ts'
import type { Id, NodeOutput } from '../../core/graph/rows.ts'
import { type ChildIds, childIds } from '../../core/rules/delegation/spawn.ts'
import type { OpenFacts } from '../../core/rules/turn/fold-open.ts'
import { workspacePath } from '../../core/tools/workspace-paths.ts'
import { filesOfDefinition } from '../agent-file/agent-file.ts'
import type { OpenSpec, Surface } from '../inline/spec.ts'
import { invalid, OpenRefusal, refusedCall } from './arguments.ts'
import { type BuiltChild, buildChild } from './build-child.ts'
import { type OpenCall, readOpenCall } from './read-call.ts'
import { findSource, type LoadedSource, loadSource, sourcesOf } from './sources.ts'

/** Starts the child that a call asks for. The task waits for it, or ends at once if it runs in the background. */
export async function startOpen(
  run: NodeRun,
  given: unknown,
  { spec, surface }: { readonly spec: OpenSpec; readonly surface: Surface },
): Promise<RowToolEnd> {
  try {
    refuseNested(run, spec, surface)
    return await inTurn(run.turn.id, prepare(run, given, { spec, surface }), (prepared) => begin(run, prepared))
  } catch (error) {
    if (error instanceof OpenRefusal) return refusedCall(error, surface)
    throw error
  }
}

/** The last starting call of each run: files are read in parallel, children are made in order. */
const starting: Map<Id, Promise<unknown>> = new Map()

async function inTurn<T, Ready>(runId: Id, ready: Promise<Ready>, start: (ready: Ready) => Promise<T>): Promise<T> {
  const before = starting.get(runId) ?? Promise.resolve()
  const done = Promise.all([ready, before.catch(() => undefined)]).then(([prepared]) => start(prepared))
  starting.set(runId, done)
  try {
    return await done
  } finally {
    if (starting.get(runId) === done) starting.delete(runId)
  }
}

async function prepare(
  run: NodeRun,
  given: unknown,
  { spec, surface }: { readonly spec: OpenSpec; readonly surface: Surface },
): Promise<StartParts> {
  const isKept = keeperOf(run)
  const sources = await sourcesOf(spec, isKept)
  const call = readOpenCall(surface, given, (name) => sources.some((source) => source.name === name))
  const source = call.source === null ? null : findSource(call.source, sources, surface)
  const options = {
    parameters: call.parameters,
    isKept,
    cwd: spec.cwd,
    projectFiles: spec.projectFiles === true,
    readFile: (file: string) => readFor(run, file),
  }
  const loaded = source === null ? null : await loadSource(source, options)
  const files = loaded === null ? [] : filesOfDefinition(loaded.definition)
  const withheld = files.map((file) => writablePath(run, file)).find((one) => one !== null) ?? null
  const built = buildChild(run, { call, loaded, spec, cwd: await folderFor(run, call.cwd, spec.cwd), withheld })
  const isSequential = source?.kind === 'subrecipe' && source.subRecipe.sequentialWhenRepeated
  return { call, loaded, built, spec, key: isSequential ? source.name : null }
}

/** Refuses a child's attempt to start children, unless its host allows it. */
function refuseNested({ conversation }: NodeRun, { nested }: OpenSpec, surface: Surface): void {
  if (nested || conversation.depth === 0) return
  throw new OpenRefusal('INVALID_REQUEST', NESTED[surface])
}

const NESTED: Readonly<Record<Surface, string>> = {
  subagent: 'Subagents cannot create other subagents',
  delegate: 'Delegated tasks cannot spawn further delegations',
  Agent: 'Agents cannot create other agents',
}

/** Reads a file that a model names from the runtime's files, if the agent may read it. */
async function readFor(run: NodeRun, given: string): Promise<string> {
  return filesOf(run).readText(workspacePath(given))
}

/**
 * Chooses the working folder of a child: one named by a model must be a folder of the runtime's files that the agent
 * may list.
 */
async function folderFor(run: NodeRun, given: string | null, byDefault: string): Promise<string> {
  if (given === null || given === byDefault) return byDefault
  try {
    return await filesOf(run).inDirectory(given, (real) => realpath(real))
  } catch (error) {
    if (run.home.settings.files === null || isLegateError(error, 'not_found'))
      invalid(`cwd is not a directory: ${given}`)
    return invalid(`cwd cannot be used: ${isLegateError(error) ? error.message : 'it is not a folder of this machine'}`)
  }
}

interface StartParts {
  readonly call: OpenCall
  readonly loaded: LoadedSource | null
  readonly built: BuiltChild
  readonly spec: OpenSpec
  /** The key of calls that wait for each other. */
  readonly key: string | null
}

async function begin(run: NodeRun, beginning: StartParts): Promise<RowToolEnd> {
  const { call, built } = beginning
  const agent = run.home.agents.make(built.inline as unknown as Json, run.agent) as AnyAgent
  const ids = childIds(run.node.id, 0)
  const delegation: Delegation = {
    offer: offerOf(run, agent, beginning),
    input: built.input,
    ids,
    mode: call.isBackground ? 'background' : 'parked',
    about: { title: openCallTitle(call), metadata: metadataOf(run, beginning) },
    ...(call.isBackground ? { background: inBackground(beginning, ids) } : {}),
  }
  return endOf(await spawn(run, delegation), call.surface)
}

function offerOf({ node }: NodeRun, agent: AnyAgent, { call, built, spec, key, loaded }: StartParts): Offer {
  const facts: OpenFacts = {
    surface: call.surface,
    summary: call.summary,
    notes: built.notes,
    label: labelOf(call),
    prompt: textOf(built.input),
    type: loaded === null ? null : call.source,
    keepMs: spec.keepMs,
  }
  const limit = call.isBackground ? { key: 'background', limit: spec.background } : null
  return {
    name: node.input.call?.name ?? call.surface,
    contract: 'open',
    input: null,
    briefing: { mode: 'none', tokens: 0 },
    grant: undefined,
    budget: undefined,
    profile: undefined,
    isShared: false,
    onParentClose: 'cancel',
    keyed: key === null ? limit : { key: `subrecipe:${key}`, limit: 1 },
    attempts: spec.timeoutMs === null ? undefined : { timeoutMs: spec.timeoutMs },
    facts: facts as unknown as Json,
    agent,
    take: () => agent,
  }
}

function metadataOf({ conversation, node }: NodeRun, { call, built }: StartParts): { readonly [key: string]: Json } {
  return {
    subagent: {
      name: built.inline.name,
      parent_conversation_id: conversation.id,
      parent_graph_id: conversation.id,
      spawned_from_node_id: node.id,
      role: call.title ?? call.source,
      summary: summaryOf(call),
      cwd: built.inline.cwd,
    },
  }
}

function inBackground({ call }: StartParts, { conversation: id }: ChildIds): BackgroundDelegation {
  const content = `Task ${id} started in background: "${labelOf(call)}"\nYou are told when it ends. load(source: "${id}") waits for its result; with peek: true it says what it is doing, with cancel: true it stops it.`
  const result: NodeOutput = { content, metadata: { subagent_session_id: id } }
  return { wake: 'auto', briefing: null, sessionId: null, title: null, metadata: null, result, wait: null }
}

/** Turns a failed start into a result for the host's model. */
function endOf(spawned: SpawnResult, surface: Surface): RowToolEnd {
  if ('ask' in spawned) return { ask: spawned.ask }
  if (!('refused' in spawned)) return 'done'
  const why = spawned.refused.error?.message ?? spawned.refused.status
  const isNested = why.startsWith(NESTED.subagent)
  const words = surface === 'delegate' ? `Delegation failed: ${why}` : `Failed to execute task: ${why}`
  return refusedCall(new OpenRefusal(isNested ? 'INVALID_REQUEST' : 'INTERNAL_ERROR', isNested ? why : words), surface)
}

const MOST_SUMMARY = 160
const MOST_LABEL = 60

/** Summarizes the child's task in one line. */
export function summaryOf({ instructions, source }: OpenCall): string {
  const text = (instructions ?? '').replace(/\s+/g, ' ').trim()
  const said = source === null ? text : `Run subrecipe \`${source}\`${text === '' ? '' : `: ${text}`}`
  return cut(said, MOST_SUMMARY)
}

/** The label of the child in lists. */
export function labelOf({ instructions, source }: OpenCall): string {
  const text = (instructions ?? '').replace(/\s+/g, ' ').trim()
  return cut([source ?? '', text].filter((part) => part !== '').join(': '), MOST_LABEL)
}

export function openCallTitle(call: OpenCall): string {
  if (call.surface === 'subagent') return 'Subagent task'
  return call.title ?? (labelOf(call) || 'Delegated task')
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 3)}...`
}
