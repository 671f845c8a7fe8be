import { collectContext as shownTo } from '../../../src/core/graph/context.ts'
import type { Node, Turn } from '../../../src/core/graph/rows.ts'
import { foldTarget, planCompaction } from '../../../src/core/rules/turn/compaction.ts'
import { RandomChildren } from './random-children.ts'
import { lineOf, type RefFold, type RefNode, type RefTurn, refNode } from './reference.ts'
import { uncompressRefusal } from './reference-rules.ts'

/** What models are shown gets too long, and is summed up by itself. */
export abstract class RandomCompaction extends RandomChildren {
  /** A call that runs waits for one that sums up what comes before a cut. Undefined when there is nothing to sum up. */
  protected compact(turn: RefTurn, node: RefNode): string | undefined {
    const own = this.node(node.id)
    const context = shownTo(this.store, own, 1_000)
    const cuts = context.map((_, at) => at).filter((at) => at > 0 && isCut(context, at, own))
    const [first] = context
    if (first === undefined || cuts.length === 0) return undefined
    const last = context[this.chance.pick(cuts) - 1] as Node
    const target = foldTarget(this.store, last, this.store.turn(turn.id) as Turn)
    const claim = this.claimOf(node)
    this.commit((draft) =>
      planCompaction(draft, claim, { ...target, tokens: 100, contextTokens: 900, fromTurnId: first.turnId, turns: 1 }),
    )
    if (turn.isCancelled || node.isAskedToStop) {
      node.state = 'stopped'
      this.ended(turn, node)
      return `${node.id} is stopped before anything is summed up`
    }
    node.state = 'pending'
    node.isCompacted = true
    const to = turn.lane.turns.find(({ id }) => id === target.turnId)
    if (to === undefined || !lineOf(turn).includes(to)) throw new Error(`${target.turnId} does not lead to ${turn.id}`)
    const upTo = target.upTo === null ? null : target.upTo < 0 ? 'none' : to.nodes.find(({ id }) => id === last.id)
    const id = this.store.nodesOf(turn.id).at(-1)?.id ?? ''
    turn.nodes.push(refNode('sum', { id, state: 'pending', folds: { target: node, to, upTo: upTo ?? null } }))
    return `${node.id} has ${target.turnId} summed up to ${target.upTo} by ${id}`
  }

  /** The summary is there. */
  protected folded(sum: RefNode): void {
    if (sum.folds === null) return
    const { to, upTo } = sum.folds
    // Meanwhile a summary by hand stands for it and more.
    if (uncompressRefusal(to.lane, to) === 'inside_summary') return
    const fold: RefFold = { id: sum.id, text: sum.text, from: null, upTo, sum, earlier: to.fold }
    to.fold = fold
  }
}

/** Between two turns, or between two rounds of calls of the call's own turn. */
function isCut(context: readonly Node[], at: number, own: Node): boolean {
  const [before, after] = [context[at - 1] as Node, context[at] as Node]
  if (before.metadata['standsFor'] === true) return false
  if (before.turnId !== after.turnId) return after.turnId === own.turnId || before.laneId === own.laneId
  const isByHand = context.some(({ turnId, metadata }) => turnId === own.turnId && metadata['byHand'] === true)
  if (after.turnId !== own.turnId || isByHand) return false
  return after.kind === 'agent_message' && before.kind !== 'user_message'
}
