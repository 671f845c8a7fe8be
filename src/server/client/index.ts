// The door `legate/client`: everything for a page or a program that talks to a server.

export { visible, visibleLines, visibleProse } from '../../core/base/text.ts'
export type { FromQuery, LimitQuery, Page } from '../../core/operations/form/page.ts'
export type { KeptOwner, TokenRequest } from '../../core/operations/form/server-port.ts'
export type { ConversationAnswer, NodeAnswer } from '../../core/operations/form/views.ts'
export type {
  MadeWebhook,
  WebhookDelivery,
  WebhookInfo,
  WebhookRequest,
  WebhookType,
} from '../../core/operations/form/webhook-info.ts'
export type { ChangeAnswer } from '../../core/operations/history.ts'
export type { CallOptions } from '../../core/operations/operation.ts'
export type { UsageDays } from '../../core/operations/usage.ts'
export type { Answers, ProblemAnswer, RunIds, ServerInfo, StartedRun, StoppedChat } from './answers.ts'
export { connect, type EventsPageQuery, type EventsQuery, type LegateClient } from './client.ts'
export type { ConversationClient } from './conversation-client.ts'
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
  type TreeDecision,
  type TreeNode,
  type TreeQuestion,
  type TreeState,
  type WrittenCall,
} from './tree/tree-state.ts'
export { approvalsOf, nodeOf, nodesOf, questionsOf, runOf, treeOf, usagesOf } from './tree/view.ts'
