import type { PruneOptions } from '../audit/archive.ts'
import type { AuditOptions, AuditReport } from '../audit/audit.ts'
import type { RunDiff } from '../audit/diff.ts'
import type { PictureOptions } from '../audit/picture.ts'
import type { Why } from '../audit/why.ts'
import type { Clock } from '../base/clock.ts'
import { InputError, NotFoundError } from '../base/error.ts'
import { toJson } from '../base/json.ts'
import { after, type Later } from '../base/maybe.ts'
import { anything, flag, type OptionRules, readOptions, text } from '../base/options.ts'
import type { Recordings } from '../conversation/ends.ts'
import { positiveNumber } from '../conversation/pages.ts'
import type { ApprovalsQuery, PendingApproval, PendingQuestion, QuestionsQuery } from '../conversation/pending.ts'
import type { ConversationTree } from '../conversation/tree.ts'
import { type UsageShare, usageOf } from '../conversation/usage.ts'
import type { Engine } from '../engine/engine.ts'
import { isDead, leaseTime } from '../engine/lease.ts'
import { treeWith } from '../graph/reader.ts'
import type { Id, Turn } from '../graph/rows.ts'
import type { Reply } from '../rules/delegation/question.ts'
import type { ApprovalAnswer } from '../rules/turn/approve.ts'
import type { Tombstone } from '../store/archive.ts'
import type { Ledger } from '../store/ledger.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { AnswerWord, ApprovalWord } from './options.ts'

type NodeCode = typeof import('./lazy.ts')

export interface OperationParts {
  readonly ledger: Ledger
  readonly engine: Pick<Engine, 'id'>
  readonly recordings: Recordings
  readonly knowsAgent: (name: string) => boolean
  /** The rules of a run, loaded when they are needed first: at once from then on, so that nothing comes between. */
  readonly rules: () => NodeCode | Promise<NodeCode>
}

/**
 * Operations that need rows only: any process that has the store may do them, whoever runs the agents. `Runtime` has a
 * method for each, and says there what it does.
 */
export class StoreOperations {
  readonly store: Store
  private readonly ledger: Ledger
  readonly clock: Clock
  private readonly parts: OperationParts
  private readonly words: Set<Promise<void>> = new Set()

  constructor(parts: OperationParts) {
    this.parts = parts
    this.ledger = parts.ledger
    this.store = parts.ledger.store
    this.clock = parts.ledger.clock
  }

  async cancel(runId: Id, reason?: string): Promise<void> {
    readOptions('cancel()', { reason }, { reason: text })
    const started = this.parts.recordings.ofRun(runId)?.started
    if (started !== undefined) await started
    await this.saying(this.cancelNow(runId, reason))
  }

  async usage(runId: Id): Promise<UsageShare> {
    const share = usageOf(await treeWith(this.store, runId), runId)
    if (share === undefined) throw await notFound(this.store, 'run', runId)
    return share
  }

  async tree(conversationId: Id, options: { readonly limitTurns?: number } = {}): Promise<ConversationTree> {
    const { limitTurns = 50 } = readOptions('tree(conversationId, options)', options, { limitTurns: anything })
    await this.parts.recordings.settled(conversationId)
    const tree = await treeWith(this.store, conversationId)
    const row = tree.conversation(conversationId)
    if (row === undefined) throw await notFound(this.store, 'conversation', conversationId)
    const { treeOf } = await import('../conversation/tree.ts')
    return treeOf(tree, row, positiveNumber(limitTurns, 'limitTurns'))
  }

  async approvals(query: ApprovalsQuery = {}): Promise<PendingApproval[]> {
    const { approvalsOf } = await import('../conversation/pending.ts')
    return approvalsOf(this.store, query)
  }

  async questions(query: QuestionsQuery = {}): Promise<PendingQuestion[]> {
    const { questionsOf } = await import('../conversation/pending.ts')
    return questionsOf(this.store, query)
  }

  async answer(nodeId: Id, answer: ApprovalWord | AnswerWord): Promise<void> {
    // Read before anything is awaited: what its holder changes later changes nothing.
    const given = readWord(answer)
    const node = (await treeWith(this.store, nodeId)).node(nodeId)
    if (node === undefined) throw new NotFoundError('not_found', `There is no node ${nodeId} in this store.`)
    const { rootId } = node
    if ('edit' in given && given.edit !== undefined) {
      const { checkEdit } = await import('../conversation/pending.ts')
      await checkEdit(node, given.edit)
    }
    const done = after(this.parts.rules(), ({ planApproval, planReply }) =>
      this.ledger.commit({
        kind: 'answer',
        rootId,
        plan: (draft) => ('text' in given ? planReply(draft, nodeId, given) : planApproval(draft, nodeId, given)),
      }),
    )
    await this.saying(done)
  }

  /** Resolves when every word that was given is in the rows, or refused: one that nobody awaits counts too. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.words)
  }

  /** At once where the store answers at once: nothing of the run begins after the call. */
  private cancelNow(runId: Id, reason: string | undefined): Later<void> {
    return after(treeWith(this.store, runId), (tree) => {
      const turn = tree.turn(runId)
      return turn === undefined ? this.refuseUnknown(runId) : this.cancelTurn(turn, reason)
    })
  }

  private async refuseUnknown(runId: Id): Promise<never> {
    throw await notFound(this.store, 'run', runId)
  }

  private cancelTurn({ id, rootId }: Turn, reason: string | undefined): Later<void> {
    const request = { cause: 'cancelled', reason: reason ?? null } as const
    const asked = after(this.parts.rules(), ({ planCancel }) =>
      this.ledger.commit({ kind: 'cancel', rootId, plan: (draft) => planCancel(draft, id, request) }),
    )
    return after(asked, () => this.recoverLost(rootId))
  }

  /** Processes that are gone end nothing of it any more, and there may be no other. */
  private async recoverLost(rootId: Id): Promise<void> {
    try {
      const { recoverStopped } = await import('../engine/sweep.ts')
      await recoverStopped(this.ledger, rootId, this.parts.engine.id)
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

  async audit(options: AuditOptions = {}): Promise<AuditReport> {
    const { audit } = await import('../audit/audit.ts')
    if (options.repair === true) await this.parts.rules()
    return audit(this.ledger, options)
  }

  async *export(rootId: Id): AsyncIterable<string> {
    const { exportTree } = await import('../audit/archive.ts')
    yield* await exportTree(this.store, rootId)
  }

  async import(lines: Iterable<string> | AsyncIterable<string>): Promise<Id> {
    const { importTree } = await import('../audit/archive.ts')
    return importTree(this.ledger, lines)
  }

  async forget(id: Id, reason = 'forgotten'): Promise<Tombstone> {
    const { forget } = await import('../audit/archive.ts')
    return forget(this.store, id, { at: this.clock.now(), reason })
  }

  async prune(options: PruneOptions): Promise<Tombstone[]> {
    const { prune } = await import('../audit/archive.ts')
    return prune(this.store, options, this.clock.now())
  }

  async why(id: Id): Promise<Why> {
    await this.parts.recordings.settled(id)
    const { explainRun } = await import('../audit/why.ts')
    return explainRun({ store: this.store, now: this.clock.now(), knows: this.parts.knowsAgent }, id)
  }

  async picture(id: Id, options: PictureOptions = {}): Promise<string> {
    const { drawPicture } = await import('../audit/picture.ts')
    return drawPicture(this.store, id, options)
  }

  async diff(firstRunId: Id, secondRunId: Id): Promise<RunDiff> {
    const { diffRuns } = await import('../audit/diff.ts')
    return diffRuns(this.store, firstRunId, secondRunId)
  }

  async processes(): Promise<readonly ProcessInfo[]> {
    const now = await leaseTime(this)
    return (await this.store.engines()).map((engine) => ({
      id: engine.id,
      pid: engine.pid,
      isAlive: !isDead(engine, now),
    }))
  }
}

/** A process that runs nodes of a store. */
export interface ProcessInfo {
  readonly id: Id
  readonly pid: number
  readonly isAlive: boolean
}

/** Only an object with `text` or `allow` is a word: true, "yes" or nothing at all is none. */
function readWord(given: ApprovalWord | AnswerWord): Reply | ApprovalAnswer {
  if (typeof given !== 'object' || given === null) {
    const message = 'answer(nodeId, word) takes { allow: true } or { allow: false }, or { text } to answer a question.'
    throw new InputError('invalid_input', message)
  }
  return 'text' in given ? readReply(given) : readAnswer(given)
}

const REPLY: OptionRules<AnswerWord> = { text: anything, by: text }

/** A person's answer to a question: words, and who said them. */
function readReply(given: AnswerWord): Reply {
  const { text: words, by = 'user' } = readOptions('answer(nodeId, { text })', given, REPLY)
  if (typeof words !== 'string' || words.trim() === '') {
    throw new InputError('invalid_input', 'answer(nodeId, { text }): the answer is a text that is not empty.')
  }
  return { text: words, by }
}

const WORD: OptionRules<ApprovalWord> = {
  allow: anything,
  by: text,
  reason: text,
  always: flag,
  edit: anything,
  digest: text,
}

/** Only `true` allows: whatever else stands there, by mistake or from a form, is no yes. */
function readAnswer(word: ApprovalWord): ApprovalAnswer {
  const { allow, by = 'user', reason, always, edit, digest } = readOptions('answer(nodeId, { allow })', word, WORD)
  if (typeof allow !== 'boolean') throw new InputError('invalid_input', 'answer(nodeId, { allow }): true or false.')
  const only = digest === undefined ? {} : { digest }
  const given = { allowed: allow, by, reason: reason ?? null, always: always === true, ...only }
  if (edit === undefined) return given
  if (!allow)
    throw new InputError('invalid_input', 'answer(nodeId, { edit }): only what you allow runs with new arguments.')
  const json = toJson(edit)
  if (!json.ok) throw new InputError('invalid_input', `answer(nodeId, { edit }): it is not JSON. ${json.error}`)
  return { ...given, edit: json.value }
}
