// The changes of a conversation's history: retry, rerun, edit, adopt, fork, merge, compress, hide, stop, skip. Users
// reach them through `runtime.conversation(id)`; `ConversationHandle` extends this class with reading and settings.
// Each method reads its options, and leaves the rest to a pure rule of `rules/history`.
//
// Stays true:
// - A change is one commit of the kind `mutate`: all of it, or none.
// - Nothing is overwritten: a turn made anew is a new turn, and the old one can be adopted again.
// - A repeated change has no further effect; one that cannot be made is a ConflictError with a `details.reason`.

import { InputError } from '../base/error.ts'
import { type Json, toJson } from '../base/json.ts'
import { anything, list, type NoOptions, type OptionRules, oneOf, readOptions, text } from '../base/options.ts'
import { stackCeilings } from '../grant/ceiling.ts'
import { type Content, isBlock } from '../graph/content.ts'
import type { Draft } from '../graph/draft.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Node } from '../graph/rows.ts'
import { planAdopt } from '../rules/history/adopt.ts'
import { planFork } from '../rules/history/fork.ts'
import { planMerge } from '../rules/history/merge.ts'
import type { ChangeScope, RemakeResult } from '../rules/history/remake-turn.ts'
import { planEdit, planRerun } from '../rules/history/rerun.ts'
import { planRetryNode } from '../rules/history/retry-node.ts'
import { planSkip, planStop } from '../rules/history/stop.ts'
import { planArchive, planCompact, planVisibility, type VisibilityChange } from '../rules/history/visibility.ts'
import { planCompress, planUncompress } from '../rules/turn/compaction.ts'
import type { ObservedMessage } from '../rules/turn/observe.ts'
import type { TurnBounds } from '../rules/turn/open-turn.ts'
import type { Ledger } from '../store/ledger.ts'
import { look } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Run } from './run.ts'
import { type LaneInfo, lanesOf, versionsOf } from './tree.ts'

/** The services of the process that changes of a conversation's history need. */
export interface HistoryHome {
  /** The layers that the runtime puts on every turn that it makes. */
  readonly ceiling: readonly Json[]
  /** The bounds of a turn under these layers. */
  boundsOf(tree: TreeReader, row: Conversation, ceiling: readonly Json[]): TurnBounds
}

export interface HistoryParts {
  /** The conversation or lane whose history it is. */
  readonly id: Id
  readonly rootId: Id
  readonly ledger: Ledger
  readonly home: HistoryHome
  /** Gives a handle for a run of this store. */
  readonly attach: (runId: Id) => Promise<Run>
  /** Layers of whoever asks, beside the runtime's: they bind every turn that a change makes. Left out: none. */
  readonly caller?: readonly Json[] | undefined
  /** Rejects where its holder may begin no turn. Left out: it may. */
  readonly mayBegin?: (() => Promise<void>) | undefined
}

export interface ForkOptions {
  /**
   * `reuse` (default): keeps the outcomes of the forked turn's children; `rerun`: runs the children again from the first
   * of them on.
   */
  readonly children?: 'reuse' | 'rerun'
  /** A repeated key returns the lane that the first call made. */
  readonly key?: string
  /** The title of the lane. */
  readonly title?: string
}

/** A forked lane. Its id is accepted wherever a conversation's is. */
export interface Fork {
  readonly id: Id
  /** The run that continues from the node; null where the node ended its turn: the lane then waits for an input. */
  readonly run: Run | null
}

/** Options of a change that makes a turn anew, or adopts another one. */
export interface RemakeOptions {
  /**
   * `cancel` (default): cancels background children of the replaced part; `keep`: they continue. Either way they wake
   * nobody while the turn that started them is inactive.
   */
  readonly background?: 'cancel' | 'keep' | undefined
}

const REMAKE = { background: oneOf('cancel', 'keep') }

export interface CompressOptions {
  /** The first turn of the summary. Default: the first of the lane. */
  readonly fromRunId?: Id
  /** The last turn that is summed up. */
  readonly toRunId: Id
  /** The text that models read instead of the turns. */
  readonly summary: string
}

const FORK: OptionRules<ForkOptions> = { children: oneOf('reuse', 'rerun'), key: text, title: text }
const COMPRESS: OptionRules<CompressOptions> = { fromRunId: text, toRunId: text, summary: anything }

/**
 * Changes the history of a conversation. Each change is one commit, all or none; a repeated change has no further
 * effect. An impossible change is refused with a ConflictError: its `details.reason` names the reason, and its message
 * the alternatives.
 */
export class ConversationHistory {
  private readonly id: Id
  private readonly rootId: Id
  private readonly ledger: Ledger
  private readonly home: HistoryHome
  private readonly attach: HistoryParts['attach']
  private readonly caller: readonly Json[]
  private readonly mayBegin: HistoryParts['mayBegin']

  constructor({ id, rootId, ledger, home, attach, caller = [], mayBegin }: HistoryParts) {
    this.mayBegin = mayBegin
    this.id = id
    this.rootId = rootId
    this.ledger = ledger
    this.home = home
    this.attach = attach
    this.caller = stackCeilings(home.ceiling, caller)
  }

  /** Repeats a failed node: a model call, a tool, one child. Everything beside it keeps its result. */
  async retry(nodeId: Id, options: RemakeOptions = {}): Promise<Run> {
    const { background } = readOptions('retry()', options, REMAKE)
    return this.remake((draft, scope) => planRetryNode(draft, nodeId, { ...scope, background }))
  }

  /** Asks the model for another last answer. */
  async rerun(nodeId: Id, options: RemakeOptions = {}): Promise<Run> {
    const { background } = readOptions('rerun()', options, REMAKE)
    return this.remake((draft, scope) => planRerun(draft, nodeId, { ...scope, background }))
  }

  /** Replaces a message; the agent answers it anew, and everything after it becomes inactive. */
  async edit(nodeId: Id, content: Content, options: RemakeOptions = {}): Promise<Run> {
    const { background } = readOptions('edit()', options, REMAKE)
    const said = readSaid(content)
    return this.remake((draft, scope) => planEdit(draft, nodeId, { ...scope, background, content: said }))
  }

  /** Goes back to an answer that a rerun, a retry or an edit replaced. */
  async adopt(nodeId: Id, options: RemakeOptions = {}): Promise<void> {
    const { background } = readOptions('adopt()', options, REMAKE)
    await this.change((draft) => planAdopt(draft, nodeId, { conversationId: this.id, background }))
  }

  /** All versions of a node in this lane, oldest first. */
  async versions(nodeId: Id): Promise<readonly Node[]> {
    return look(this.ledger.store, this.rootId, (tree) => versionsOf(tree, this.id, nodeId))
  }

  /** Makes a lane that knows everything up to a node and continues on its own. This lane does not change. */
  async fork(nodeId: Id, options: ForkOptions = {}): Promise<Fork> {
    const { children = 'reuse', key, title } = readOptions('fork(nodeId, options)', options, FORK)
    const asked = { children, key: key ?? null, title: title ?? null }
    if (this.mayBegin !== undefined) await this.mayBegin()
    const { laneId, turnId } = await this.change((draft) => planFork(draft, nodeId, { ...this.scope(draft), ...asked }))
    return { id: laneId, run: turnId === null ? null : await this.attach(turnId) }
  }

  /** The lanes that were forked from this one, newest first. */
  async lanes(options: NoOptions = {}): Promise<readonly LaneInfo[]> {
    readOptions('lanes()', options, {})
    return look(this.ledger.store, this.rootId, (tree) => lanesOf(tree, this.id))
  }

  /** Merges other lanes of this conversation into this one: the agent answers with knowledge of all of them. */
  async merge(laneIds: readonly Id[], options: { readonly prompt?: string } = {}): Promise<Run> {
    const { prompt } = readOptions('merge(laneIds, options)', options, { prompt: text })
    return this.remake((draft, scope) => planMerge(draft, { ...scope, laneIds, prompt: prompt ?? null }))
  }

  /** Allows no new turns here. Open turns may finish, or are stopped. */
  async archive(options: { readonly mode?: 'finish' | 'cancel' } = {}): Promise<void> {
    const { mode = 'finish' } = readOptions('archive()', options, { mode: oneOf('finish', 'cancel') })
    await this.change((draft) => planArchive(draft, this.id, mode))
  }

  /** Shows models a summary instead of these turns; people see them as before. Returns the summary's node. */
  async compress(options: CompressOptions): Promise<Id> {
    const { fromRunId, toRunId, summary } = readOptions('compress()', options, COMPRESS)
    if (typeof summary !== 'string') throw new InputError('invalid_input', 'compress({ summary }): a text.')
    const request = { conversationId: this.id, fromRunId: fromRunId ?? null, toRunId, summary }
    return this.change((draft) => planCompress(draft, request))
  }

  /** Removes a summary, also one that the runtime made by itself. */
  async uncompress(summaryId: Id): Promise<void> {
    await this.change((draft) => planUncompress(draft, summaryId, this.id))
  }

  /** Shows models only these nodes of a turn that is over. Returns the nodes that they no longer see. */
  async compact(runId: Id, options: { readonly keep?: readonly Id[] } = {}): Promise<readonly Id[]> {
    const { keep = [] } = readOptions('compact(runId, options)', options, { keep: list })
    return this.change((draft) => planCompact(draft, runId, this.id, keep))
  }

  /** Hides a node from models; people still see it. */
  exclude(nodeId: Id): Promise<void> {
    return this.show(nodeId, 'exclude')
  }

  include(nodeId: Id): Promise<void> {
    return this.show(nodeId, 'include')
  }

  /** Hides a node from models and people; it stays in the record. */
  softDelete(nodeId: Id): Promise<void> {
    return this.show(nodeId, 'delete')
  }

  restore(nodeId: Id): Promise<void> {
    return this.show(nodeId, 'restore')
  }

  /** Stops one node, the work it waits for and everything that would come after it. */
  async stop(nodeId: Id, reason?: string): Promise<void> {
    await this.change((draft) => planStop(draft, nodeId, { conversationId: this.id, reason: reason ?? null }))
  }

  /** Leaves out a node that has not begun; the nodes after it in sequence continue. */
  async skip(nodeId: Id, reason?: string): Promise<void> {
    await this.change((draft) => planSkip(draft, nodeId, { conversationId: this.id, reason: reason ?? null }))
  }

  private async show(nodeId: Id, change: VisibilityChange): Promise<void> {
    await this.change((draft) => planVisibility(draft, nodeId, this.id, change))
  }

  private async remake(plan: (draft: Draft, scope: ChangeScope) => RemakeResult): Promise<Run> {
    if (this.mayBegin !== undefined) await this.mayBegin()
    const { turn } = await this.change((draft) => plan(draft, this.scope(draft)))
    return this.attach(turn.id)
  }

  private async change<T>(plan: (draft: Draft) => T): Promise<T> {
    const { ledger, id, rootId } = this
    const row = await look(ledger.store, rootId, (tree) => tree.conversation(id))
    if (row === undefined) throw await notFound(ledger.store, 'conversation', id)
    return ledger.commit({ kind: 'mutate', rootId, plan })
  }

  private scope(draft: Draft): ChangeScope {
    const { caller, home, id } = this
    const row = draft.conversation(id)
    const boundsUnder = (ceiling: readonly Json[]) => home.boundsOf(draft.stored, row, ceiling)
    return { conversationId: id, caller, boundsUnder }
  }
}

const ROLES = ['user', 'developer', 'agent']

/** Checks a message to observe: a text or blocks are a user's. */
export function readObserved(given: Content | ObservedMessage): ObservedMessage {
  const json = toJson(given)
  if (!json.ok) refuse(`It is not JSON: ${json.error}`)
  const isPlain = typeof json.value === 'string' || Array.isArray(json.value)
  const { role, content, ...others } = (isPlain ? { role: 'user', content: json.value } : (json.value ?? {})) as {
    readonly [key: string]: Json
  }
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) refuse(`A message has role and content, not "${unknown}".`)
  if (!ROLES.includes(String(role))) refuse(`Its role is one of ${ROLES.join(', ')}, not ${JSON.stringify(role)}.`)
  if (!isContent(content)) refuse('Its content is a text that is not empty, or a list of blocks.')
  return { role, content } as unknown as ObservedMessage
}

/** Checks a text or blocks. */
function readSaid(given: Content): Content {
  const json = toJson(given)
  const isSaid = json.ok && (json.value === '' || isContent(json.value))
  if (isSaid) return json.value as unknown as Content
  throw new InputError('invalid_input', 'edit(nodeId, content): a text, or a list of blocks.')
}

function isContent(content: Json | undefined): boolean {
  if (typeof content === 'string') return content.trim() !== ''
  return Array.isArray(content) && content.length > 0 && content.every((block) => isBlock(block as Json))
}

function refuse(message: string): never {
  throw new InputError('invalid_input', `conversation.observe(message): ${message}`)
}
