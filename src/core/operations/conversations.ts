// Operations of conversations and lanes. Those of one conversation that is open already are methods of it: `LANES`.

import type { PictureOptions } from '../audit/picture.ts'
import { NotFoundError } from '../base/error.ts'
import { PAGE_BYTES } from '../base/page/room.ts'
import type {
  EventPageQuery,
  MessagePageQuery,
  TranscriptPage,
  TurnPageQuery,
} from '../conversation/conversation-pages.ts'
import type { GraphData, GraphQuery } from '../conversation/data/graph-data.ts'
import type { ConversationInfo, ListQuery } from '../conversation/data/lists.ts'
import type { ConversationTree, LaneInfo } from '../conversation/tree.ts'
import type { UiMessage } from '../conversation/ui/ui-chunk.ts'
import type { UiPageQuery } from '../conversation/ui/ui-options.ts'
import type { UsageQuery } from '../conversation/usage-stats.ts'
import type { Content } from '../graph/content.ts'
import type { TranscriptLine } from '../graph/context.ts'
import type { Conversation, Id, Node } from '../graph/rows.ts'
import type { OpenSession } from '../rules/delegation/session.ts'
import type { ObservedMessage } from '../rules/turn/observe.ts'
import type { Tombstone } from '../store/archive.ts'
import { cursorAfter, type LimitQuery, type Page } from './form/page.ts'
import { type ConversationAnswer, conversationView } from './form/views.ts'
import type { NodePage } from './look/run-look.ts'
import { byCreation, SeenLists } from './look/seen-lists.ts'
import { operation, talkOperation } from './operation.ts'
import type { Operating } from './port.ts'
import { bodySchema, LIMIT, LIST_QUERY, OBJECT } from './schemas.ts'

const TURNS = { type: 'integer', description: 'The most turns.', minimum: 1, maximum: 1_000, default: 50 } as const

export const CONVERSATIONS = {
  /** The conversations at the root, newest first: a page of them. */
  conversations: operation({
    summary: 'The conversations that you see, newest first.',
    scope: 'read',
    http: 'GET /v1/conversations',
    query: LIST_QUERY,
    gives: ['Conversations', 'The conversations.'],
    run: (on, query: ListQuery = {}) => conversations(on, query),
    as: async ({ on, principal, placed }, query: ListQuery = {}) =>
      new SeenLists(principal).listed(await placed(query), (owned) => conversations(on, owned), byCreation),
    wire: (found: readonly ConversationInfo[], query: LimitQuery): Page<'conversations', ConversationInfo> => ({
      conversations: found,
      next: cursorAfter(found, query, ({ id }) => id),
    }),
  }),

  /** The tree of a conversation or lane: its latest runs and its lanes, what was delegated, and what they wait for. */
  tree: operation({
    summary: 'The latest runs of a conversation and its lanes, with what they delegated.',
    scope: 'read',
    of: 'conversation',
    http: 'GET /v1/conversations/{id}/tree',
    query: { limitTurns: TURNS },
    gives: ['Tree', 'The tree.'],
    run: async (on, conversationId: Id, options: { readonly limitTurns?: number } = {}): Promise<ConversationTree> => {
      await on.recordings.settled(conversationId)
      const { readTreeOf } = await import('../conversation/tree.ts')
      return readTreeOf(on.store, conversationId, options)
    },
  }),

  /** A picture of a tree for Mermaid or Graphviz: who delegated to whom (`tree`), or every node and edge (`graph`). */
  picture: operation({
    summary: 'A picture of a tree for Mermaid or Graphviz.',
    scope: 'read',
    of: 'conversation',
    http: 'GET /v1/conversations/{id}/picture',
    query: {
      of: {
        type: 'string',
        description: 'Who delegated to whom, or every node.',
        enum: ['tree', 'graph'],
        default: 'tree',
      },
      format: { type: 'string', description: 'The language.', enum: ['mermaid', 'dot'], default: 'mermaid' },
    },
    gives: { text: 'The picture.' },
    run: async ({ store }, id: Id, options: PictureOptions = {}): Promise<string> => {
      const { drawPicture } = await import('../audit/picture.ts')
      return drawPicture(store, id, options)
    },
  }),

  /** The graph of a conversation or lane as data: nodes, edges, lanes and versions, page by page, the newest turns first. */
  graph: operation({
    summary: 'Nodes, edges, lanes and versions of a conversation as data, the newest turns first.',
    scope: 'read',
    of: 'conversation',
    http: 'GET /v1/conversations/{id}/graph',
    query: {
      turns: { type: 'integer', description: 'The most turns.', minimum: 1, maximum: 1_000, default: 20 },
      before: { type: 'string', description: 'Turns older than this one.' },
    },
    gives: ['Graph', 'The graph.'],
    run: (on, conversationId: Id, options: GraphQuery = {}) => graph(on, conversationId, options),
    as: ({ on }, conversationId: Id, options: GraphQuery = {}) =>
      graph(on, conversationId, { ...options, maxBytes: PAGE_BYTES }),
  }),

  /**
   * Deletes the whole tree of a conversation at the root, or of a run of it, and leaves its tombstone: the hash of its last
   * commit, and which conversation was whose child. Refused while a run of it is open: cancel it first. (A tree that was changed
   * from outside cannot be cancelled: it goes as it is, by the id of its root.) What `export` gave before can be imported again.
   */
  forget: operation({
    summary: 'Deletes the whole tree of a conversation, and leaves its tombstone.',
    scope: 'delete',
    of: 'conversation',
    http: 'DELETE /v1/conversations/{id}',
    query: { reason: { type: 'string', description: 'The reason that the tombstone keeps.' } },
    plain: ['reason'],
    gives: ['Tombstone', 'The tombstone.'],
    run: async ({ store, ledger, feeds }, id: Id, reason: string = 'forgotten'): Promise<Tombstone> => {
      const { forget } = await import('../audit/archive.ts')
      const stone = await forget(store, id, { at: ledger.clock.now(), reason })
      feeds.closeTree(stone.rootId)
      return stone
    },
  }),
} as const

/** Operations of one conversation or lane. */
export const LANES = {
  /** The conversation: whose it is, its agent, its title and its state. */
  get: talkOperation({
    summary: 'A conversation or lane.',
    scope: 'read',
    http: 'GET /v1/conversations/{id}',
    gives: ['ConversationAnswer', 'The conversation.'],
    serve: async ({ handle }): Promise<ConversationAnswer> => {
      const row = await handle.row()
      if (row === undefined) throw new NotFoundError('not_found', 'It was deleted meanwhile.')
      return conversationView(row)
    },
  }),

  /** Its row as it is now; undefined when it was deleted. */
  row: talkOperation({
    scope: 'read',
    as: ({ handle }): Promise<Conversation | undefined> => handle.row(),
  }),

  /** The visible lines of a page, with its turns and the cursors for the pages on both sides. */
  transcriptPage: talkOperation({
    summary: 'The visible lines of a conversation, page by page.',
    scope: 'read',
    http: 'GET /v1/conversations/{id}/transcript',
    query: {
      limitTurns: TURNS,
      beforeRunId: { type: 'string', description: 'Turns older than this one.' },
      afterRunId: { type: 'string', description: 'Turns newer than this one.' },
    },
    gives: ['Transcript', 'The lines, and the cursors for the pages on both sides.'],
    as: async ({ handle }, query: TurnPageQuery = {}): Promise<TranscriptPage> => {
      const { transcriptPage } = await import('../conversation/data/bounded-pages.ts')
      return transcriptPage(handle, query)
    },
  }),

  /** The lanes that were forked from it, newest first. */
  lanes: talkOperation({
    summary: 'The lanes that were forked from a conversation.',
    scope: 'read',
    http: 'GET /v1/conversations/{id}/lanes',
    gives: ['Lanes', 'The lanes, newest first.'],
    as: ({ handle }): Promise<readonly LaneInfo[]> => handle.history.lanes(),
    wire: (lanes: readonly LaneInfo[]): Page<'lanes', LaneInfo> => ({ lanes, next: null }),
  }),

  /** The usage of this lane's model calls: in all, by model and by day. */
  usageStats: talkOperation({
    summary: 'The usage of a conversation: in all, by model and by day.',
    scope: 'read',
    http: 'GET /v1/conversations/{id}/usage',
    query: {
      of: {
        type: 'string',
        description: '`tree`: with that of all its lanes and of everything that it delegated.',
        enum: ['lane', 'tree'],
        default: 'lane',
      },
    },
    gives: ['ConversationUsage', 'The usage.'],
    as: ({ handle }, query: UsageQuery = {}) => handle.usageStats(query),
    ask: (query: Pick<UsageQuery, 'of'>) => query,
  }),

  /** The open sessions with subagents that it has started. */
  sessions: talkOperation({
    summary: 'The open sessions with subagents that a conversation has started.',
    scope: 'read',
    http: 'GET /v1/conversations/{id}/sessions',
    gives: ['Sessions', 'The sessions.'],
    as: ({ handle }): Promise<readonly OpenSession[]> => handle.sessions(),
    wire: (sessions: readonly OpenSession[]): Page<'sessions', OpenSession> => ({ sessions, next: null }),
  }),

  /** The visible messages, one by one, and the cursor for the next page. */
  messagesPage: talkOperation({
    summary: 'The visible messages of a conversation, one by one.',
    scope: 'read',
    http: 'GET /v1/conversations/{id}/messages',
    query: {
      limit: LIMIT,
      before: { type: 'string', description: 'Messages older than this one.' },
      after: { type: 'string', description: 'Messages newer than this one.' },
    },
    gives: ['Messages', 'The messages, oldest first. `next` is the `before` (or `after`) of the page that follows.'],
    as: async ({ handle }, query: MessagePageQuery = {}): Promise<Page<'messages', TranscriptLine>> => {
      const { messagesPage } = await import('../conversation/data/bounded-pages.ts')
      return messagesPage(handle, query)
    },
  }),

  /** The visible messages, one by one. */
  messagePage: talkOperation({
    scope: 'read',
    as: async ({ handle }, query: MessagePageQuery = {}): Promise<TranscriptLine[]> => {
      const { messagesPage } = await import('../conversation/data/bounded-pages.ts')
      return [...(await messagesPage(handle, query)).messages]
    },
  }),

  /** The latest turns as messages for `useChat`, as `toUIMessages` of `legate/ai-sdk` gives them. */
  uiMessages: talkOperation({
    scope: 'read',
    as: async ({ handle }, query: UiPageQuery = {}): Promise<UiMessage[]> => {
      const { uiMessages } = await import('../conversation/data/bounded-pages.ts')
      return uiMessages(handle, query)
    },
  }),

  /** The nodes that a node's model would see, and the node itself: those from a place on that fit into a page. */
  contextFor: talkOperation({
    scope: 'read',
    as: async ({ handle }, nodeId: Id, { from = 0 }: { readonly from?: number } = {}) =>
      pageOfNodes(await handle.contextFor(nodeId), from),
  }),

  /** All versions of a node in this lane, oldest first: those from a place on that fit into a page. */
  versions: talkOperation({
    scope: 'read',
    as: async ({ handle }, nodeId: Id, { from = 0 }: { readonly from?: number } = {}) =>
      pageOfNodes(await handle.history.versions(nodeId), from),
  }),

  /** Recorded events of this conversation, or of one node. */
  eventPage: talkOperation({
    scope: 'read',
    as: ({ handle }, query: EventPageQuery = {}) => handle.eventPage(query),
  }),

  /** Closes a session: you can still read it, but add no turn to it. */
  closeSession: talkOperation({
    summary: 'Closes a session with a subagent.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/sessions/{session}/close',
    body: bodySchema({}),
    as: ({ handle }, id: Id): Promise<void> => handle.closeSession(id),
  }),

  /** Adds a message without starting a turn. */
  observe: talkOperation({
    summary: 'Adds a message without starting a turn.',
    scope: 'history',
    http: 'POST /v1/conversations/{id}/observe',
    body: bodySchema(
      { role: { enum: ['user', 'developer', 'agent'] }, content: { type: ['string', 'array'], items: OBJECT } },
      ['content'],
    ),
    plain: ['content', 'role'],
    gives: ['Observed', 'The id of its node.'],
    example: { body: { content: 'By the way.' } },
    as: async ({ handle, mayStore }, message: Content | ObservedMessage): Promise<Id> => {
      await mayStore()
      return handle.observe(message)
    },
    serve: async ({ handle, mayStore }, content: Content, role: ObservedMessage['role'] = 'user') => {
      await mayStore()
      return { nodeId: await handle.observe({ role, content }) }
    },
  }),
} as const

async function conversations({ store, recordings }: Operating, query: ListQuery): Promise<ConversationInfo[]> {
  await recordings.settled()
  const { listConversations } = await import('../conversation/data/lists.ts')
  return listConversations(store, query)
}

async function graph({ store, recordings }: Operating, id: Id, options: GraphQuery): Promise<GraphData> {
  await recordings.settled(id)
  const { graphOf } = await import('../conversation/data/graph-data.ts')
  return graphOf(store, id, options)
}

async function pageOfNodes(nodes: readonly Node[], from: number): Promise<NodePage> {
  const { nodePage } = await import('./look/run-look.ts')
  return nodePage(nodes, { from, limit: nodes.length })
}
