// The types of answers, as the client gives them: the page knows nothing of the server but its client.

import type { ConversationClient, FeedItem, LegateClient, treeOf } from 'legate/client'

type Answer<Method extends (...given: never[]) => Promise<unknown>> = Awaited<ReturnType<Method>>

export type InboxItem = Answer<LegateClient['inbox']>['items'][number]
export type Approval = Extract<InboxItem, { readonly type: 'approval' }>['approval']
export type Question = Extract<InboxItem, { readonly type: 'question' }>['question']
export type RunInfo = Answer<LegateClient['runs']>['runs'][number]
export type RunLook = Answer<LegateClient['look']>
export type Why = Answer<LegateClient['why']>
export type WhyReason = Why['reasons'][number]
export type Explanation = Answer<LegateClient['explainNode']>
export type ShownRequest = Answer<LegateClient['requestOf']>
export type AgentInfo = Answer<LegateClient['agent']>
export type ServerInfo = Answer<LegateClient['info']>
export type NodeInfo = Answer<LegateClient['nodeInfo']>
export type NodeAnswer = Answer<LegateClient['versions']>['nodes'][number]
export type ConversationAnswer = Answer<ConversationClient['get']>
export type UsageStats = Answer<ConversationClient['usageStats']>
export type ConversationTree = NonNullable<ReturnType<typeof treeOf>>
export type RunTree = ConversationTree['runs'][number]
export type OutcomeRecord = NonNullable<RunTree['outcome']>
export type Status = OutcomeRecord['status']
export type WaitingOn = RunTree['waitingOn'][number]
export type RunEvent = Extract<FeedItem, { readonly type: 'tree' }>['data']['event']
export type TreeChange = Extract<FeedItem, { readonly type: 'change' }>['data']
export type DurableEvent = Answer<LegateClient['eventPage']>['events'][number]
export type Timeline = Answer<LegateClient['timeline']>
export type AuditReport = Answer<LegateClient['audit']>
export type TokenInfo = Answer<LegateClient['tokens']>['tokens'][number]
export type RunDiff = Answer<LegateClient['diff']>
export type NodeDiff = RunDiff['changes'][number]
export type NodeFacts = NonNullable<NodeDiff['first']>
export type TimelineRun = Answer<LegateClient['timeline']>
export type GraphData = Answer<LegateClient['graph']>
export type GraphNode = GraphData['nodes'][number]
export type ProcessInfo = Answer<LegateClient['processes']>['processes'][number]
