import { NO_USAGE } from '../../../src/core/graph/content.ts'
import { keptOptions, NEW_NODE } from '../../../src/core/graph/rows.made.ts'
import { expansionIds } from '../../../src/core/graph/tasks.ts'
import { planSkip, planStop } from '../../../src/core/rules/history/stop.ts'
import { planCancel } from '../../../src/core/rules/turn/cancel.ts'
import { planClaim } from '../../../src/core/rules/turn/claim.ts'
import { planAnswer, planExpand } from '../../../src/core/rules/turn/expand.ts'
import { planResult } from '../../../src/core/rules/turn/result.ts'
import { planRestart, planSay } from '../../../src/core/rules/turn/say.ts'
import { LIMITS } from './random-children.ts'
import { RandomCompaction } from './random-compaction.ts'
import { isOpen, type RefLane, type RefNode, type RefTurn, refNode } from './reference.ts'
import { mayRun, runningOf } from './reference-rules.ts'

/** What is said, and what becomes of it. */
export abstract class RandomRuns extends RandomCompaction {
  say(lane: RefLane, isRestart = false): string {
    const [turnId, user, agent] = [this.newId(), this.newId(), this.newId()]
    const text = `u${this.count}`
    const conversation = { id: lane.id, agent: { name: 'agent', hash: 'h' }, ceiling: [] }
    const request = {
      turnId,
      nodeIds: [user, agent],
      input: text,
      content: text,
      briefing: null,
      limits: LIMITS,
      deadline: null,
      money: null,
      mayStart: true,
      ceiling: [],
    }
    const plan = isRestart ? planRestart : planSay
    const expected = lane.isArchived ? 'archived' : 'done'
    this.expect('say', expected, (draft) => plan(draft, conversation, request))
    if (expected !== 'done') return `say in ${lane.id}: ${expected}`
    const running = runningOf(lane)
    this.addTurn(lane, {
      id: turnId,
      state: running === undefined ? 'running' : 'queued',
      nodes: [refNode('user', { id: user, text }), refNode('agent', { id: agent, state: 'pending' })],
    })
    if (isRestart && running !== undefined) this.cancelled(running, true)
    return `${isRestart ? 'restart' : 'say'} ${text} in ${lane.id}: ${turnId}`
  }

  /** A node that may run begins, or one that runs ends in some way. */
  step(): string {
    const open = [...this.lanes, ...this.children].flatMap((lane) => {
      const turn = runningOf(lane)
      return turn === undefined ? [] : turn.nodes.filter(isOpen).map((node) => ({ turn, node, lane }))
    })
    const able = open.filter(
      ({ turn, node }) => node.state === 'running' || (node.state === 'pending' && mayRun(turn, node)),
    )
    if (able.length === 0) return 'nothing to do'
    const { turn, node, lane } = this.chance.pick(able)
    this.touched = lane
    if (node.state === 'pending') {
      this.isClaiming = true
      this.commit((draft) => planClaim(draft, [node.id]))
      this.isClaiming = false
      node.state = 'running'
      if (this.chance.is(0.3)) return `begin ${node.kind} ${node.id}`
    }
    if (node.delegates && !node.isAskedToStop && !turn.isCancelled) return this.spawn(turn, node)
    return node.kind === 'task' ? this.endTask(turn, node) : this.endAgent(turn, node)
  }

  private endTask(turn: RefTurn, node: RefNode): string {
    const isGood = this.chance.is(0.7)
    const text = `t${++this.count}`
    const claim = this.claimOf(node)
    const end = isGood
      ? ({ state: 'finished', output: { content: text } } as const)
      : ({ state: 'errored', output: { content: text }, failure: { code: 'x', message: text } } as const)
    this.commit((draft) => planResult(draft, claim, end))
    node.state = isGood ? 'finished' : 'errored'
    node.text = text
    this.ended(turn, node)
    return `task ${node.id} is ${node.state} with ${text}`
  }

  private endAgent(turn: RefTurn, node: RefNode): string {
    const isLong = node.kind === 'agent' && !turn.isByHand && !node.isCompacted && this.chance.is(0.15)
    const summed = isLong ? this.compact(turn, node) : undefined
    if (summed !== undefined) return summed
    const claim = this.claimOf(node)
    const text = `a${++this.count}`
    const way = this.chance.pick(
      node.kind === 'sum' || turn.isByHand ? ['says', 'says', 'fails'] : ['says', 'says', 'calls', 'calls', 'fails'],
    )
    if (way === 'fails') {
      this.commit((draft) => planResult(draft, claim, { state: 'errored', failure: { code: 'x', message: text } }))
      node.state = 'errored'
    } else if (way === 'says') {
      this.commit((draft) =>
        planAnswer(draft, claim, { answer: answer(text, []), again: null, value: undefined, failure: null }),
      )
      node.state = 'finished'
      node.text = text
      this.folded(node)
    } else return this.callsOf(turn, node, text)
    this.ended(turn, node)
    return `${node.kind} ${node.id} ${way} ${text}`
  }

  private callsOf(turn: RefTurn, node: RefNode, text: string): string {
    const claim = this.claimOf(node)
    const calls = Array.from({ length: 1 + this.chance.below(2) }, (_, at) => ({
      id: `${node.id}-${at}`,
      name: 'look',
      input: {},
    }))
    const ids = expansionIds(node.id, calls.length)
    const tasks = calls.map((call) => {
      return {
        call,
        options: { ...keptOptions(NEW_NODE), effect: 'pure' },
        delegates: turn.host === null && this.chance.is(0.4),
      } as const
    })
    this.commit((draft) => planExpand(draft, claim, { answer: answer(text, calls), tasks, ids }))
    node.text = text
    if (node.isAskedToStop || turn.isCancelled) {
      node.state = 'stopped'
      this.ended(turn, node)
      return `agent ${node.id} is stopped while it calls`
    }
    node.state = 'finished'
    node.calls = tasks.map(({ delegates }, at) => {
      return refNode('task', { id: ids[at] ?? '', state: 'pending', caller: node, delegates })
    })
    turn.nodes.push(...node.calls, refNode('agent', { id: ids[calls.length] ?? '', state: 'pending' }))
    return `agent ${node.id} calls ${calls.length}`
  }

  stop(lane: RefLane): string {
    const found = this.anyNode(lane, isOpen)
    if (found === undefined) return 'no open node'
    const { turn, node } = found
    const expected = turn.state === 'queued' ? 'wrong_state' : 'done'
    this.expect('stop', expected, (draft) => planStop(draft, node.id, { conversationId: lane.id, reason: null }))
    if (expected === 'done') {
      if (node.state === 'running') node.isAskedToStop = true
      else {
        node.state = 'stopped'
        for (const child of this.childrenOf(turn)) if (child.host?.task === node) this.cancelled(child, false)
        this.ended(turn, node)
      }
    }
    return `stop ${node.id}: ${expected}`
  }

  skip(lane: RefLane): string {
    const found = this.anyNode(lane, isOpen)
    if (found === undefined) return 'no open node'
    const { turn, node } = found
    const expected = node.state !== 'pending' || turn.state === 'queued' ? 'wrong_state' : 'done'
    this.expect('skip', expected, (draft) => planSkip(draft, node.id, { conversationId: lane.id, reason: null }))
    if (expected === 'done') {
      node.state = 'skipped'
      this.ended(turn, node)
    }
    return `skip ${node.id}: ${expected}`
  }

  cancel(lane: RefLane): string {
    const open = lane.turns.filter(({ state }) => state !== 'ended')
    if (open.length === 0) return 'nothing to cancel'
    const turn = this.chance.pick(open)
    this.commit((draft) => planCancel(draft, turn.id, { cause: 'cancelled', reason: null }))
    this.cancelled(turn, false)
    return `cancel ${turn.id}`
  }
}

function answer(text: string, calls: readonly { id: string; name: string; input: object }[]) {
  return {
    content: text,
    reasoning: '',
    calls: calls as never,
    droppedCalls: 0,
    usage: NO_USAGE,
    model: 'm',
    usageFault: null,
    usd: null,
    cutBy: null,
    streamed: null,
  } as const
}
