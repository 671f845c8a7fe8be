import type { Json } from '../base/json.ts'
import { readOptions, record } from '../base/options.ts'
import type { ConversationHandle } from '../conversation/conversation.ts'
import type {
  EventPageQuery,
  MessagePage,
  MessagePageQuery,
  TranscriptPage,
  TurnPageQuery,
} from '../conversation/conversation-pages.ts'
import type { ConversationHistory } from '../conversation/history-handle.ts'
import type { LaneInfo } from '../conversation/tree.ts'
import type { UiMessage } from '../conversation/ui/ui-chunk.ts'
import type { UiPageQuery } from '../conversation/ui/ui-options.ts'
import type { UsageQuery, UsageStats } from '../conversation/usage-stats.ts'
import type { Grant } from '../grant/grant.ts'
import { narrowedCeiling, type Principal, type Scope } from '../grant/principal.ts'
import type { Content } from '../graph/content.ts'
import type { TranscriptLine } from '../graph/context.ts'
import type { DurableEvent } from '../graph/event.ts'
import type { Conversation, Id, Node } from '../graph/rows.ts'
import type { OpenSession } from '../rules/delegation/session.ts'
import type { ObservedMessage } from '../rules/turn/observe.ts'
import type { NodePage } from './look/run-look.ts'

/** On whose behalf a conversation is changed. */
export interface OnBehalf {
  readonly by: Principal
  /** The layers of the turns that it begins. */
  readonly caller: readonly Json[]
  /** Throws where its runs may not be cancelled. */
  readonly mayCancel: () => void
  /** Rejects where no turn may begin. */
  readonly mayBegin: () => Promise<void>
}

/** How a conversation is opened. */
export interface ConversationOptions {
  /** Narrows everything that its changes begin. Default: nothing. */
  readonly grant?: Grant
}

/** The layers of what is begun in a conversation that was opened so. */
export function narrowedLayers(layers: readonly Json[], options: ConversationOptions): readonly Json[] {
  const { grant } = readOptions('conversation(id, options)', options, { grant: record })
  return grant === undefined ? layers : narrowedCeiling(layers, grant, 'conversation(id, { grant })')
}

/**
 * A conversation that a principal may read. `history` and everything else that changes it need the scope `history`. See
 * `ConversationHandle` for each method.
 */
export class ScopedConversation {
  readonly id: Id
  readonly rootId: Id
  private readonly handle: ConversationHandle
  private readonly require: (scope: Scope) => void
  /** Rejects where the day of somebody who is limited is full. */
  private readonly mayStore: () => Promise<void>

  constructor(handle: ConversationHandle, require: (scope: Scope) => void, mayStore: () => Promise<void>) {
    this.handle = handle
    this.mayStore = mayStore
    this.require = require
    this.id = handle.id
    this.rootId = handle.rootId
  }

  /** Changes what was said and done. Throws a DeniedError without the scope `history`. */
  get history(): ConversationHistory {
    this.require('history')
    return this.handle.history
  }

  /** Its row as it is now; undefined when it was deleted. */
  row(): Promise<Conversation | undefined> {
    return this.handle.row()
  }

  /** The visible lines of a page, with its turns and the cursors for the pages on both sides. */
  async transcriptPage(query: TurnPageQuery = {}): Promise<TranscriptPage> {
    return (await import('../conversation/data/bounded-pages.ts')).transcriptPage(this.handle, query)
  }

  /** The visible messages, one by one. */
  async messagePage(query: MessagePageQuery = {}): Promise<TranscriptLine[]> {
    return [...(await this.messagesPage(query)).messages]
  }

  /** The visible messages, one by one, and the cursor for the next page. */
  async messagesPage(query: MessagePageQuery = {}): Promise<MessagePage> {
    return (await import('../conversation/data/bounded-pages.ts')).messagesPage(this.handle, query)
  }

  /** The latest turns as messages for `useChat`, as `toUIMessages` of `legate/ai-sdk` gives them. */
  async uiMessages(query: UiPageQuery = {}): Promise<UiMessage[]> {
    return (await import('../conversation/data/bounded-pages.ts')).uiMessages(this.handle, query)
  }

  /** The nodes that a node's model would see, and the node itself: those from a place on that fit into a page. */
  async contextFor(nodeId: Id, { from = 0 }: { readonly from?: number } = {}): Promise<NodePage> {
    return pageOfNodes(await this.handle.contextFor(nodeId), from)
  }

  /** Recorded events of this conversation, or of one node. */
  eventPage(query: EventPageQuery = {}): Promise<DurableEvent[]> {
    return this.handle.eventPage(query)
  }

  /** The usage of this lane's model calls: in all, by model and by day. */
  usageStats(query: UsageQuery = {}): Promise<UsageStats> {
    return this.handle.usageStats(query)
  }

  /** The open sessions with subagents that it has started. */
  sessions(): Promise<readonly OpenSession[]> {
    return this.handle.sessions()
  }

  /** The lanes that were forked from it, newest first. */
  lanes(): Promise<readonly LaneInfo[]> {
    return this.handle.history.lanes()
  }

  /** All versions of a node in this lane, oldest first: those from a place on that fit into a page. */
  async versions(nodeId: Id, { from = 0 }: { readonly from?: number } = {}): Promise<NodePage> {
    return pageOfNodes(await this.handle.history.versions(nodeId), from)
  }

  /** Adds a message without starting a turn. */
  async observe(message: Content | ObservedMessage): Promise<Id> {
    this.require('history')
    await this.mayStore()
    return this.handle.observe(message)
  }

  /** Closes a session: you can still read it, but add no turn to it. */
  async closeSession(id: Id): Promise<void> {
    this.require('history')
    await this.handle.closeSession(id)
  }
}

async function pageOfNodes(nodes: readonly Node[], from: number): Promise<NodePage> {
  const { nodePage } = await import('./look/run-look.ts')
  return nodePage(nodes, { from, limit: nodes.length })
}
