// Charges: what a commit spends under the limit of a day of somebody who does not own its tree.
//
// Owns:      the rows of usage without an agent. `graph/commit` has those of the owner.
// Called by: the ledger, once after each plan.
// Must stay true:
//   - A run counts for its owner, and for each principal whose limit of a day is among the layers of its conversation or of its
//     turn: once for each, by whatever process, and in the very commit that counts it for the owner.
//   - A commit without such a limit is the very same commit afterwards.

import { dayOwnersIn } from '../../grant/ceiling.ts'
import { type Commit, isOpened, type Spent } from '../../graph/commit.ts'
import { NO_USAGE } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Turn } from '../../graph/rows.ts'

/** The commit of a draft with its charges. */
export function withCharges(draft: Draft, commit: Commit): Commit {
  let charges: Spent[] | undefined
  const charge = (turn: Turn, home: Conversation, spent: Pick<Spent, 'model' | 'runs' | 'modelCalls' | 'usage'>) => {
    const rootOwner = draft.findConversation(home.rootId)?.owner ?? null
    const day = new Date(draft.now).toISOString().slice(0, 10)
    for (const owner of new Set([...dayOwnersIn(turn.ceiling), ...dayOwnersIn(home.ceiling)])) {
      if (owner === rootOwner) continue
      charges ??= []
      charges.push({ owner, day, agent: CHARGED, ...spent })
    }
  }
  for (const turn of commit.turns) {
    if (!isOpened(turn)) continue
    const home = limitedHome(draft, turn)
    if (home?.type === 'user') charge(turn, home, { model: '', runs: 1, modelCalls: 0, usage: NO_USAGE })
  }
  for (const { runId, body } of commit.events) {
    if (body.type !== 'usage') continue
    const turn = draft.findTurn(runId)
    const home = turn === undefined ? undefined : limitedHome(draft, turn)
    if (turn === undefined || home === undefined) continue
    charge(turn, home, { model: body.model, runs: 0, modelCalls: 1, usage: body.usage })
  }
  return charges === undefined ? commit : { ...commit, spent: [...commit.spent, ...charges] }
}

/** The conversation of a turn that the limit of a day binds; undefined for all others. */
function limitedHome(draft: Draft, { ceiling, conversationId }: Turn): Conversation | undefined {
  const home = draft.findConversation(conversationId)
  if (home === undefined) return undefined
  return dayOwnersIn(ceiling).length + dayOwnersIn(home.ceiling).length === 0 ? undefined : home
}

/** Stands in place of the agent: no agent has such a name. */
const CHARGED = ''

/** Is this usage a charge? */
export function isCharge({ agent }: Pick<Spent, 'agent'>): boolean {
  return agent === CHARGED
}
