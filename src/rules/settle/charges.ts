// Charges: what a commit spends under the limit of a day of somebody who does not own its tree.
//
// Owns:      the rows of usage without an agent. `graph/commit` has those of the owner.
// Called by: the ledger, after a plan that spends something in a tree that somebody owns.
// Must stay true:
//   - A run counts for its owner, and for each principal whose limit of a day is among the layers of its conversation or of its
//     turn: once for each, by whatever process, and in the very commit that counts it for the owner.
//   - A commit without such a limit is the very same commit afterwards. Trees that nobody owns are charged to nobody: who has a limit
//     begins no run there.

import { dayOwnersIn } from '../../grant/ceiling.ts'
import { type Commit, isOpened, type Spent } from '../../graph/commit.ts'
import { NO_USAGE } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Turn } from '../../graph/rows.ts'

/** The commit of a draft that spends something, with its charges. */
export function withCharges(draft: Draft, commit: Commit): Commit {
  const charges = [...chargesOf(draft, commit)]
  return charges.length === 0 ? commit : { ...commit, spent: [...commit.spent, ...charges] }
}

function* chargesOf(draft: Draft, { turns, events }: Commit): Generator<Spent> {
  for (const turn of turns) {
    const home = isOpened(turn) ? draft.findConversation(turn.conversationId) : undefined
    if (home?.type !== 'user') continue
    yield* chargesFor(draft, [turn, home], { model: '', runs: 1, modelCalls: 0, usage: NO_USAGE })
  }
  for (const { runId, body } of events) {
    if (body.type !== 'usage') continue
    const turn = draft.findTurn(runId)
    const home = draft.findConversation(turn?.conversationId ?? '')
    if (turn === undefined || home === undefined) continue
    yield* chargesFor(draft, [turn, home], { model: body.model, runs: 0, modelCalls: 1, usage: body.usage })
  }
}

type Amount = Pick<Spent, 'model' | 'runs' | 'modelCalls' | 'usage'>

/** One for each id whose limit binds the run, but for its owner. */
function* chargesFor(draft: Draft, [turn, home]: readonly [Turn, Conversation], amount: Amount): Generator<Spent> {
  const bound = [...dayOwnersIn(turn.ceiling), ...dayOwnersIn(home.ceiling)]
  if (bound.length === 0) return
  const rootOwner = draft.findConversation(home.rootId)?.owner
  const day = new Date(draft.now).toISOString().slice(0, 10)
  for (const owner of new Set(bound)) {
    if (owner !== rootOwner) yield { owner, day, agent: CHARGED, ...amount }
  }
}

/** Stands in place of the agent: no agent has such a name. */
const CHARGED = ''

/** Is this usage a charge? */
export function isCharge({ agent }: Pick<Spent, 'agent'>): boolean {
  return agent === CHARGED
}
