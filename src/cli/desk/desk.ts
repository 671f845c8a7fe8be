// The desk: everything that commands need of runs, wherever the runs are. The one seam between a store of this machine and a
// server elsewhere.
//
// Called by: every command that looks at runs, answers or changes them. `open-desk` chooses which desk they get.
// Must stay true:
//   - A command does not know which desk it has: same output, same exit code.
//   - A runtime is a desk as it is. `remote-desk` is the other one.

import type { Conversation, ConversationHistory, StoreReader, Tombstone, TreeReader } from '../../doors/rows.ts'
import type { Id, Principal, RunEvent, RunOutcome, Runtime, StoreError } from '../../index.ts'

/** Reads rows, as a store does. */
export interface DeskRows
  extends Pick<
    StoreReader,
    | ('tree' | 'near' | 'rootOf' | 'findIds' | 'roots' | 'openRoots' | 'openTurns')
    | ('conversations' | 'events' | 'blocks' | 'claimedBy')
  > {
  /** One error for each tree that was found to be changed from outside. */
  tampered?(): readonly StoreError[]
  readonly archive?: DeskArchive
  /** Many trees in one answer, without the nodes that have ended, where asking one by one takes long. */
  newestTrees?(query: { readonly limit: number; readonly before?: Id }): Promise<readonly DeskTree[]>
}

/** A tree of a list. */
export interface DeskTree {
  readonly rootId: Id
  readonly tree: TreeReader
  conversations(): Promise<readonly Conversation[]>
  /** The tree with its ended nodes and all of its turns. */
  whole(): Promise<TreeReader>
}

/** Reads the tombstones of deleted trees. */
export interface DeskArchive {
  tombstone(id: Id): Tombstone | undefined | Promise<Tombstone | undefined>
  tombstones(): readonly Tombstone[] | Promise<readonly Tombstone[]>
}

/** A run that somebody follows. */
export interface DeskRun extends AsyncIterable<RunEvent> {
  readonly id: Id
  readonly conversationId: Id
  readonly result: Promise<RunOutcome<unknown>>
  events(options: { readonly after: number }): AsyncIterable<RunEvent>
  cancel(reason?: string): Promise<void>
}

/** A conversation that commands read and change. */
export interface DeskConversation extends Pick<Awaited<ReturnType<Runtime['conversation']>>, 'id' | 'transcriptPage'> {
  readonly history: DeskHistory
}

/** The changes of history that commands make. */
export interface DeskHistory {
  edit(nodeId: Id, text: string): Promise<{ readonly id: Id }>
  retry(nodeId: Id): Promise<{ readonly id: Id }>
  fork(
    nodeId: Id,
    options: NonNullable<Parameters<ConversationHistory['fork']>[1]>,
  ): Promise<{ readonly id: Id; readonly run: { readonly id: Id } | null }>
}

type DeskActs = Pick<
  Runtime,
  | 'approvals'
  | 'questions'
  | 'inbox'
  | 'answer'
  | 'settle'
  | 'cancel'
  | 'why'
  | 'diff'
  | 'audit'
  | 'export'
  | 'otlp'
  | 'import'
  | 'forget'
  | 'forgetOwner'
  | 'prune'
  | 'picture'
  | 'processes'
>

/** The runs of a store or of a server, for commands. */
export interface Desk extends DeskActs {
  readonly store: DeskRows
  attach(runId: Id): Promise<DeskRun>
  conversation(id: Id): Promise<DeskConversation>
  /** Lets rows go on that need no code, such as the end of a cancelled run whose process is gone. */
  resume(): Promise<unknown>
  /** The name under everything that is said at this desk, where the desk itself knows it. */
  readonly speaker?: () => Promise<string>
  /** Throws where a token lacks the scope; at a store of this machine nobody lacks one. */
  readonly requireScope?: (scope: Principal['scopes'][number]) => Promise<void>
}
