// The client of a server: one method per route, all of them over one small transport.
//
// Stays true:
// - It runs in browsers and in Node, and imports nothing of either.
// - A request that the server refuses is a `ClientError` with the server's code and advice.

import type { ForgottenOwner } from '../../core/audit/archive.ts'
import type { AuditOptions, AuditReport } from '../../core/audit/audit.ts'
import type { RunDiff } from '../../core/audit/diff.ts'
import type { PruneOptions } from '../../core/audit/prune.ts'
import type { Why } from '../../core/audit/why.ts'
import type { Json } from '../../core/base/json.ts'
import type { ConversationInfo, ListQuery, RunInfo, RunsQuery } from '../../core/conversation/data/lists.ts'
import type { NodeInfo } from '../../core/conversation/data/node-info.ts'
import type { TimelineRun } from '../../core/conversation/data/timeline.ts'
import type { PricedDay } from '../../core/conversation/data/usage-by-day.ts'
import type { InboxItem } from '../../core/conversation/inbox/inbox.ts'
import type { PendingApproval, PendingQuestion } from '../../core/conversation/inbox/pending.ts'
import type { SettleWord } from '../../core/conversation/inbox/settle.ts'
import type { OtlpTraces } from '../../core/conversation/trace/otlp.ts'
import type { UsageShare } from '../../core/conversation/usage.ts'
import type { Explanation } from '../../core/grant/decide.ts'
import type { Principal } from '../../core/grant/principal.ts'
import type { MadeToken, RevokedTokens, TokenInfo } from '../../core/grant/token-info.ts'
import type { DurableEvent, RunEvent } from '../../core/graph/event.ts'
import type { Outcome } from '../../core/graph/outcome.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { SettledCall } from '../../core/rules/history/settle-call.ts'
import type { AgentInfo } from '../../core/runtime/look/agent-info.ts'
import type { ProcessesQuery, ProcessInfo } from '../../core/runtime/look/process-info.ts'
import type { ShownRequest } from '../../core/runtime/look/request-of.ts'
import type { RunLook } from '../../core/runtime/look/run-look.ts'
import type { AnswerWord, ApprovalWord, ResultWord } from '../../core/runtime/options.ts'
import type { Tombstone } from '../../core/store/archive.ts'
import type { Vocabulary } from '../../core/tool/telemetry.ts'
import type { KeptOwner, NodeAnswer, Page, ResultAnswer, ServerInfo, StartedRun } from './answers.ts'
import { type CallOptions, ConversationClient } from './conversation-client.ts'
import { type FeedItem, type FeedOptions, readFeed } from './feed.ts'
import { readEvents } from './follow.ts'
import { type RunRequest, startParts } from './start.ts'
import type { ClientStreamOptions } from './stream.ts'
import { type ConnectOptions, pathOf, type QueryValues, type RequestParts, ServerRequests } from './transport.ts'
import type { TreeState } from './tree/tree-state.ts'
import type { MadeWebhook, WebhookDelivery, WebhookInfo, WebhookRequest } from './webhook-info.ts'

/** The longest that one request waits for an outcome, in seconds. */
const MOST_WAIT = 55

/** Connects to a server. Nothing is sent before the first request. */
export function connect(options: ConnectOptions): LegateClient {
  return new LegateClient(new ServerRequests(options))
}

/** A server, by its routes. */
export class LegateClient {
  private readonly transport: ServerRequests

  constructor(transport: ServerRequests) {
    this.transport = transport
  }

  /** Any request of the API that has no method here: gives the JSON of its answer. */
  request<Answer = Json>(path: string, parts: RequestParts = {}): Promise<Answer> {
    return this.transport.json(path, parts)
  }

  /** The version of the server, who you are, and what you may do. */
  info(options: CallOptions = {}): Promise<ServerInfo> {
    return this.read('/v1', options)
  }

  /** The agents that you may start. */
  agents(options: CallOptions = {}): Promise<Page<'agents', AgentInfo>> {
    return this.read('/v1/agents', options)
  }

  /** An agent: its description, its schemas, and what a run of it may cost. */
  agent(name: string, options: CallOptions = {}): Promise<AgentInfo> {
    return this.read(pathOf('/v1/agents/{}', name), options)
  }

  /** Why a run of an agent may or may not do something: `tool:deploy`. */
  explain(agent: string, request: string): Promise<Explanation> {
    return this.post(pathOf('/v1/agents/{}/explain', agent), { request })
  }

  /** Why a run that was started may or may not do something. */
  explainRun(runId: Id, request: string, { signal }: CallOptions = {}): Promise<Explanation> {
    return this.transport.json(pathOf('/v1/runs/{}/explain', runId), { query: { request }, signal })
  }

  /** Why the run that a node belongs to may or may not do something. */
  explainNode(nodeId: Id, request: string, { signal }: CallOptions = {}): Promise<Explanation> {
    return this.transport.json(pathOf('/v1/nodes/{}/explain', nodeId), { query: { request }, signal })
  }

  /** Starts an agent. */
  run(agent: string, input: unknown, request: RunRequest = {}): Promise<StartedRun> {
    return this.transport.json('/v1/runs', startParts({ agent, input }, request))
  }

  /** The latest run of each conversation that you see, the newest conversation first. */
  runs(options: RunsQuery & CallOptions = {}): Promise<Page<'runs', RunInfo>> {
    return this.read('/v1/runs', options)
  }

  /** A run: its state, its outcome, and what it delegated. */
  get(runId: Id, options: CallOptions = {}): Promise<RunLook> {
    return this.read(pathOf('/v1/runs/{}', runId), options)
  }

  /**
   * The events of a run and of what it delegated, to its end. It comes back by itself when the connection is cut, and gives each
   * stored event once. A `live` event replaces what you have of its node.
   */
  events(runId: Id, options: EventsQuery & ClientStreamOptions = {}): AsyncGenerator<RunEvent, void> {
    const { after, types, live, fields, ...stream } = options
    const path = pathOf('/v1/runs/{}/events', runId)
    return readEvents(this.transport, { path, after, query: { types, live, fields } }, stream)
  }

  /** Recorded events of a run, page by page. */
  eventPage(runId: Id, options: EventsPageQuery & CallOptions = {}): Promise<Page<'events', DurableEvent>> {
    return this.read(pathOf('/v1/runs/{}/events', runId), options)
  }

  /** The outcome of a run, when it has ended. */
  async result(runId: Id, { signal }: CallOptions = {}): Promise<Outcome> {
    for (;;) {
      const parts = { query: { wait: MOST_WAIT }, signal }
      const { outcome } = await this.transport.json<ResultAnswer>(pathOf('/v1/runs/{}/result', runId), parts)
      if (outcome !== null) return outcome
    }
  }

  /** Asks a run and all it started to stop. */
  cancel(runId: Id, reason?: string): Promise<void> {
    return this.post(pathOf('/v1/runs/{}/cancel', runId), { reason })
  }

  /** Why a run does not go on, or what it is doing. */
  why(runId: Id, options: CallOptions = {}): Promise<Why> {
    return this.read(pathOf('/v1/runs/{}/why', runId), options)
  }

  /** The usage of a run, with the share of each run it started. */
  usageOf(runId: Id, options: CallOptions = {}): Promise<UsageShare> {
    return this.read(pathOf('/v1/runs/{}/usage', runId), options)
  }

  nodes(runId: Id, options: { readonly from?: number; readonly limit?: number } & CallOptions = {}) {
    return this.read<Page<'nodes', NodeAnswer>>(pathOf('/v1/runs/{}/nodes', runId), options)
  }

  /** Per node its start, end, waits and cost. */
  timeline(runId: Id, options: CallOptions = {}): Promise<TimelineRun> {
    return this.read(pathOf('/v1/runs/{}/timeline', runId), options)
  }

  /** The trace of a run and all below it as OTLP/JSON. */
  otlp(runId: Id, { signal, ...query }: TraceQuery & CallOptions = {}): Promise<OtlpTraces> {
    return this.transport.json(pathOf('/v1/runs/{}/otlp', runId), { query: { ...query }, signal })
  }

  /** Two runs, node by node. */
  diff(runId: Id, otherRunId: Id, options: CallOptions = {}): Promise<RunDiff> {
    return this.read(pathOf('/v1/runs/{}/diff/{}', runId, otherRunId), options)
  }

  /** The conversations that you see, newest first. */
  conversations(options: ListQuery & CallOptions = {}): Promise<Page<'conversations', ConversationInfo>> {
    return this.read('/v1/conversations', options)
  }

  /** A conversation or a lane: what was said, its tree, and the changes of its history. Nothing is sent before you ask. */
  conversation(id: Id): ConversationClient {
    return new ConversationClient(this.transport, id)
  }

  /** The states of the tree of a conversation: see `conversation(id).follow()`. */
  follow(conversationId: Id, options: ClientStreamOptions = {}): AsyncGenerator<TreeState, void> {
    return this.conversation(conversationId).follow(options)
  }

  /** Takes a tree that an export gave. Open runs of it are stopped, unless you say `goOn`. */
  import(
    lines: string,
    { signal, goOn = false }: CallOptions & { readonly goOn?: boolean } = {},
  ): Promise<{ readonly conversationId: Id }> {
    return this.transport.json('/v1/import', { method: 'POST', lines, signal, query: goOn ? { goOn } : {} })
  }

  /** A node: what went in, what came out, and how it went. */
  node(nodeId: Id, options: CallOptions = {}): Promise<NodeInfo> {
    return this.read(pathOf('/v1/nodes/{}', nodeId), options)
  }

  /** The request that the model of a node got, made again from its rows. */
  requestOf(nodeId: Id, options: CallOptions = {}): Promise<ShownRequest> {
    return this.read(pathOf('/v1/nodes/{}/request', nodeId), options)
  }

  /** The nodes that the model of a node sees. */
  context(nodeId: Id, options: FromQuery & CallOptions = {}): Promise<Page<'nodes', NodeAnswer>> {
    return this.read(pathOf('/v1/nodes/{}/context', nodeId), options)
  }

  /** All versions of a node in its lane. */
  versions(nodeId: Id, options: FromQuery & CallOptions = {}): Promise<Page<'nodes', NodeAnswer>> {
    return this.read(pathOf('/v1/nodes/{}/versions', nodeId), options)
  }

  /** The whole result of a node, however long it is. */
  body(nodeId: Id, { signal }: CallOptions = {}): Promise<string> {
    return this.transport.text(pathOf('/v1/results/{}', nodeId), { headers: { accept: '*/*' }, signal })
  }

  /** The requests that wait for a person. */
  approvals(options: LimitQuery & FromQuery & CallOptions = {}): Promise<Page<'approvals', PendingApproval>> {
    return this.read('/v1/approvals', options)
  }

  /** A person's word on a request, as `approvals` showed it (`seen`). The server names who says it. */
  approve(nodeId: Id, word: Omit<ApprovalWord, 'by' | 'seen'> & { readonly seen: string }): Promise<void> {
    return this.post(pathOf('/v1/approvals/{}', nodeId), word)
  }

  /** The questions of agents that wait for a person. */
  questions(options: LimitQuery & FromQuery & CallOptions = {}): Promise<Page<'questions', PendingQuestion>> {
    return this.read('/v1/questions', options)
  }

  /** A person's answer to a question. */
  answer(nodeId: Id, word: string | Omit<AnswerWord, 'by'>): Promise<void> {
    return this.post(pathOf('/v1/questions/{}', nodeId), typeof word === 'string' ? { text: word } : word)
  }

  /** The result of a call that you have executed, as its event showed it (`seen`): `tool({ execute: 'outside' })`. */
  giveResult(nodeId: Id, word: Omit<ResultWord, 'by' | 'seen'> & { readonly seen: string }): Promise<void> {
    return this.post(pathOf('/v1/calls/{}/result', nodeId), word)
  }

  /** A person's word on a call whose effect is uncertain, as `inbox` showed it (`seen`). */
  settle(nodeId: Id, word: SettleWord & { readonly seen: string }): Promise<SettledCall> {
    return this.post(pathOf('/v1/uncertain/{}', nodeId), word)
  }

  /** Everything that needs a person, the most urgent first. */
  inbox(options: LimitQuery & FromQuery & CallOptions = {}): Promise<Page<'items', InboxItem>> {
    return this.read('/v1/inbox', options)
  }

  /** Everything that happens in the runs that you see, and in the trees that you name. It comes back by itself. */
  feed(options: FeedOptions = {}): AsyncGenerator<FeedItem, void> {
    return readFeed(this.transport, options)
  }

  /** Usage by day, owner, agent and model, from one day to another: `2026-11-17`. */
  usage(options: UsageDays & CallOptions = {}): Promise<Page<'usage', PricedDay>> {
    return this.read('/v1/usage', options)
  }

  /** The processes that run nodes. */
  processes(options: ProcessesQuery & CallOptions = {}): Promise<Page<'processes', ProcessInfo>> {
    return this.read('/v1/processes', options)
  }

  /** Looks for everything that can be wrong with stored rows. */
  audit(body: Pick<AuditOptions, 'rootId' | 'verify'> = {}): Promise<AuditReport> {
    return this.post('/v1/audit', body)
  }

  /** Deletes trees without an open run, and gives their tombstones. */
  prune(body: PruneOptions): Promise<Page<'tombstones', Tombstone>> {
    return this.post('/v1/prune', body)
  }

  /** How long trees of an owner are kept; null: as the server says for all. */
  owner(owner: string, options: CallOptions = {}): Promise<KeptOwner> {
    return this.read(pathOf('/v1/owners/{}', owner), options)
  }

  /** Sets it. */
  keepOwner(owner: string, keepDays: number | null): Promise<KeptOwner> {
    return this.transport.json(pathOf('/v1/owners/{}', owner), { method: 'PUT', body: { keepDays } })
  }

  /** Cancels and erases everything of an owner. */
  forgetOwner(owner: string, { signal, reason }: { readonly reason?: string } & CallOptions = {}) {
    const parts = { method: 'DELETE', query: { reason }, signal } as const
    return this.transport.json<ForgottenOwner>(pathOf('/v1/owners/{}', owner), parts)
  }

  /** The tokens of your id; all of them with the scope `admin`. */
  tokens(options: CallOptions = {}): Promise<Page<'tokens', TokenInfo>> {
    return this.read('/v1/tokens', options)
  }

  /** Makes a token that may no more than yours. Its text is in the answer, this once. */
  addToken(body: TokenRequest): Promise<MadeToken> {
    return this.post('/v1/tokens', body)
  }

  /** Revokes a token and all that were made with it; with `cancel` also the open runs of their owners. */
  revokeToken(id: string, query: { readonly cancel?: boolean } = {}): Promise<RevokedTokens> {
    return this.transport.json(pathOf('/v1/tokens/{}', id), { method: 'DELETE', query })
  }

  /** The webhooks of your token and of those made with it; with the scope `admin` all of owners that you see. */
  webhooks(options: CallOptions = {}): Promise<Page<'webhooks', WebhookInfo>> {
    return this.read('/v1/webhooks', options)
  }

  /** Makes a webhook. Its secret is in the answer, this once. */
  addWebhook(body: WebhookRequest): Promise<MadeWebhook> {
    return this.post('/v1/webhooks', body)
  }

  /** One webhook: where it goes, and whether it was disabled. */
  webhook(id: string, options: CallOptions = {}): Promise<WebhookInfo> {
    return this.read(pathOf('/v1/webhooks/{}', id), options)
  }

  /** Deletes a webhook and its deliveries. */
  removeWebhook(id: string): Promise<void> {
    return this.transport.json(pathOf('/v1/webhooks/{}', id), { method: 'DELETE' })
  }

  /** Its deliveries about runs that you may read, the newest first. `before`: the `next` of the page before. */
  deliveries(
    webhookId: string,
    options: LimitQuery & { readonly before?: string } & CallOptions = {},
  ): Promise<Page<'deliveries', WebhookDelivery>> {
    return this.read(pathOf('/v1/webhooks/{}/deliveries', webhookId), options)
  }

  /** Delivers once more what a webhook was sent. */
  deliverAgain(webhookId: string, delivery: string): Promise<WebhookDelivery> {
    return this.post(pathOf('/v1/webhooks/{}/deliveries/{}/again', webhookId, delivery), {})
  }

  private read<Answer>(path: string, { signal, ...query }: CallOptions & object): Promise<Answer> {
    return this.transport.json(path, { query: query as QueryValues, signal })
  }

  private post<Answer>(path: string, body: object): Promise<Answer> {
    return this.transport.json(path, { method: 'POST', body })
  }
}

/** How much of a list to give. */
export interface LimitQuery {
  /** The most items. Default 50. */
  readonly limit?: number
}

/** Where a list goes on. */
export interface FromQuery {
  /** The `next` of the page before. */
  readonly from?: number
}

/** Which days to sum up: the server's usual ones where you leave them out. */
export interface UsageDays {
  /** The first day: `2026-11-01`. */
  readonly from?: string
  /** The last day. */
  readonly to?: string
  /** Only what this owner used. */
  readonly owner?: string
}

/** A token to make: it can do at most what yours can. */
export interface TokenRequest {
  /** Who holds it, and what it may do. Its id is yours unless you are an admin. */
  readonly principal: Omit<Principal, 'id' | 'within'> & { readonly id?: string }
  /** For people who look at the list. */
  readonly name?: string
  /** When it ends, in milliseconds since 1970. Default: never. */
  readonly expiresAt?: number
}

/** Which events of a run to read. */
export interface EventsQuery {
  /** Only events after this number. */
  readonly after?: number
  /** Only events of these types. */
  readonly types?: readonly string[]
  /** False: only recorded events. */
  readonly live?: boolean
  /** True: adds an event for each field of an answer that is complete. */
  readonly fields?: boolean
}

/** Which recorded events of a run to give. */
export interface EventsPageQuery extends Pick<EventsQuery, 'after' | 'types'> {
  /** The most events. Default 200. */
  readonly limit?: number
}

/** How a trace is written. */
interface TraceQuery {
  /** With the text of people and models, arguments and results. */
  readonly content?: boolean
  readonly vocabulary?: Vocabulary
}
