import { NotFoundError } from '../base/error.ts'
import { CONTEXT_TURNS } from '../graph/context.ts'
import { type Mutation, type MutationScope, planMutate } from '../graph/mutate.ts'
import type { Conversation, Id } from '../graph/rows.ts'
import { type TranscriptLine, transcriptOf } from '../graph/transcript.ts'
import type { Ledger } from '../store/ledger.ts'

/** What a turn that is put in by hand may use. */
export type Bounds = Pick<MutationScope, 'limits' | 'money'>

/** A stored conversation: what was said in it, and a way to put nodes into it by hand. */
export class ConversationHandle {
  readonly id: Id
  private readonly ledger: Ledger
  private readonly boundsOf: (row: Conversation) => Bounds

  constructor(ledger: Ledger, id: Id, boundsOf: (row: Conversation) => Bounds) {
    this.ledger = ledger
    this.id = id
    this.boundsOf = boundsOf
  }

  get row(): Conversation | undefined {
    return this.ledger.store.conversation(this.id)
  }

  /** What people see of the latest rounds, oldest first. */
  async transcript({ limitTurns = CONTEXT_TURNS }: { readonly limitTurns?: number } = {}): Promise<TranscriptLine[]> {
    const turns = this.ledger.store.turnsOf(this.id, { limit: limitTurns })
    return transcriptOf(
      turns.flatMap((turn) => this.ledger.store.nodesOf(turn.id)),
      this.ledger.kinds,
    )
  }

  /** Puts nodes and edges in, all or none; what can run afterwards does. `change` may be called again after a race. */
  async mutate<T>(change: (mutation: Mutation) => T, { turnId }: { readonly turnId?: Id } = {}): Promise<T> {
    const { row } = this
    if (row === undefined) throw new NotFoundError('not_found', `There is no conversation ${this.id} in this store.`)
    const scope = { conversationId: this.id, ...this.boundsOf(row), ...(turnId === undefined ? {} : { turnId }) }
    return this.ledger.commit({
      kind: 'mutate',
      rootId: row.rootId,
      plan: (draft) => planMutate(draft, scope, change),
    })
  }
}
