// Operations of runs: lists, one run, its end, its trace, and why it does or may do something.

import type { RunDiff } from '../audit/diff.ts'
import type { Why, WhyOptions } from '../audit/why.ts'
import { InputError } from '../base/error.ts'
import { flag, readOptions } from '../base/options.ts'
import type { RunInfo, RunsQuery } from '../conversation/data/lists.ts'
import type { TimelineRun } from '../conversation/data/timeline.ts'
import type { AskedOf, OtlpTraces } from '../conversation/trace/otlp.ts'
import type { OtlpOptions } from '../conversation/trace/read-otlp.ts'
import type { Explanation } from '../grant/decide.ts'
import { seesEverything } from '../grant/principal.ts'
import type { Id } from '../graph/rows.ts'
import { lookWith } from '../store/look.ts'
import { missingError, notFound } from '../store/not-found.ts'
import type { Vocabulary } from '../tool/telemetry.ts'
import { cursorAfter, type LimitQuery, type Page } from './form/page.ts'
import { nodesView } from './form/views.ts'
import type { AskedSources } from './look/asked-model.ts'
import type { RunEventPage, RunEventQuery, RunLook } from './look/run-look.ts'
import { byStart, SeenLists } from './look/seen-lists.ts'
import { operation } from './operation.ts'
import type { Operating } from './port.ts'
import { bodySchema, LIST_QUERY, REQUEST_QUERY, SHORT } from './schemas.ts'

export const RUNS = {
  /** The latest run of each conversation at the root, newest conversation first: a page of them. */
  runs: operation({
    summary: 'The latest run of each conversation that you see, the newest conversation first.',
    scope: 'read',
    http: 'GET /v1/runs',
    query: {
      ...LIST_QUERY,
      state: {
        type: 'string',
        description: 'Only runs in this state.',
        enum: ['open', 'completed', 'failed', 'uncertain'],
      },
    },
    gives: ['Runs', 'The runs.'],
    run: (on, query: RunsQuery = {}) => runs(on, query),
    as: async ({ on, principal, placed }, query: RunsQuery = {}) =>
      new SeenLists(principal).listed(await placed(query), (owned) => runs(on, owned), byStart),
    wire: (found: readonly RunInfo[], query: LimitQuery): Page<'runs', RunInfo> => ({
      runs: found,
      next: cursorAfter(found, query, ({ rootId }) => rootId),
    }),
  }),

  /** A run in short, with what it delegated. */
  look: operation({
    summary: 'A run: its state, its outcome, and what it delegated.',
    scope: 'read',
    of: 'run',
    http: 'GET /v1/runs/{id}',
    gives: ['Run', 'The run.'],
    as: async ({ on, root }, runId: Id): Promise<RunLook> => {
      const { lookAtRun } = await import('./look/run-look.ts')
      const look = await lookAtRun(on.store, root.id, runId)
      if (look === undefined) throw missingError('run', runId, undefined)
      return look
    },
  }),

  /** Asks a run and all it started to stop. */
  cancel: operation({
    summary: 'Asks a run and all it started to stop.',
    scope: 'cancel',
    of: 'run',
    http: 'POST /v1/runs/{id}/cancel',
    body: bodySchema({ reason: SHORT }),
    plain: ['reason'],
    else: { 204: 'The request is recorded.' },
    example: { body: { reason: 'No longer needed.' } },
    as: ({ on }, runId: Id, reason?: string): Promise<void> => on.cancel(runId, reason),
  }),

  /** Why a run does not go on, or what it is doing, in words: of a run, a node of it, or a conversation's latest run. */
  why: operation({
    summary: 'Says why a run does not go on, or what it is doing.',
    scope: 'read',
    of: 'run',
    http: 'GET /v1/runs/{id}/why',
    gives: ['Why', 'The reasons, in words.'],
    run: (on, id: Id, options: WhyOptions = {}) => why(on, id, options),
    as: ({ on, principal }, id: Id) => why(on, id, { processes: seesEverything(principal) }),
  }),

  /** The usage of a run so far, with the share of each run it started. */
  usage: operation({
    summary: 'The usage of a run, with the share of each run it started.',
    scope: 'read',
    of: 'run',
    http: 'GET /v1/runs/{id}/usage',
    gives: ['RunUsage', 'The usage.'],
    run: async ({ store }, runId: Id) => {
      const { usageOf } = await import('../conversation/usage.ts')
      const share = await lookWith(store, runId, (tree) => usageOf(tree, runId))
      if (share === undefined) throw await notFound(store, 'run', runId)
      return share
    },
  }),

  /** A run and all below it in time: for each node its start, end, waits, tries, tokens and dollars. */
  timeline: operation({
    summary: 'A run and all below it in time: for each node its start, end, waits, tries, tokens and dollars.',
    scope: 'read',
    of: 'run',
    http: 'GET /v1/runs/{id}/timeline',
    gives: ['Timeline', 'The run in time.'],
    run: async ({ store, recordings }, runId: Id): Promise<TimelineRun> => {
      await recordings.settled(runId)
      const turn = await lookWith(store, runId, (tree) => tree.turn(runId))
      if (turn === undefined) throw await notFound(store, 'run', runId)
      const { timelineOf } = await import('../conversation/data/timeline.ts')
      return timelineOf(store, turn)
    },
  }),

  /**
   * The trace of a run and everything below it as OTLP/JSON, or of all runs of a conversation. Made from rows alone: the same
   * rows give the same bytes, whoever asks, also where nobody traced the run. With `content` the instructions, tools and
   * settings of model calls are in it where this process has the code of their agents. What has not ended is left out.
   */
  otlp: operation({
    summary: 'The trace of a run and all below it as OTLP/JSON, made from rows.',
    description:
      'The same rows give the same bytes, with the ids that live spans have. What has not ended is left out.',
    scope: 'export',
    of: 'run',
    http: 'GET /v1/runs/{id}/otlp',
    query: {
      content: { type: 'boolean', description: 'With the text of people and models, arguments and results.' },
      vocabulary: { type: 'string', description: 'The names of the attributes.', enum: ['1.41', 'latest'] },
    },
    gives: ['Traces', 'The body of a request to a collector, `POST /v1/traces`.'],
    run: (on, id: Id, options: OtlpOptions = {}) => traceWithCode(on, id, options),
    // With `content` the requests of models are in it, which hold instructions too.
    as: ({ on, may }, id: Id, options: OtlpOptions = {}) =>
      may('read') ? traceWithCode(on, id, options) : traceOf(on, id, options, null),
    ask: (query: {
      /** With the text of people and models, arguments and results. */
      readonly content?: boolean
      /** The names of the attributes. Default: as the runtime of the server has them. */
      readonly vocabulary?: Vocabulary
    }) => query,
  }),

  /** The nodes of a run, by their place in it, and where the next page begins. */
  nodes: operation({
    summary: 'The nodes of a run, in order.',
    scope: 'read',
    of: 'run',
    http: 'GET /v1/runs/{id}/nodes',
    query: {
      from: { type: 'integer', description: 'The place of the first node. Default 0.' },
      limit: { type: 'integer', description: 'The most nodes.', minimum: 1, maximum: 1_000, default: 200 },
    },
    gives: ['Nodes', 'The nodes.'],
    as: async ({ on, root }, runId: Id, { from = 0, limit = 200 }: { from?: number; limit?: number } = {}) => {
      const { nodesOfRun } = await import('./look/run-look.ts')
      return nodesOfRun(on.store, { rootId: root.id, runId }, { from, limit })
    },
    wire: nodesView,
  }),

  /** Recorded events of a run and of what it delegated, page by page. */
  eventPage: operation({
    scope: 'read',
    of: 'run',
    as: async ({ on, root }, runId: Id, query: RunEventQuery = {}): Promise<RunEventPage> => {
      const { runEventPage } = await import('./look/run-look.ts')
      return runEventPage(on.store, { rootId: root.id, runId }, query)
    },
  }),

  /** Two runs node by node, with all they delegated: what was put in, what came out, what it cost. Ids do not count. */
  diff: operation({
    summary: 'Two runs node by node, with all they delegated.',
    scope: 'read',
    of: 'run',
    http: 'GET /v1/runs/{id}/diff/{other}',
    gives: ['Diff', 'The differences.'],
    run: async ({ store }, firstRunId: Id, secondRunId: Id): Promise<RunDiff> => {
      const { diffRuns } = await import('../audit/diff.ts')
      return diffRuns(store, firstRunId, secondRunId)
    },
  }),

  /** Why a run that was started may or may not do something. */
  explainRun: operation({
    summary: 'Says why a run may or may not do something.',
    scope: 'read',
    of: 'run',
    http: 'GET /v1/runs/{id}/explain',
    query: REQUEST_QUERY,
    plain: ['request'],
    gives: ['Explanation', 'The verdict and the layers that made it.'],
    example: { query: 'request=tool:deploy' },
    serve: async ({ on }, runId: Id, request: string): Promise<Explanation> => on.explain(runId, namedRequest(request)),
  }),
} as const

/** The request that an explanation is about. */
export function namedRequest(request: string): string {
  if (request !== '') return request
  throw new InputError('invalid_input', 'Say which request you mean: ?request=tool:deploy.')
}

async function runs({ store, recordings }: Operating, query: RunsQuery): Promise<RunInfo[]> {
  await recordings.settled()
  const { listRuns } = await import('../conversation/data/lists.ts')
  return listRuns(store, query)
}

async function why({ store, recordings, ledger, knowsAgent }: Operating, id: Id, options: WhyOptions): Promise<Why> {
  const { processes: namesProcesses = true } = readOptions('why(id)', options, { processes: flag })
  await recordings.settled(id)
  const { explainRun } = await import('../audit/why.ts')
  return explainRun({ store, now: ledger.clock.now(), knows: knowsAgent, namesProcesses }, id)
}

async function traceWithCode(on: Operating, id: Id, options: OtlpOptions): Promise<OtlpTraces> {
  const { askedModel } = await import('./look/asked-model.ts')
  const inTree: AskedSources['inTree'] = async (nodeId, read) => lookWith(on.store, nodeId, read)
  return traceOf(on, id, options, (nodeId) => askedModel({ requestOf: on.requestOf, inTree }, nodeId))
}

/** `askedOf`: null for callers that may not see the code of agents. */
async function traceOf(on: Operating, id: Id, options: OtlpOptions, askedOf: AskedOf | null): Promise<OtlpTraces> {
  await on.recordings.settled(id)
  const { readOtlp } = await import('../conversation/trace/read-otlp.ts')
  return readOtlp({ store: on.store, live: on.vocabulary, askedOf }, id, options)
}
