import type { PictureOptions } from '../../core/audit/picture.ts'
import type { TranscriptPage, TurnPageQuery } from '../../core/conversation/conversation-pages.ts'
import type { GraphData, GraphQuery } from '../../core/conversation/data/graph-data.ts'
import type { CompressOptions, ForkOptions, RemakeOptions } from '../../core/conversation/history-handle.ts'
import type { ConversationTree, LaneInfo } from '../../core/conversation/tree.ts'
import type { UsageQuery, UsageStats } from '../../core/conversation/usage-stats.ts'
import type { Content } from '../../core/graph/content.ts'
import type { TranscriptLine } from '../../core/graph/context.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { OpenSession } from '../../core/rules/delegation/session.ts'
import type { Tombstone } from '../../core/store/archive.ts'
import type { ChangeAnswer, ConversationAnswer, Page, StartedRun } from './answers.ts'
import { readTreeStates } from './follow.ts'
import { type RunRequest, startParts } from './start.ts'
import type { ClientStreamOptions } from './stream.ts'
import { pathOf, type QueryValues, type ServerRequests } from './transport.ts'
import type { TreeState } from './tree/tree-state.ts'

/** Options of every call: a signal that gives it up. */
export interface CallOptions {
  /** Gives the request up. */
  readonly signal?: AbortSignal
}

/** One conversation or lane on a server. */
export class ConversationClient {
  readonly id: Id
  private readonly transport: ServerRequests

  constructor(transport: ServerRequests, id: Id) {
    this.transport = transport
    this.id = id
  }

  /** The conversation: whose it is, its agent, its title and its state. */
  get(options: CallOptions = {}): Promise<ConversationAnswer> {
    return this.read('', options)
  }

  /** The tree of the conversation, as `runtime.tree` gives it. */
  tree(options: { readonly limitTurns?: number } & CallOptions = {}): Promise<ConversationTree> {
    return this.read('/tree', options)
  }

  /** The transcript, by turns. */
  transcript(options: TurnPageQuery & CallOptions = {}): Promise<TranscriptPage> {
    return this.read('/transcript', options)
  }

  /** The transcript, message by message. */
  messages(options: MessagesQuery & CallOptions = {}): Promise<Page<'messages', TranscriptLine>> {
    return this.read('/messages', options)
  }

  /** Nodes, edges, lanes and versions, as data. */
  graph(options: GraphQuery & CallOptions = {}): Promise<GraphData> {
    return this.read('/graph', options)
  }

  /** The lanes that were forked from it, newest first. */
  lanes(options: CallOptions = {}): Promise<Page<'lanes', LaneInfo>> {
    return this.read('/lanes', options)
  }

  /** Its usage: in all, by model and by day. `of: 'tree'`: with that of its lanes and of everything that it delegated. */
  usage(options: Pick<UsageQuery, 'of'> & CallOptions = {}): Promise<UsageStats> {
    return this.read('/usage', options)
  }

  /** The open sessions with subagents. */
  sessions(options: CallOptions = {}): Promise<Page<'sessions', OpenSession>> {
    return this.read('/sessions', options)
  }

  /** Closes one of them. */
  closeSession(id: Id): Promise<void> {
    return this.change(pathOf('sessions/{}/close', id), {})
  }

  /** A picture of the tree, for Mermaid or Graphviz. */
  picture({ signal, ...query }: PictureOptions & CallOptions = {}): Promise<string> {
    return this.transport.text(`${this.path}/picture`, { query, headers: { accept: 'text/plain' }, signal })
  }

  /** One more turn. */
  send(
    input: unknown,
    request: Omit<RunRequest, 'conversationId' | 'conversationKey' | 'title'> = {},
  ): Promise<StartedRun> {
    return this.transport.json(`${this.path}/messages`, startParts({ input }, request))
  }

  /**
   * The states of the whole tree that the conversation belongs to: the first when all that has happened is known, then one
   * after each change. Read them with `treeOf`, `nodesOf` and `approvalsOf`.
   */
  follow(options: ClientStreamOptions = {}): AsyncGenerator<TreeState, void> {
    return readTreeStates(this.transport, `${this.path}/events`, options)
  }

  /** Makes a lane that knows everything up to a node. */
  fork(nodeId: Id, options: ForkOptions = {}): Promise<ChangeAnswer> {
    return this.change('fork', { nodeId, ...options })
  }

  /** Repeats a failed node. */
  retry(nodeId: Id, options: RemakeOptions = {}): Promise<ChangeAnswer> {
    return this.change('retry', { nodeId, ...options })
  }

  /** Asks the model for another last answer. */
  rerun(nodeId: Id, options: RemakeOptions = {}): Promise<ChangeAnswer> {
    return this.change('rerun', { nodeId, ...options })
  }

  /** Says something else instead, and goes on from there. */
  edit(nodeId: Id, content: Content, options: RemakeOptions = {}): Promise<ChangeAnswer> {
    return this.change('edit', { nodeId, content, ...options })
  }

  /** Returns to an answer that was replaced. */
  adopt(nodeId: Id, options: RemakeOptions = {}): Promise<void> {
    return this.change('adopt', { nodeId, ...options })
  }

  /** Answers with the knowledge of other lanes too. */
  merge(laneIds: readonly Id[], options: { readonly prompt?: string } = {}): Promise<ChangeAnswer> {
    return this.change('merge', { laneIds, ...options })
  }

  /** Allows no new turns in the lane. */
  archive(options: { readonly mode?: 'finish' | 'cancel' } = {}): Promise<void> {
    return this.change('archive', options)
  }

  /** Lets models read a summary instead of turns. */
  compress(options: CompressOptions): Promise<{ readonly summaryId: Id }> {
    return this.change('compress', options)
  }

  /** Removes a summary. */
  uncompress(summaryId: Id): Promise<void> {
    return this.change('uncompress', { summaryId })
  }

  /** Shows models only these nodes of a run that is over, and gives those that they no longer see. */
  compact(runId: Id, options: { readonly keep?: readonly Id[] } = {}): Promise<{ readonly nodeIds: readonly Id[] }> {
    return this.change('compact', { runId, ...options })
  }

  /** Hides a node from models. */
  exclude(nodeId: Id): Promise<void> {
    return this.change('exclude', { nodeId })
  }

  /** Shows models a node again. */
  include(nodeId: Id): Promise<void> {
    return this.change('include', { nodeId })
  }

  /** Stops one node. */
  stop(nodeId: Id, reason?: string): Promise<void> {
    return this.change('stop', { nodeId, reason })
  }

  /** Goes on without one node. */
  skip(nodeId: Id, reason?: string): Promise<void> {
    return this.change('skip', { nodeId, reason })
  }

  /** Adds a message that asks for no answer. */
  observe(content: Content, role: 'user' | 'developer' | 'agent' = 'user'): Promise<{ readonly nodeId: Id }> {
    return this.change('observe', { role, content })
  }

  /** All of the tree as JSON Lines, for `client.import` of any server. */
  export({ signal }: CallOptions = {}): Promise<string> {
    return this.transport.text(`${this.path}/export`, { headers: { accept: 'application/x-ndjson' }, signal })
  }

  /** Deletes the whole tree, and gives the tombstone that it leaves. */
  delete({ signal, reason }: { readonly reason?: string } & CallOptions = {}): Promise<Tombstone> {
    return this.transport.json(this.path, { method: 'DELETE', query: { reason }, signal })
  }

  private get path(): string {
    return pathOf('/v1/conversations/{}', this.id)
  }

  private read<Answer>(path: string, { signal, ...query }: CallOptions & object): Promise<Answer> {
    return this.transport.json(this.path + path, { query: query as QueryValues, signal })
  }

  private change<Answer>(operation: string, body: object): Promise<Answer> {
    return this.transport.json(`${this.path}/${operation}`, { method: 'POST', body })
  }
}

/** Which messages of a conversation to give. */
export interface MessagesQuery {
  /** The most messages. Default 50. */
  readonly limit?: number
  /** Messages older than this one. */
  readonly before?: Id
  /** Messages newer than this one. */
  readonly after?: Id
}
