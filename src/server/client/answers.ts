// The answers of the server. OpenAPI, the reference page and the tests have their schemas from these types: after a change
// run `node scripts/reference.mjs`.

import type { ForgottenOwner } from '../../core/audit/archive.ts'
import type { AuditReport } from '../../core/audit/audit.ts'
import type { RunDiff } from '../../core/audit/diff.ts'
import type { Why } from '../../core/audit/why.ts'
import type { Json } from '../../core/base/json.ts'
import type { TranscriptPage } from '../../core/conversation/conversation-pages.ts'
import type { GraphData } from '../../core/conversation/data/graph-data.ts'
import type { ConversationInfo, RunInfo } from '../../core/conversation/data/lists.ts'
import type { NodeInfo } from '../../core/conversation/data/node-info.ts'
import type { TimelineRun } from '../../core/conversation/data/timeline.ts'
import type { PricedDay } from '../../core/conversation/data/usage-by-day.ts'
import type { InboxItem } from '../../core/conversation/inbox/inbox.ts'
import type { PendingApproval, PendingQuestion } from '../../core/conversation/inbox/pending.ts'
import type { OtlpTraces } from '../../core/conversation/trace/otlp.ts'
import type { ConversationTree, LaneInfo } from '../../core/conversation/tree.ts'
import type { UiMessage } from '../../core/conversation/ui/ui-chunk.ts'
import type { UsageShare } from '../../core/conversation/usage.ts'
import type { UsageStats } from '../../core/conversation/usage-stats.ts'
import type { Explanation } from '../../core/grant/decide.ts'
import type { Principal } from '../../core/grant/principal.ts'
import type { MadeToken, RevokedTokens, TokenInfo } from '../../core/grant/token-info.ts'
import type { TranscriptLine } from '../../core/graph/context.ts'
import type { RunEvent } from '../../core/graph/event.ts'
import type { Outcome, OutcomeRecord } from '../../core/graph/outcome.ts'
import type { Conversation, Id, Node } from '../../core/graph/rows.ts'
import type { OpenSession } from '../../core/rules/delegation/session.ts'
import type { SettledCall } from '../../core/rules/history/settle-call.ts'
import type { AgentInfo } from '../../core/runtime/look/agent-info.ts'
import type { FoundIds, TreeEvents } from '../../core/runtime/look/find.ts'
import type { ProcessInfo } from '../../core/runtime/look/process-info.ts'
import type { ShownRequest } from '../../core/runtime/look/request-of.ts'
import type { RunEventPage, RunLook } from '../../core/runtime/look/run-look.ts'
import type { TreeData } from '../../core/runtime/look/tree-data.ts'
import type { Tombstone } from '../../core/store/archive.ts'
import type { FeedItem } from './feed.ts'
import type { MadeWebhook, WebhookDelivery, WebhookInfo } from './webhook-info.ts'

/** Every answer of the API, by the name that OpenAPI has for its schema. */
export interface Answers {
  readonly Problem: ProblemAnswer
  readonly Server: ServerInfo
  readonly Agent: AgentInfo
  readonly Agents: Page<'agents', AgentInfo>
  readonly Explanation: Explanation
  readonly Run: RunLook
  readonly RunStart: StartedRun | RunIds
  readonly Runs: Page<'runs', RunInfo>
  readonly RunEvent: RunEvent
  readonly RunEvents: RunEventPage
  readonly Result: ResultAnswer
  readonly Why: Why
  readonly RunUsage: UsageShare
  readonly Timeline: TimelineRun
  readonly Nodes: Page<'nodes', NodeAnswer>
  readonly Diff: RunDiff
  readonly ConversationAnswer: ConversationAnswer
  readonly Conversations: Page<'conversations', ConversationInfo>
  readonly Transcript: TranscriptPage
  readonly Tree: ConversationTree
  readonly Graph: GraphData
  readonly Lanes: Page<'lanes', LaneInfo>
  readonly ConversationUsage: UsageStats
  readonly Sessions: Page<'sessions', OpenSession>
  readonly Messages: Page<'messages', TranscriptLine>
  readonly Observed: { readonly nodeId: Id }
  readonly Change: ChangeAnswer
  readonly Summary: { readonly summaryId: Id }
  readonly Hidden: { readonly nodeIds: readonly Id[] }
  readonly FoundIds: FoundIds
  readonly Rows: TreeData
  readonly Trees: Page<'trees', TreeData>
  readonly TreeEvents: TreeEvents
  readonly NodeInfo: NodeInfo
  readonly Request: ShownRequest
  readonly Inbox: Page<'items', InboxItem>
  readonly Approvals: Page<'approvals', PendingApproval>
  readonly Questions: Page<'questions', PendingQuestion>
  readonly SettledCall: SettledCall
  readonly FeedItem: FeedItem
  readonly Tokens: Page<'tokens', TokenInfo>
  readonly MadeToken: MadeToken
  readonly RevokedTokens: RevokedTokens
  readonly Webhook: WebhookInfo
  readonly Webhooks: Page<'webhooks', WebhookInfo>
  readonly MadeWebhook: MadeWebhook
  readonly Delivery: WebhookDelivery
  readonly Deliveries: Page<'deliveries', WebhookDelivery>
  readonly Owner: KeptOwner
  readonly ForgottenOwner: ForgottenOwner
  readonly Imported: { readonly conversationId: Id }
  readonly Tombstone: Tombstone
  readonly Tombstones: Page<'tombstones', Tombstone>
  readonly UsageByDay: Page<'usage', PricedDay>
  readonly Processes: Page<'processes', ProcessInfo>
  readonly Audit: AuditReport
  readonly Traces: OtlpTraces
  readonly Capabilities: AgUiCapabilities
  readonly ChatMessages: readonly UiMessage[]
  readonly StoppedChat: StoppedChat
}

/** The answer to everything that goes wrong, by RFC 9457. */
export interface ProblemAnswer {
  /** A name of the problem: `urn:legate:problem:<code>`. */
  readonly type: string
  readonly title: string
  readonly status: number
  /** One line for people: what is wrong. */
  readonly detail: string
  /** An error code of the library, or one of HTTP, such as `unauthenticated`. */
  readonly code: string
  /** Advice: your next step. */
  readonly advice?: string
  /** More about the problem, such as who answered first. */
  readonly details?: Json
}

/** A run that was just started. */
export interface StartedRun extends Omit<RunLook, 'outcome'> {
  /** How it ended, with its text and its output for who waited for it; null while it goes on. */
  readonly outcome: (OutcomeRecord & Partial<Outcome>) | null
}

/** A run that was started by somebody who may not read it. */
export interface RunIds {
  readonly runId: Id
  readonly conversationId: Id
}

/** A chat that was asked to stop. */
export interface StoppedChat {
  /** How many runs were asked to stop. */
  readonly stopped: number
}

/** A page of a list: the items under their name, and where the next page begins; null where there is none. */
export type Page<Name extends string, Item> = { readonly [Key in Name]: readonly Item[] } & {
  readonly next: string | number | null
}

/** A server as a caller sees it. */
export interface ServerInfo {
  readonly version: string
  /** Who you are, and what you may do. */
  readonly principal: Principal
  /** The most that the server lets you ask for. */
  readonly limits: { readonly [name: string]: number }
}

/** How long trees of an owner are kept, in days after their last activity. */
export interface KeptOwner {
  readonly owner: string
  readonly keepDays: number | null
}

/** A run that was asked for its outcome; null while it has not ended. */
export interface ResultAnswer {
  readonly runId: Id
  readonly outcome: Outcome | null
}

/** A run that a change of history began; null where the change began none. */
export interface ChangeAnswer {
  readonly runId: Id | null
  readonly conversationId: Id
}

/** A node as lists show it. */
export interface NodeAnswer
  extends Pick<
    Node,
    | 'id'
    | 'rootId'
    | 'conversationId'
    | 'laneId'
    | 'ordinal'
    | 'kind'
    | 'purpose'
    | 'state'
    | 'input'
    | 'output'
    | 'preview'
    | 'failure'
    | 'versionSet'
    | 'attempt'
    | 'retryOf'
    | 'blockers'
    | 'wait'
    | 'wakeAt'
    | 'effect'
    | 'usage'
    | 'marks'
    | 'createdAt'
    | 'startedAt'
    | 'endedAt'
    | 'metadata'
  > {
  readonly runId: Id
}

/** A conversation or a lane as the API shows it. */
export interface ConversationAnswer
  extends Pick<
    Conversation,
    | 'id'
    | 'rootId'
    | 'path'
    | 'owner'
    | 'title'
    | 'depth'
    | 'turnCount'
    | 'createdAt'
    | 'parentConversationId'
    | 'groups'
  > {
  readonly agent: string
  readonly activeRunId: Id | null
  readonly parentRunId: Id | null
  readonly parentTaskId: Id | null
  readonly archivedAt: number | null
  readonly forkedAt: Id | null
}

/** The abilities of an agent, as AG-UI says them. */
interface AgUiCapabilities {
  readonly identity: { readonly name: string; readonly description: string; readonly provider: string }
  readonly transport: { readonly streaming: boolean }
  readonly tools: { readonly supported: boolean }
  readonly output: { readonly structuredOutput: boolean }
  readonly state: { readonly snapshots: boolean; readonly deltas: boolean }
  readonly multiAgent: {
    readonly supported: boolean
    readonly delegation: boolean
    readonly subagents: readonly { readonly name: string }[]
  }
  readonly reasoning: { readonly supported: boolean; readonly streaming: boolean }
  readonly humanInTheLoop: {
    readonly supported: boolean
    readonly approvals: boolean
    readonly interrupts: boolean
    readonly approveWithEdits: boolean
  }
}
