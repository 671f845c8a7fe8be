// The client of a server: a method for each operation of the table, made from its path, and those that stream or start runs.
//
// Stays true:
// - It runs in browsers and in Node, and imports nothing of either: of operations it has paths and types, not the code.
// - A request that the server refuses is a `ClientError` with the server's code and advice.

import type { Json } from '../../core/base/json.ts'
import type { DurableEvent, RunEvent } from '../../core/graph/event.ts'
import type { Outcome } from '../../core/graph/outcome.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { Page } from '../../core/operations/form/page.ts'
import type { ApprovalDecision, CallResult, QuestionAnswer } from '../../core/operations/form/words.ts'
import type { ClientOperations } from '../../core/operations/methods.ts'
import type { CallOptions } from '../../core/operations/operation.ts'
import { REQUESTS } from '../../core/operations/wire/requests.made.ts'
import type { ResultAnswer, ServerInfo, StartedRun } from './answers.ts'
import { type ConversationClient, conversationClient } from './conversation-client.ts'
import { type FeedItem, type FeedOptions, readFeed } from './feed.ts'
import { readEvents } from './follow.ts'
import { addRequests } from './requests.ts'
import { type RunRequest, startParts } from './start.ts'
import type { ClientStreamOptions } from './stream.ts'
import { type ConnectOptions, pathOf, type QueryValues, type RequestParts, ServerRequests } from './transport.ts'
import type { TreeState } from './tree/tree-state.ts'

/** The longest that one request waits for an outcome, in seconds. */
const MOST_WAIT = 55

/** Connects to a server. Nothing is sent before the first request. */
export function connect(options: ConnectOptions): LegateClient {
  return new Client(new ServerRequests(options)) as Client & ClientOperations
}

/** A server: its operations, and what streams or starts runs. */
export interface LegateClient extends Client, ClientOperations {}

class Client {
  private readonly transport: ServerRequests

  static {
    addRequests(Client, REQUESTS, (self) => self.transport)
  }

  constructor(transport: ServerRequests) {
    this.transport = transport
  }

  /** Any request of the API that has no method here: gives the JSON of its answer. */
  request<Answer = Json>(path: string, parts: RequestParts = {}): Promise<Answer> {
    return this.transport.json(path, parts)
  }

  /** The version of the server, who you are, and what you may do. */
  info(options: CallOptions = {}): Promise<ServerInfo> {
    return this.transport.json('/v1', options)
  }

  /** Starts an agent. */
  run(agent: string, input: unknown, request: RunRequest = {}): Promise<StartedRun> {
    return this.transport.json('/v1/runs', startParts({ agent, input }, request))
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
    const { signal, ...query } = options
    return this.transport.json(pathOf('/v1/runs/{}/events', runId), { query: query as QueryValues, signal })
  }

  /** The outcome of a run, when it has ended. */
  async result(runId: Id, { signal }: CallOptions = {}): Promise<Outcome> {
    for (;;) {
      const parts = { query: { wait: MOST_WAIT }, signal }
      const { outcome } = await this.transport.json<ResultAnswer>(pathOf('/v1/runs/{}/result', runId), parts)
      if (outcome !== null) return outcome
    }
  }

  /** A conversation or a lane: what was said, its tree, and the changes of its history. Nothing is sent before you ask. */
  conversation(id: Id): ConversationClient {
    return conversationClient(this.transport, id)
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

  /** The whole result of a node, however long it is. */
  body(nodeId: Id, { signal }: CallOptions = {}): Promise<string> {
    return this.transport.text(pathOf('/v1/results/{}', nodeId), { headers: { accept: '*/*' }, signal })
  }

  /** A person's word on what waits, as it was shown (`seen`): on a request, a question, or a call that was executed outside. */
  answer(nodeId: Id, word: string | ClientWord): Promise<void> {
    const say = this as unknown as ClientOperations
    if (typeof word === 'string') return say.reply(nodeId, { text: word })
    if ('text' in word) return say.reply(nodeId, word)
    return 'result' in word ? say.giveResult(nodeId, word) : say.approve(nodeId, word)
  }

  /** Everything that happens in the runs that you see, and in the trees that you name. It comes back by itself. */
  feed(options: FeedOptions = {}): AsyncGenerator<FeedItem, void> {
    return readFeed(this.transport, options)
  }
}

/** A word on what waits. The server names who says it. */
type ClientWord =
  | (Omit<ApprovalDecision, 'by' | 'seen'> & { readonly seen: string })
  | Omit<QuestionAnswer, 'by'>
  | (Omit<CallResult, 'by' | 'seen'> & { readonly seen: string })

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
