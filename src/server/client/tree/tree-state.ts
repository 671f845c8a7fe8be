import type { Json } from '../../../core/base/json.ts'
import type { Content, ToolCall, Usage } from '../../../core/graph/content.ts'
import type { DurableEvent } from '../../../core/graph/event.ts'
import type { WaitingOn } from '../../../core/graph/kinds.ts'
import type { OutcomeRecord } from '../../../core/graph/outcome.ts'
import type { Id, LaneFacts, NodeState, TurnState } from '../../../core/graph/rows.ts'
import { type List, Trie } from './trie.ts'

/**
 * The state of a tree, as its events tell it. Nobody changes a state: `reduceTree` gives the next one, which shares all parts
 * that are the same. Read it with `treeOf`, `nodesOf`, `nodeOf`, `approvalsOf` and `questionsOf`.
 */
export interface TreeState {
  /** The number of the last stored event. */
  readonly seq: number
  readonly conversations: Trie<ConversationState>
  readonly runs: Trie<RunState>
  readonly nodes: Trie<TreeNode>
  readonly approvals: Trie<TreeApproval>
  readonly questions: Trie<TreeQuestion>
}

/** A tree of which nothing is known yet. */
export function emptyTree(): TreeState {
  return {
    seq: 0,
    conversations: new Trie(),
    runs: new Trie(),
    nodes: new Trie(),
    approvals: new Trie(),
    questions: new Trie(),
  }
}

/** A conversation or a lane. */
export interface ConversationState {
  readonly id: Id
  readonly agent: string
  readonly title: string | null
  readonly archivedAt: number | null
  readonly from: { readonly laneId: Id; readonly nodeId: Id; readonly isListed: boolean } | null
  readonly skips: LaneFacts['skips']
  /** Its runs and the lanes that were forked from it, the newest first. */
  readonly runs: List<Id> | null
  readonly runCount: number
  readonly lanes: List<Id> | null
}

export interface RunState {
  readonly id: Id
  readonly conversationId: Id
  readonly agent: string
  readonly tool: string | null
  /** The run that delegated it; null at the root. */
  readonly hostId: Id | null
  readonly state: TurnState
  readonly outcome: OutcomeRecord | null
  /** The usage of its own model calls. */
  readonly own: Usage
  /** The usage of each of them, the newest first. */
  readonly usages: List<ModelUsage> | null
  readonly cancelRequested: boolean
  readonly startedAt: number | null
  readonly endedAt: number | null
  /** The runs it delegated to, and its nodes, the newest first. */
  readonly children: List<Id> | null
  readonly nodes: List<Id> | null
  /** Its nodes that may be open, the newest first, and how many of them are listed, open and running. */
  readonly open: List<Id> | null
  readonly listed: number
  readonly openCount: number
  readonly running: number
  /** The tasks of its last answer, the newest first. */
  readonly calls: List<Id> | null
  /** How many `tool-call` events its last answer still announces. */
  readonly callsLeft: number
}

/** The usage of one model call. */
export interface ModelUsage {
  readonly model: string
  readonly usage: Usage
}

/** A node as events tell it: a message, or a call of a tool. */
export interface TreeNode {
  readonly nodeId: Id
  readonly runId: Id
  readonly conversationId: Id
  /** The tool, or the kind of the node. */
  readonly what: string
  /** `waiting` for anything; else as in the node's row. */
  readonly state: 'waiting' | Exclude<NodeState, 'pending' | 'awaiting_approval'>
  readonly waits: Omit<WaitingOn, 'nodeId' | 'what'> | null
  /** The try of its model call, from 1. */
  readonly attempt: number
  /** The text so far of an answer that is written; of one that is complete, and of other nodes, see `content`. */
  readonly text: string
  readonly reasoning: string
  /** Calls that the model is writing, with their arguments so far. */
  readonly writes: readonly WrittenCall[]
  /** The whole message, or the result of the call; null until it is there. */
  readonly content: Content | null
  readonly role: 'user' | 'developer' | 'agent' | null
  /** The calls of an answer. */
  readonly calls: readonly ToolCall[]
  /** The call that the node runs; null for messages. */
  readonly call: ToolCall | null
  readonly isError: boolean
  /** The last progress that a running tool reported. */
  readonly progress: string | null
  /** The runs that the call delegated to, oldest first. */
  readonly childIds: readonly Id[]
  /** The tokens of its model calls; null where it made none. */
  readonly usage: Usage | null
  /** The model that it called last; null where it called none. */
  readonly model: string | null
  /** How its last try failed, or why it ended otherwise than finished; null where nobody said. */
  readonly trouble: string | null
  /** Its questions to people with their answers, oldest first. */
  readonly asked: readonly TreeAsked[]
  /** When it was made; for an answer that waited for calls, when the last of them had ended. */
  readonly startedAt: number
  readonly endedAt: number | null
}

/** A call that a model is writing. */
export interface WrittenCall {
  readonly callId: string
  readonly tool: string
  /** Its arguments so far. */
  readonly text: string
}

/** Something that a node asked of a person. */
export interface TreeAsked {
  /** The request that must be allowed; null for a question. */
  readonly request: string | null
  /** The arguments of the request, as they were asked for. */
  readonly input: Json
  /** The question, or the rule that wants a person's word. */
  readonly text: string
  readonly since: number
  /** The word of the person who answered; null while it waits. */
  readonly answer: TreeDecision | null
}

/** A person's word. */
export interface TreeDecision {
  /** The id of who said it. */
  readonly by: string
  readonly at: number
  /** Whether the request goes ahead; null for the answer to a question, and for a call that was settled. */
  readonly allowed: boolean | null
  /** The reason, the answer, or how an uncertain call was settled. */
  readonly text: string | null
  /** Whether it holds for the rest of the conversation. */
  readonly always: boolean
  /** Whether the arguments were changed. */
  readonly edited: boolean
}

type OfEvent = 'seq' | 'at' | 'type' | 'told' | 'nodeId' | 'parentId'

/** A request that waits for a person. */
export type TreeApproval = Omit<Extract<DurableEvent, { type: 'approval-request' }>, OfEvent> & Asked

/** A question that waits. */
export type TreeQuestion = Omit<Extract<DurableEvent, { type: 'question' }>, OfEvent> & Asked

interface Asked {
  readonly nodeId: Id
  readonly since: number
}
