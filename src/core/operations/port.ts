// The ports through which operations reach a runtime, and whoever asks.
//
// Owns:      the ports: `Operating` for a runtime, `Admitted` for a principal, `Talker` for a principal in one conversation.
// Called by: every operation. `runtime/operated`, `runtime/scoped-runtime` and `runtime/scoped-conversation` implement them.
// Must stay true:
//   - An operation reaches a principal's rows through its port alone, so all operations ask the same questions (I12).

import type { AgentCore, AnyAgent } from '../agent/definition/agent.ts'
import type { DayRequest } from '../agent/step/within-day.ts'
import type { Json } from '../base/json.ts'
import type { CheckedSchema } from '../base/schema/schema.ts'
import type { ConversationHandle } from '../conversation/conversation.ts'
import type { Recordings, TurnEnds } from '../conversation/ends.ts'
import type { Feeds } from '../conversation/feeds.ts'
import type { HistoryHome } from '../conversation/history-handle.ts'
import type { Engine } from '../engine/engine.ts'
import type { Explanation } from '../grant/decide.ts'
import type { Principal, Scope } from '../grant/principal.ts'
import type { Draft } from '../graph/draft.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { AgentRef, Conversation, Id, Node } from '../graph/rows.ts'
import type { OutsideResult, Reply } from '../rules/delegation/question.ts'
import type { ApprovalAnswer } from '../rules/turn/approve.ts'
import type { Ledger } from '../store/ledger.ts'
import type { Store } from '../store/store.ts'
import type { Vocabulary } from '../tool/telemetry.ts'
import type { OwnerStore } from '../tool/tool.ts'
import type { AgentInfo } from './look/agent-info.ts'
import type { NeedsParts } from './look/needs.ts'
import type { ShownRequest } from './look/request-of.ts'

/** The rules that operations ask for. A runtime loads them with the code that runs nodes. */
export interface OperatingRules {
  planApproval(draft: Draft, nodeId: Id, answer: ApprovalAnswer): void
  planReply(draft: Draft, nodeId: Id, reply: Reply): void
  planOutsideResult(draft: Draft, nodeId: Id, result: OutsideResult): void
  ownerStoresOf(agents: Iterable<AgentCore>, parts: NeedsParts): readonly Pick<OwnerStore, 'forget'>[]
}

/** The parts of a runtime that operations work with. */
export interface Operating {
  readonly store: Store
  readonly ledger: Ledger
  readonly engine: Pick<Engine, 'id'>
  readonly recordings: Recordings
  readonly ends: TurnEnds
  /** Told of trees that were deleted. */
  readonly feeds: Pick<Feeds, 'closeTree'>
  readonly knowsAgent: (agent: AgentRef) => boolean
  readonly home: HistoryHome
  /** The schema of the result that the tool of a call promises; null where it promises nothing, or this process has no code of it. */
  readonly resultSchemaOf: (tree: TreeReader, node: Node) => CheckedSchema | null
  /** The rules of a run, loaded when they are needed first: at once from then on, so that nothing comes between. */
  readonly rules: () => OperatingRules | Promise<OperatingRules>
  /** Deletes the copies of all sessions of a tree. */
  readonly dropCopies: (rootId: Id) => Promise<void>
  /** The agents of this process, and its files. */
  readonly directory: AgentsHere
  /** The names of attributes in live spans; undefined where nobody traces. */
  readonly vocabulary: Vocabulary | undefined
  /** Hears of other processes from now on. */
  readonly watch: () => void
  /** Keeps the runtime open until a word is in the rows, or refused: one that nobody awaits counts too. */
  readonly saying: (done: void | Promise<void>) => Promise<void>
  readonly cancel: (runId: Id, reason?: string) => Promise<void>
  readonly agents: () => Promise<readonly AgentInfo[]>
  readonly requestOf: (nodeId: Id) => Promise<ShownRequest>
  readonly explain: (of: Id | AnyAgent, request: string) => Promise<Explanation>
}

/** The agents that a process has code for. */
export interface AgentsHere {
  all(): readonly AgentCore[]
  /** Resolves when all of them are known. */
  allKnown(): Promise<void>
  readonly needs: NeedsParts
}

/** Rows of the kinds that an id may name. */
export type Named = 'run' | 'conversation' | 'node'

/** A principal that asks: what it may, and what it reaches. */
export interface Asking {
  readonly principal: Principal
  /** The principal's layers, frozen. */
  readonly layers: readonly Json[]
  /** Its layers as they bind what it begins: with one that keeps programs from it, unless the runtime trusts it. */
  readonly bound: readonly Json[]
  readonly on: Operating
  may(scope: Scope): boolean
  /** Throws a DeniedError unless the principal has the scope. */
  require(scope: Scope): void
  /** Throws a DeniedError unless the principal sees all owners and agents. */
  requireAll(): void
  /** Checks the scope, then takes an id to the root of its tree: the same reads and the same error, whoever has it. */
  enter(scope: Scope, what: Named, id: Id): Promise<Conversation>
  /** A cursor that it may not see is an unknown one. */
  placed<Query extends { readonly before?: Id }>(query: Query): Promise<Query>
  /** Throws where the day of somebody whose limit is among the layers is used up. */
  requireDay(owner: string | null, request?: DayRequest): Promise<void>
  /** The agent of this name, or the agent itself. Throws where the principal may not start it. */
  agentToStart(agent: AnyAgent | string): AnyAgent
  /** May what it starts start programs? */
  trusted(): boolean
  /** Does the program offer an agent of this name? */
  isOffered(name: string): boolean
  /** A conversation that may be read: its changes are bound by the principal. */
  talk(id: Id): Promise<ConversationHandle>
}

/** A principal that has passed the checks of an operation. */
export interface Admitted extends Asking {
  /** The root of the tree that the id leads to. Throws where the operation takes no id of a row. */
  readonly root: Conversation
}

/** A principal in a conversation that it may read. */
export interface Talker {
  readonly handle: ConversationHandle
  /** Rejects where the day of somebody who is limited is full. */
  readonly mayStore: () => Promise<void>
}
