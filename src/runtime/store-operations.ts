import type { PruneOptions } from '../audit/archive.ts'
import type { AuditOptions, AuditReport } from '../audit/audit.ts'
import type { RunDiff } from '../audit/diff.ts'
import type { PictureOptions } from '../audit/picture.ts'
import type { Why } from '../audit/why.ts'
import type { Clock } from '../base/clock.ts'
import { NotFoundError } from '../base/error.ts'
import { after } from '../base/maybe.ts'
import { anything, readOptions } from '../base/options.ts'
import type { Recordings } from '../conversation/ends.ts'
import { positiveNumber } from '../conversation/pages.ts'
import type { ApprovalsQuery, PendingApproval, PendingQuestion, QuestionsQuery } from '../conversation/pending.ts'
import type { ConversationTree } from '../conversation/tree.ts'
import { type UsageShare, usageOf } from '../conversation/usage.ts'
import type { Engine } from '../engine/engine.ts'
import { isDead } from '../engine/lease.ts'
import type { Id } from '../graph/rows.ts'
import type { Tombstone } from '../store/archive.ts'
import type { Ledger } from '../store/ledger.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { AnswerWord, ApprovalWord } from './options.ts'
import { readAnswer, readReply } from './start-run.ts'

type NodeWork = typeof import('./lazy.ts')

/** What needs rows only: any process that has the store may do it, whoever runs the agents. */
export abstract class RowActs {
  abstract readonly store: Store
  protected abstract readonly ledger: Ledger
  protected abstract readonly clock: Clock
  protected abstract readonly recordings: Recordings
  protected abstract readonly engine: Pick<Engine, 'id'>
  protected abstract knowsAgent(name: string): boolean
  /** The rules of a run, loaded when they are needed first: at once from then on, so that nothing comes between. */
  protected abstract readonly rules: () => NodeWork | Promise<NodeWork>
  private readonly acts: Set<Promise<void>> = new Set()

  /** Asks a run and all it started to stop. Needs rows only: the run may be another process's. */
  async cancel(runId: Id, reason?: string): Promise<void> {
    const started = this.recordings.ofRun(runId)?.started
    if (started !== undefined) await started
    await this.acting(this.cancelNow(runId, reason))
  }

  /** What a run has used so far, with the share of each run it started. */
  usage(runId: Id): UsageShare {
    const share = usageOf(this.store, runId)
    if (share === undefined) throw notFound(this.store, 'run', runId)
    return share
  }

  /**
   * The tree of a conversation or lane in one call: its latest runs and its lanes, with states, outcomes, usage, what was
   * delegated, and what they wait for.
   */
  async tree(conversationId: Id, options: { readonly limitTurns?: number } = {}): Promise<ConversationTree> {
    const { limitTurns = 50 } = readOptions('tree(conversationId, options)', options, { limitTurns: anything })
    await this.recordings.settled(conversationId)
    const row = this.store.conversation(conversationId)
    if (row === undefined) throw notFound(this.store, 'conversation', conversationId)
    const { treeOf } = await import('../conversation/tree.ts')
    return treeOf(this.store, row, positiveNumber(limitTurns, 'limitTurns'))
  }

  /** What people are asked, in this store's runs of all depths, whoever runs them. */
  async approvals(query: ApprovalsQuery = {}): Promise<PendingApproval[]> {
    const { approvalsOf } = await import('../conversation/pending.ts')
    return approvalsOf(this.store, query)
  }

  /** What people are asked by agents, whoever runs them: `answer(nodeId, { text })` answers one. */
  async questions(query: QuestionsQuery = {}): Promise<PendingQuestion[]> {
    const { questionsOf } = await import('../conversation/pending.ts')
    return questionsOf(this.store, query)
  }

  /** A person's word on what awaits approval, or answer to a question. Once: a second word is refused. */
  async answer(nodeId: Id, answer: ApprovalWord | AnswerWord): Promise<void> {
    const node = this.store.node(nodeId)
    if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId} in this store.`)
    // Read before anything is awaited: what its holder changes later changes nothing.
    const given = 'text' in answer ? readReply(answer) : readAnswer(answer)
    const { rootId } = node
    if ('edit' in given && given.edit !== undefined) {
      const { checkEdit } = await import('../conversation/pending.ts')
      await checkEdit(node, given.edit)
    }
    const done = after(this.rules(), ({ planApproval, planReply }) =>
      this.ledger.commit({
        kind: 'answer',
        rootId,
        plan: (draft) => ('text' in given ? planReply(draft, nodeId, given) : planApproval(draft, nodeId, given)),
      }),
    )
    await this.acting(done)
  }

  /** Resolves when every word that was given is in the rows, or refused: one that nobody awaits counts too. */
  protected async acted(): Promise<void> {
    await Promise.allSettled(this.acts)
  }

  private cancelNow(runId: Id, reason: string | undefined): void | Promise<void> {
    const turn = this.store.turn(runId)
    if (turn === undefined) throw notFound(this.store, 'run', runId)
    const { rootId } = turn
    const request = { cause: 'cancelled', reason: reason ?? null } as const
    const asked = after(this.rules(), ({ planCancel }) =>
      this.ledger.commit({ kind: 'cancel', rootId, plan: (draft) => planCancel(draft, runId, request) }),
    )
    return after(asked, () => this.recoverLost(rootId))
  }

  /** Processes that are gone end nothing of it any more, and there may be no other. */
  private async recoverLost(rootId: Id): Promise<void> {
    try {
      const { recoverStopped } = await import('../engine/sweep.ts')
      await recoverStopped(this.ledger, rootId, this.engine.id)
    } catch {
      // It is asked to stop whatever becomes of this: whoever sweeps next does it too.
    }
  }

  private async acting(done: void | Promise<void>): Promise<void> {
    if (!(done instanceof Promise)) return
    this.acts.add(done)
    try {
      await done
    } finally {
      this.acts.delete(done)
    }
  }

  /**
   * Looks for everything that can be wrong with stored rows: in the whole store, or in one tree. With `repair` what can be
   * mended without losing anything is; every repair is an event of its conversation.
   */
  async audit(options: AuditOptions = {}): Promise<AuditReport> {
    const { audit } = await import('../audit/audit.ts')
    if (options.repair === true) await this.rules()
    return audit(this.ledger, options)
  }

  /**
   * All of a tree as JSON Lines, one line at a time, for `import` of any store. Of a run that is not over it is a copy as
   * it stands: let only one of the two go on.
   */
  async *export(rootId: Id): AsyncIterable<string> {
    const { exportTree } = await import('../audit/archive.ts')
    yield* await exportTree(this.store, rootId)
  }

  /**
   * Takes a tree that `export` gave, as lines or as one text, with the same hashes, or nothing of it. Gives the id of its root
   * conversation.
   */
  async import(lines: Iterable<string> | AsyncIterable<string>): Promise<Id> {
    const { importTree } = await import('../audit/archive.ts')
    return importTree(this.ledger, lines)
  }

  /**
   * Deletes the whole tree of a conversation at the root, or of a run of it, and leaves its tombstone: the hash of its last
   * commit, and which conversation was whose child. Refused while a run of it is open: cancel it first. (A tree that was changed
   * from outside cannot be cancelled: it goes as it is, by the id of its root.) What `export` gave before can be imported again.
   */
  async forget(id: Id, reason = 'forgotten'): Promise<Tombstone> {
    const { forget } = await import('../audit/archive.ts')
    return forget(this.store, id, { at: this.clock.now(), reason })
  }

  /**
   * Deletes trees without an open run: all but the newest (`keep`), those in which nothing happened for long (`olderThanMs`),
   * or either. Gives the tombstones they leave.
   */
  async prune(options: PruneOptions): Promise<Tombstone[]> {
    const { prune } = await import('../audit/archive.ts')
    return prune(this.store, options, this.clock.now())
  }

  /** Why a run does not go on, or what it is doing, in words: of a run, a node of it, or a conversation's latest run. */
  async why(id: Id): Promise<Why> {
    await this.recordings.settled(id)
    const { explainRun } = await import('../audit/why.ts')
    return explainRun({ store: this.store, now: this.clock.now(), knows: (agent) => this.knowsAgent(agent) }, id)
  }

  /**
   * A picture of a tree, for Mermaid or Graphviz: who delegated to whom (`tree`), or every node and edge (`graph`), of all
   * conversations or of one.
   */
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
  processes(): readonly { readonly id: Id; readonly pid: number; readonly isAlive: boolean }[] {
    const now = this.clock.now()
    return this.store.engines().map((engine) => ({ id: engine.id, pid: engine.pid, isAlive: !isDead(engine, now) }))
  }
}
