// The door `legate/client`: everything for a page or a program that talks to a server.

export { visible, visibleLines, visibleProse } from '../../core/base/text.ts'
export type {
  Answers,
  ChangeAnswer,
  ConversationAnswer,
  KeptOwner,
  NodeAnswer,
  Page,
  ProblemAnswer,
  RunIds,
  ServerInfo,
  StartedRun,
  StoppedChat,
} from './answers.ts'
export {
  connect,
  type EventsPageQuery,
  type EventsQuery,
  type FromQuery,
  type LegateClient,
  type LimitQuery,
  type TokenRequest,
  type UsageDays,
} from './client.ts'
export type { CallOptions, ConversationClient, MessagesQuery } from './conversation-client.ts'
export { ClientError } from './error.ts'
export type { FeedItem, FeedOptions, FeedPlace } from './feed.ts'
export type { RunRequest } from './start.ts'
export type { ClientStreamOptions, Reconnect } from './stream.ts'
export type { ConnectOptions, QueryValues, RequestParts } from './transport.ts'
export { reduceTree } from './tree/reduce.ts'
export {
  emptyTree,
  type ModelUsage,
  type TreeApproval,
  type TreeAsked,
  type TreeNode,
  type TreeQuestion,
  type TreeState,
  type TreeWord,
  type WrittenCall,
} from './tree/tree-state.ts'
export { approvalsOf, nodeOf, nodesOf, questionsOf, runOf, treeOf, usagesOf } from './tree/view.ts'
export type { MadeWebhook, WebhookDelivery, WebhookInfo, WebhookRequest, WebhookType } from './webhook-info.ts'
