// Charges: what a commit spends under the limit of a day of somebody who does not own its tree.
//
// Owns:      the rows of usage without an agent. `graph/commit` has those of the owner.
// Called by: the ledger, after a plan that spends something in a tree that somebody owns, or in a process that knows a limit of bytes.
// Must stay true:
//   - A run counts for its owner, and for each principal whose limit of a day is among the layers of its conversation or of its
//     turn: once for each, by whatever process, and in the very commit that counts it for the owner.
//   - Bytes count for each principal that has a limit of them, the owner among them: once, in the commit that stores them.
//   - A commit without such a limit is the very same commit afterwards. Trees that nobody owns are charged to nobody: who has a limit
//     begins no run there.

import { sizeOf } from '../../base/json.ts'
import { byteOwnersIn, dayOwnersIn, LIMITED } from '../../grant/ceiling.ts'
import { type Commit, isOpened, type Spent } from '../../graph/commit.ts'
import { NO_USAGE } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import type { Conversation, Node, Turn } from '../../graph/rows.ts'

/** The commit of a draft that spends something, with its charges. */
export function withCharges(draft: Draft, commit: Commit): Commit {
  const charges = [...chargesOf(draft, commit), ...(LIMITED.bytes ? storedIn(draft, commit) : [])]
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

/** The bytes that a commit adds, for each id that has a limit of them. */
function* storedIn(draft: Draft, { nodes, turns }: Commit): Generator<Spent> {
  const sums = new Map<string, number>()
  const add = (turn: Turn | undefined, added: () => number): void => {
    const owners = byteOwnersOf(draft, turn)
    const bytes = owners.size === 0 ? 0 : added()
    if (bytes > 0) for (const owner of owners) sums.set(owner, (sums.get(owner) ?? 0) + bytes)
  }
  for (const node of nodes) add(draft.findTurn(node.turnId), () => addedBy(node, draft.stored.node(node.id)))
  for (const turn of turns) if (turn.version === 1) add(turn, () => saidWith(turn))
  for (const [owner, bytes] of sums) yield* storedBytesOf([owner], bytes, draft.now)
}

/** So many bytes for each of these ids. */
export function storedBytesOf(owners: readonly string[], bytes: number, now: number): readonly Spent[] {
  const day = new Date(now).toISOString().slice(0, 10)
  const usage = { ...NO_USAGE, inputTokens: bytes }
  return owners.map((owner) => ({ owner, day, agent: CHARGED, model: STORED, runs: 0, modelCalls: 0, usage }))
}

function byteOwnersOf(draft: Draft, turn: Turn | undefined): ReadonlySet<string> {
  const home = draft.findConversation(turn?.conversationId ?? '')
  return new Set([turn, home].flatMap((row) => (row === undefined ? [] : byteOwnersIn(row.ceiling))))
}

/** Whoever asks for a turn says its attributes and its grant. */
function saidWith({ attributes, ceiling }: Turn): number {
  return sizeOf(JSON.stringify([attributes, ceiling]))
}

/** The input of a node counts when the node is made, and its result when it ends: a long result by its whole text. */
function addedBy({ input, output, endedAt }: Node, before: Node | undefined): number {
  const made = before === undefined ? sizeOf(JSON.stringify(input)) : 0
  const hasEnded = endedAt !== null && (before?.endedAt ?? null) === null
  return hasEnded ? made + sizeOf(JSON.stringify(output)) + (output.bytes ?? 0) : made
}

/** Stands in place of the model in sums of bytes, which are counted where others have tokens: no model has such a name. */
const STORED = ':bytes'

/** Is it a sum of bytes? */
export function isStored(model: string): boolean {
  return model === STORED
}

/** The bytes of such a sum. */
export function storedBytes(model: string, { inputTokens }: Spent['usage']): number {
  return isStored(model) ? inputTokens : 0
}

/** One for each id whose limit binds the run, but for its owner. */
function* chargesFor(
  draft: Draft,
  [turn, home]: readonly [Turn, Conversation],
  amount: Pick<Spent, 'model' | 'runs' | 'modelCalls' | 'usage'>,
): Generator<Spent> {
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
