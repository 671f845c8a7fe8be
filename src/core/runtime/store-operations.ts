import type { AnyAgent } from '../agent/definition/agent.ts'
import type { ForgottenOwner, Importing } from '../audit/archive.ts'
import type { AuditOptions, AuditReport } from '../audit/audit.ts'
import type { CopyOptions, CopyReport } from '../audit/copy.ts'
import type { RunDiff } from '../audit/diff.ts'
import type { PictureOptions } from '../audit/picture.ts'
import type { PruneOptions } from '../audit/prune.ts'
import type { RestoredOptions, RestoredReport } from '../audit/restored.ts'
import type { Why, WhyOptions } from '../audit/why.ts'
import { InputError, NotFoundError } from '../base/error.ts'
import { toJson } from '../base/json.ts'
import { after, type Later } from '../base/maybe.ts'
import { anything, flag, type OptionRules, readOptions, text } from '../base/options.ts'
import type { CheckedSchema } from '../base/schema/schema.ts'
import type { GraphData, GraphQuery } from '../conversation/data/graph-data.ts'
import type { ConversationInfo, ListQuery, RunInfo, RunsQuery } from '../conversation/data/lists.ts'
import type { NodeInfo, WholeResult } from '../conversation/data/node-info.ts'
import type { TimelineRun } from '../conversation/data/timeline.ts'
import type { DaysQuery, PricedDay } from '../conversation/data/usage-by-day.ts'
import type { Recordings, TurnEnds } from '../conversation/ends.ts'
import type { Feeds } from '../conversation/feeds.ts'
import type { HistoryHome } from '../conversation/history-handle.ts'
import type { InboxItem, InboxQuery } from '../conversation/inbox/inbox.ts'
import type { ApprovalsQuery, PendingApproval, PendingQuestion, QuestionsQuery } from '../conversation/inbox/pending.ts'
import type { SaidWord, SettleWord } from '../conversation/inbox/settle.ts'
import type { AskedOf, OtlpTraces } from '../conversation/trace/otlp.ts'
import type { OtlpOptions } from '../conversation/trace/read-otlp.ts'
import type { ConversationTree } from '../conversation/tree.ts'
import type { UsageShare } from '../conversation/usage.ts'
import type { Engine } from '../engine/engine.ts'
import { leaseTime } from '../engine/lease.ts'
import type { Draft } from '../graph/draft.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { AgentRef, Id, Node } from '../graph/rows.ts'
import type { Reply } from '../rules/delegation/question.ts'
import type { SettledCall } from '../rules/history/settle-call.ts'
import type { ApprovalAnswer } from '../rules/turn/approve.ts'
import type { Tombstone } from '../store/archive.ts'
import type { ChangePage } from '../store/feed.ts'
import type { Ledger } from '../store/ledger.ts'
import { lookWith, rootFor } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { Vocabulary } from '../tool/telemetry.ts'
import { readConversationName } from './keys/start-names.ts'
import type { AskedSources } from './look/asked-model.ts'
import type { ImportOptions } from './look/import-as.ts'
import type { ProcessesQuery, ProcessInfo } from './look/process-info.ts'
import type { ShownRequest } from './look/request-of.ts'
import type { AnswerWord, ApprovalWord, ResultWord } from './options.ts'
import type { AgentDirectory } from './resolve-agent.ts'

type NodeCode = typeof import('./lazy.ts')

export interface OperationParts {
  readonly ledger: Ledger
  readonly engine: Pick<Engine, 'id'>
  readonly recordings: Recordings
  /** Told of trees that were deleted. */
  readonly feeds: Pick<Feeds, 'closeTree'>
  readonly knowsAgent: (agent: AgentRef) => boolean
  readonly home: HistoryHome
  /** The schema of the result that the tool of a call promises; null where it promises nothing, or this process has no code of it. */
  readonly resultSchemaOf: (tree: TreeReader, node: Node) => CheckedSchema | null
  /** The rules of a run, loaded when they are needed first: at once from then on, so that nothing comes between. */
  readonly rules: () => NodeCode | Promise<NodeCode>
  /** Deletes the copies of all sessions of a tree. */
  readonly dropCopies: (rootId: Id) => Promise<void>
  /** The agents of this process, and its files. */
  readonly directory: Pick<AgentDirectory, 'all' | 'allKnown' | 'needs'>
  /** The request that the model of a node got. */
  readonly requestOf: (nodeId: Id) => Promise<ShownRequest>
  /** The names of attributes in live spans; undefined where nobody traces. */
  readonly vocabulary: Vocabulary | undefined
  /** Hears of other processes from now on. */
  readonly watch: () => void
  readonly ends: TurnEnds
}

/**
 * Operations that need rows only: any process that has the store may do them, whoever runs the agents. `Runtime` is one of them,
 * so users call these methods on it. Each loads the code it needs.
 */
export abstract class StoreOperations {
  abstract readonly store: Store
  declare private parts: OperationParts
  private readonly words: Set<Promise<void>> = new Set()

  /** Sets the parts that all methods need: a runtime makes them after itself. */
  protected operateWith(parts: OperationParts): void {
    this.parts = parts
  }

  /** Asks a run and all it started to stop. Needs rows only: the run may be another process's. */
  async cancel(runId: Id, reason?: string): Promise<void> {
    readOptions('cancel()', { reason }, { reason: text })
    const started = this.parts.recordings.ofRun(runId)?.started
    if (started !== undefined) await started
    await this.saying(this.cancelNow(runId, reason))
  }

  /** The usage of a run so far, with the share of each run it started. */
  async usage(runId: Id): Promise<UsageShare> {
    const { usageOf } = await import('../conversation/usage.ts')
    const share = await lookWith(this.store, runId, (tree) => usageOf(tree, runId))
    if (share === undefined) throw await notFound(this.store, 'run', runId)
    return share
  }

  /** The tree of a conversation or lane: its latest runs and its lanes, what was delegated, and what they wait for. */
  async tree(conversationId: Id, options: { readonly limitTurns?: number } = {}): Promise<ConversationTree> {
    await this.parts.recordings.settled(conversationId)
    const { readTreeOf } = await import('../conversation/tree.ts')
    return readTreeOf(this.store, conversationId, options)
  }

  /** The graph of a conversation or lane as data: nodes, edges, lanes and versions, page by page, the newest turns first. */
  async graph(conversationId: Id, options: GraphQuery = {}): Promise<GraphData> {
    await this.parts.recordings.settled(conversationId)
    const { graphOf } = await import('../conversation/data/graph-data.ts')
    return graphOf(this.store, conversationId, options)
  }

  /** A run and all below it in time: for each node its start, end, waits, tries, tokens and dollars. */
  async timeline(runId: Id): Promise<TimelineRun> {
    await this.parts.recordings.settled(runId)
    const turn = await lookWith(this.store, runId, (tree) => tree.turn(runId))
    if (turn === undefined) throw await notFound(this.store, 'run', runId)
    const { timelineOf } = await import('../conversation/data/timeline.ts')
    return timelineOf(this.store, turn)
  }

  /**
   * The trace of a run and everything below it as OTLP/JSON, or of all runs of a conversation. Made from rows alone: the same
   * rows give the same bytes, whoever asks, also where nobody traced the run. With `content` the instructions, tools and
   * settings of model calls are in it where this process has the code of their agents. What has not ended is left out.
   */
  async otlp(id: Id, options: OtlpOptions = {}): Promise<OtlpTraces> {
    const { askedModel } = await import('./look/asked-model.ts')
    const { requestOf } = this.parts
    const inTree: AskedSources['inTree'] = async (nodeId, read) => lookWith(this.store, nodeId, read)
    return this.traceOf(id, options, (nodeId) => askedModel({ requestOf, inTree }, nodeId))
  }

  /** A trace without the code of agents, for callers that may not see it. */
  protected async traceOf(id: Id, options: OtlpOptions, askedOf: AskedOf | null): Promise<OtlpTraces> {
    await this.parts.recordings.settled(id)
    const { readOtlp } = await import('../conversation/trace/read-otlp.ts')
    return readOtlp({ store: this.store, live: this.parts.vocabulary, askedOf }, id, options)
  }

  /** A node with its contents. Where its result is long, it is cut: `result(nodeId)` has all of it. */
  async nodeInfo(nodeId: Id): Promise<NodeInfo> {
    const { nodeInfo } = await import('../conversation/data/node-info.ts')
    return this.inNode(nodeId, nodeInfo)
  }

  /** All of a node's result, or of its message, as text. */
  async result(nodeId: Id): Promise<WholeResult> {
    const { wholeResult } = await import('../conversation/data/node-info.ts')
    return this.inNode(nodeId, wholeResult)
  }

  private async inNode<T>(nodeId: Id, read: (tree: TreeReader, node: Node) => T): Promise<T> {
    return lookWith(this.store, nodeId, (tree) => {
      const node = tree.node(nodeId)
      if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId} in this store.`)
      return read(tree, node)
    })
  }

  /**
   * The id of the conversation that `run(agent, input, { conversationKey, owner })` goes on with now. It is there once such a
   * run was started. It changes only when the conversation is deleted: the next run begins a new one.
   */
  async conversationIdFor(
    agent: Pick<AnyAgent, 'name'>,
    key: string,
    options: { readonly owner?: string } = {},
  ): Promise<Id> {
    const name = readConversationName(agent.name, key, options)
    const { findConversationId } = await import('./keys/keyed-starts.ts')
    return findConversationId(this.store, name)
  }

  /** The latest run of each conversation at the root, newest conversation first: a page of them. */
  async runs(query: RunsQuery = {}): Promise<RunInfo[]> {
    await this.parts.recordings.settled()
    const { listRuns } = await import('../conversation/data/lists.ts')
    return listRuns(this.store, query)
  }

  /** The conversations at the root, newest first: a page of them. */
  async conversations(query: ListQuery = {}): Promise<ConversationInfo[]> {
    await this.parts.recordings.settled()
    const { listConversations } = await import('../conversation/data/lists.ts')
    return listConversations(this.store, query)
  }

  /** The usage and cost of one owner, or of all, by day, agent and model. Both days are included. */
  async usageByDay(query: DaysQuery): Promise<PricedDay[]> {
    await this.parts.recordings.settled()
    const { usageByDay } = await import('../conversation/data/usage-by-day.ts')
    return usageByDay(this.store, query)
  }

  /**
   * Which trees went on after a cursor, in whichever process: something began, ended, or needs a person. `changes(null, 0)` gives
   * the cursor of now. Changes of one tree come in their order. `isCut`: some after the cursor are gone, so list the runs anew.
   */
  async changes(after: string | null, limit: number): Promise<ChangePage> {
    await this.parts.recordings.settled()
    return this.store.changes(after, limit)
  }

  /** The approvals that wait for a person, in runs of all depths of this store, whichever process runs them. */
  async approvals(query: ApprovalsQuery = {}): Promise<PendingApproval[]> {
    const { pendingApprovals } = await import('../conversation/inbox/pending.ts')
    return pendingApprovals(this.store, query)
  }

  /** The questions of agents that wait for a person, whichever process runs them: `answer(nodeId, { text })` answers one. */
  async questions(query: QuestionsQuery = {}): Promise<PendingQuestion[]> {
    const { pendingQuestions } = await import('../conversation/inbox/pending.ts')
    return pendingQuestions(this.store, query)
  }

  /**
   * A person's word on what awaits approval, the answer to a question, or the result of a call that was executed outside. Once: a
   * second word is refused.
   */
  async answer(nodeId: Id, answer: ApprovalWord | AnswerWord | ResultWord): Promise<void> {
    const say = await this.checkAnswer(nodeId, answer)
    await say()
  }

  /** Checks a word as `answer` does. Gives what says it: whoever has several checks all of them before the first is said. */
  async checkAnswer(nodeId: Id, answer: ApprovalWord | AnswerWord | ResultWord): Promise<() => Promise<void>> {
    if (typeof answer === 'object' && answer !== null && 'result' in answer) return this.checkResult(nodeId, answer)
    // Read before anything is awaited: what its holder changes later changes nothing.
    const given = readWord(answer)
    const node = await this.inNode(nodeId, (_, found) => found)
    if ('edit' in given && given.edit !== undefined) {
      const { checkEdit } = await import('../conversation/inbox/pending.ts')
      await checkEdit(node, given.edit)
    }
    return this.sayer(node, ({ planApproval, planReply }, draft) =>
      'text' in given ? planReply(draft, nodeId, given) : planApproval(draft, nodeId, given),
    )
  }

  private async checkResult(nodeId: Id, word: ResultWord): Promise<() => Promise<void>> {
    const { readResult } = await import('../conversation/inbox/outside-result.ts')
    const given = readResult(word)
    const { resultSchemaOf } = this.parts
    const { node, schema } = await this.inNode(nodeId, (tree, row) => ({
      node: row,
      schema: resultSchemaOf(tree, row),
    }))
    const result = await given(node, schema)
    return this.sayer(node, ({ planOutsideResult }, draft) => planOutsideResult(draft, nodeId, result))
  }

  private sayer({ rootId }: Node, plan: (rules: NodeCode, draft: Draft) => void): () => Promise<void> {
    return () =>
      this.saying(
        after(this.parts.rules(), (rules) =>
          this.parts.ledger.commit({ kind: 'answer', rootId, plan: (draft) => plan(rules, draft) }),
        ),
      )
  }

  /** A person's word on a call that is uncertain. Gives the run that goes on from there. */
  async settle(nodeId: Id, word: SettleWord, options: { readonly by?: string } = {}): Promise<SettledCall> {
    const { by = 'user' } = readOptions('settle(nodeId, word, options)', options, { by: text })
    return this.settleAs(nodeId, word, { by, caller: [] })
  }

  /** Like `settle`, under the layers of whoever says it. */
  protected async settleAs(nodeId: Id, word: SettleWord, who: Pick<SaidWord, 'by' | 'caller'>): Promise<SettledCall> {
    const given = toJson(word)
    const [{ settleCall }] = await Promise.all([import('../conversation/inbox/settle.ts'), this.parts.rules()])
    const done = settleCall(this.parts, nodeId, { ...who, word: given.ok ? given.value : null })
    await this.saying(done.then(() => undefined))
    return done
  }

  /** Everything in this store that needs a person, the most urgent first. */
  async inbox(query: InboxQuery = {}): Promise<InboxItem[]> {
    const [{ inboxOf }, now] = [await import('../conversation/inbox/inbox.ts'), await leaseTime(this.parts.ledger)]
    return inboxOf(this.store, now, query)
  }

  /** Resolves when every word that was given is in the rows, or refused: one that nobody awaits counts too. */
  protected async allSaid(): Promise<void> {
    await Promise.allSettled(this.words)
  }

  /** At once where the store answers at once: nothing of the run begins after the call. */
  private cancelNow(runId: Id, reason: string | undefined): Later<void> {
    return after(rootFor(this.store, runId), (rootId) =>
      rootId === undefined ? this.refuseUnknown(runId) : this.cancelIn(rootId, runId, reason),
    )
  }

  private async refuseUnknown(runId: Id): Promise<never> {
    throw await notFound(this.store, 'run', runId)
  }

  private cancelIn(rootId: Id, runId: Id, reason: string | undefined): Later<void> {
    const request = { cause: 'cancelled', reason: reason ?? null } as const
    const asked = after(this.parts.rules(), ({ planCancel }) => {
      const plan = (draft: Draft) => {
        planCancel(draft, runId, request)
        return draft.findTurn(runId) !== undefined
      }
      return this.parts.ledger.commit({ kind: 'cancel', rootId, plan })
    })
    return after(asked, (isThere) => {
      if (!isThere) return this.refuseUnknown(runId)
      const hasEnded = this.store.known?.(rootId)?.turn(runId)?.state === 'ended'
      return hasEnded ? undefined : this.recoverLost(rootId)
    })
  }

  /** Processes that are gone end nothing of it any more, and there may be no other. */
  private async recoverLost(rootId: Id): Promise<void> {
    try {
      const { recoverStopped } = await import('../engine/sweep.ts')
      await recoverStopped(this.parts.ledger, rootId, this.parts.engine.id)
    } catch {
      // It is asked to stop whatever becomes of this: whoever sweeps next does it too.
    }
  }

  private async saying(done: void | Promise<void>): Promise<void> {
    if (!(done instanceof Promise)) return
    this.words.add(done)
    try {
      await done
    } finally {
      this.words.delete(done)
    }
  }

  /**
   * Looks for everything that can be wrong with stored rows: in the whole store, or in one tree. With `repair` what can be
   * mended without losing anything is; every repair is an event of its conversation.
   */
  async audit(options: AuditOptions = {}): Promise<AuditReport> {
    const { audit } = await import('../audit/audit.ts')
    if (options.repair === true) await this.parts.rules()
    return audit(this.parts.ledger, options)
  }

  /**
   * Copies all trees and tombstones of another store into this one, with their hashes, one after the other. Where it was ended, or
   * the other store went on, say it again: it takes what is new. Tokens, webhooks, limits and sums of usage stay where they are.
   * Throws ConflictError where a tree went on in both stores.
   */
  async copyFrom(store: Store, options: CopyOptions = {}): Promise<CopyReport> {
    const { copyStore } = await import('../audit/copy.ts')
    return copyStore(store, this.parts.ledger, options)
  }

  /**
   * Makes a store that came from a backup safe to work on, once, before any process works on it: what was done after the backup is
   * not in it. Takes away all claims of before, and makes each effect that an open run was about to have `uncertain`, so that it
   * is shown and not silently done again. Refused while a process works on the store.
   */
  async restored(options: RestoredOptions = {}): Promise<RestoredReport> {
    const { restored } = await import('../audit/restored.ts')
    await this.parts.rules()
    return restored(this.parts.ledger, options, (id, why) => this.cancel(id, why))
  }

  /** All of a tree as JSON Lines, for `import` of any store. Of an open run it is a copy: let only one of the two go on. */
  async *export(rootId: Id): AsyncIterable<string> {
    const { exportTree } = await import('../audit/archive.ts')
    yield* exportTree(this.store, rootId)
  }

  /**
   * Takes a tree that `export` gave, as lines or as one text, or nothing of it. Gives the id of its root conversation. Open runs are
   * stopped before anybody sees them, unless you say `goOn`.
   */
  async import(lines: Iterable<string> | AsyncIterable<string>, options: ImportOptions = {}): Promise<Id> {
    const { goOn = false } = readOptions('import(lines)', options, { goOn: flag })
    return this.importOf(lines, { goOn })
  }

  protected async importOf(lines: Iterable<string> | AsyncIterable<string>, how: Importing): Promise<Id> {
    const { importTree } = await import('../audit/archive.ts')
    return importTree(this.parts.ledger, lines, how)
  }

  /**
   * Deletes the whole tree of a conversation at the root, or of a run of it, and leaves its tombstone: the hash of its last
   * commit, and which conversation was whose child. Refused while a run of it is open: cancel it first. (A tree that was changed
   * from outside cannot be cancelled: it goes as it is, by the id of its root.) What `export` gave before can be imported again.
   */
  async forget(id: Id, reason = 'forgotten'): Promise<Tombstone> {
    const { forget } = await import('../audit/archive.ts')
    const stone = await forget(this.store, id, { at: this.parts.ledger.clock.now(), reason })
    this.parts.feeds.closeTree(stone.rootId)
    return stone
  }

  /**
   * Cancels all runs of an owner, waits for their end, and deletes all of the owner's trees with copies of their sessions, and
   * what else the store keeps of the owner: tokens, webhooks, usage, changes. The tombstones keep ids only, so that an old `key`
   * starts nothing again. Then it deletes the files and memories on this machine that are the owner's own: those of the runtime's
   * `files`, and of the tools of all agents that this process knows. If it is ended in the middle, call it again.
   */
  async forgetOwner(owner: string, reason = 'forgotten'): Promise<ForgottenOwner> {
    return this.forgetOwnerAs(owner, reason, false)
  }

  protected async forgetOwnerAs(owner: string, reason: string, keepsDay: boolean): Promise<ForgottenOwner> {
    this.parts.watch()
    const { forgetOwnerWith } = await import('./forget-owner.ts')
    return forgetOwnerWith(this.parts, { owner, reason, keepsDay, cancel: (runId) => this.cancel(runId, reason) })
  }

  /**
   * Deletes trees without an open run: all but the newest (`keep`), those in which nothing happened for long (`olderThanMs`),
   * or either; of one `owner`, or of all. Gives the tombstones they leave.
   */
  async prune(options: PruneOptions): Promise<Tombstone[]> {
    return this.pruneOf(options)
  }

  /** Like `prune`, of agents that `maySee` only. */
  protected async pruneOf(options: PruneOptions, maySee?: (agent: string) => boolean): Promise<Tombstone[]> {
    const { prune } = await import('../audit/prune.ts')
    const stones = await prune(this.store, options, { now: this.parts.ledger.clock.now(), maySee })
    for (const { rootId } of stones) this.parts.feeds.closeTree(rootId)
    return stones
  }

  /** Why a run does not go on, or what it is doing, in words: of a run, a node of it, or a conversation's latest run. */
  async why(id: Id, options: WhyOptions = {}): Promise<Why> {
    const { processes: namesProcesses = true } = readOptions('why(id)', options, { processes: flag })
    await this.parts.recordings.settled(id)
    const { explainRun } = await import('../audit/why.ts')
    const { ledger, knowsAgent: knows } = this.parts
    return explainRun({ store: this.store, now: ledger.clock.now(), knows, namesProcesses }, id)
  }

  /** A picture of a tree for Mermaid or Graphviz: who delegated to whom (`tree`), or every node and edge (`graph`). */
  async picture(id: Id, options: PictureOptions = {}): Promise<string> {
    const { drawPicture } = await import('../audit/picture.ts')
    return drawPicture(this.store, id, options)
  }

  /** Two runs node by node, with all they delegated: what was put in, what came out, what it cost. Ids do not count. */
  async diff(firstRunId: Id, secondRunId: Id): Promise<RunDiff> {
    const { diffRuns } = await import('../audit/diff.ts')
    return diffRuns(this.store, firstRunId, secondRunId)
  }

  /** The processes that run nodes of this store. One that is gone stays until another has taken over what it left. */
  async processes(query: ProcessesQuery = {}): Promise<readonly ProcessInfo[]> {
    const { processInfos } = await import('./look/process-info.ts')
    return processInfos(this.store, query, await leaseTime(this.parts.ledger))
  }
}

/** Only an object with `text` or `allow` is a word: true, "yes" or nothing at all is none. */
function readWord(given: ApprovalWord | AnswerWord): Reply | ApprovalAnswer {
  if (typeof given !== 'object' || given === null) {
    const message = 'answer(nodeId, word) takes { allow: true } or { allow: false }, or { text } to answer a question.'
    throw new InputError('invalid_input', message)
  }
  return 'text' in given ? readReply(given) : readAnswer(given)
}

const REPLY: OptionRules<AnswerWord> = { text: anything, by: text, seen: text }

/** A person's answer to a question: words, and who said them. */
function readReply(given: AnswerWord): Reply {
  const { text: words, by = 'user', seen } = readOptions('answer(nodeId, { text })', given, REPLY)
  if (typeof words !== 'string' || words.trim() === '') {
    throw new InputError('invalid_input', 'answer(nodeId, { text }): the answer is a text that is not empty.')
  }
  return { text: words, by, ...(seen === undefined ? {} : { seen }) }
}

const WORD: OptionRules<ApprovalWord> = {
  allow: anything,
  by: text,
  reason: text,
  always: flag,
  edit: anything,
  seen: text,
}

/** Only `true` allows: whatever else stands there, by mistake or from a form, is no yes. */
function readAnswer(word: ApprovalWord): ApprovalAnswer {
  const { allow, by = 'user', reason, always, edit, seen } = readOptions('answer(nodeId, { allow })', word, WORD)
  if (typeof allow !== 'boolean') throw new InputError('invalid_input', 'answer(nodeId, { allow }): true or false.')
  const only = seen === undefined ? {} : { seen }
  const given = { allowed: allow, by, reason: reason ?? null, always: always === true, ...only }
  if (edit === undefined) return given
  if (!allow)
    throw new InputError('invalid_input', 'answer(nodeId, { edit }): only what you allow runs with new arguments.')
  const json = toJson(edit)
  if (!json.ok) throw new InputError('invalid_input', `answer(nodeId, { edit }): it is not JSON. ${json.error}`)
  return { ...given, edit: json.value }
}
