import type { Id } from '../../../src/core/graph/rows.ts'
import { planAdopt } from '../../../src/core/rules/history/adopt.ts'
import { planFork } from '../../../src/core/rules/history/fork.ts'
import { planMerge } from '../../../src/core/rules/history/merge.ts'
import { planEdit, planRerun } from '../../../src/core/rules/history/rerun.ts'
import { planRetryNode } from '../../../src/core/rules/history/retry-node.ts'
import { planArchive, planVisibility } from '../../../src/core/rules/history/visibility.ts'
import { planCompress, planUncompress } from '../../../src/core/rules/turn/compaction.ts'
import { LIMITS } from './random-children.ts'
import { RandomHand } from './random-hand.ts'
import { isOpen, lineOf, newest, type RefLane, type RefNode, type RefTurn, refNode } from './reference.ts'
import {
  adoptRefusal,
  compressRefusal,
  cutOf,
  editRefusal,
  firstOf,
  firstWithChildren,
  followersOf,
  forkRefusal,
  lastOwn,
  mergeRefusal,
  rerunRefusal,
  retryRefusal,
  uncompressRefusal,
} from './reference-rules.ts'

const ASKED = { caller: [], boundsUnder: () => ({ limits: LIMITS }) }

export interface Trial {
  readonly seed: number
  readonly operations: number
  /** Any changes, or those of long talks with many summaries and answers that were set aside. */
  readonly mix?: keyof typeof MIXES
  /** All rules of the audit after every so many operations, and at the end. */
  readonly auditEvery: number
  /** After this operation the reference is wrong. */
  readonly damageAt?: number
}

/** Random changes of one conversation, each compared with the reference. Throws with what was done. */
export function tryHistory({ seed, operations, mix = 'any', auditEvery, damageAt }: Trial): void {
  const world = new World(seed, mix)
  const { stackTraceLimit } = Error
  // Refusals are half of what happens here.
  Error.stackTraceLimit = 0
  try {
    for (let at = 1; at <= operations; at++) {
      world.operate()
      if (at === damageAt) world.damage()
      const isWhole = at % auditEvery === 0 || at === operations || at === damageAt
      world.compare(isWhole)
      if (isWhole) world.audit()
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`seed ${seed}: ${message}\n${world.done.join('\n')}`, { cause: error })
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

type Operation = (world: World) => string

interface Range {
  /** Null: the first. */
  readonly from: RefTurn | null
  readonly to: RefTurn
}

interface Edited {
  readonly turn: RefTurn
  readonly node: RefNode
  readonly turnId: Id
  readonly text: string
}

class World extends RandomHand {
  private readonly mix: keyof typeof MIXES

  constructor(seed: number, mix: keyof typeof MIXES) {
    super(seed)
    this.mix = mix
    this.say(this.touched)
  }

  operate(): void {
    this.tick()
    const operation = this.chance.pick(MIXES[this.mix])
    this.touched = this.chance.pick(this.lanes)
    this.done.push(operation(this))
  }

  /** A lane, or the conversation of a child. */
  anyConversation(): RefLane {
    this.touched = this.chance.pick([...this.lanes, ...this.children])
    return this.touched
  }

  fork(lane: RefLane): string {
    const found = this.anyNode(lane)
    if (found === undefined) return 'no node'
    const { turn, node } = found
    const children = this.chance.pick(['reuse', 'rerun'] as const)
    const message = children === 'rerun' ? firstWithChildren(turn, node) : undefined
    const cut = cutOf(turn, node, message)
    const expected = forkRefusal(turn, node, message)
    const made = this.expect('fork', expected, (draft) =>
      planFork(draft, node.id, { conversationId: lane.id, ...ASKED, children, key: null, title: null }),
    )
    if (made === undefined || cut === 'open') return `fork at ${node.id}: ${expected}`
    const fresh = this.addLane(made.laneId, cut === 'whole' ? turn : turn.before)
    this.touched = fresh
    const again = message === undefined ? null : message.calls.filter(({ delegates }) => delegates)
    if (cut !== 'whole') this.addCopy(fresh, { kept: cut, source: turn, turnId: made.turnId ?? '', again, about: node })
    return `fork at ${node.id} (${children}): ${made.laneId}`
  }

  rerun(lane: RefLane): string {
    const found = this.anyNode(lane)
    if (found === undefined) return 'no node'
    const { turn, node } = found
    const expected = rerunRefusal(lane, turn, node)
    const made = this.expect('rerun', expected, (draft) =>
      planRerun(draft, node.id, { conversationId: lane.id, ...ASKED }),
    )
    if (made === undefined) return `rerun ${node.id}: ${expected}`
    lane.head = turn.before
    const kept = turn.nodes.filter((one) => one !== node && one.by === null)
    this.addCopy(lane, { kept, source: turn, turnId: made.turn.id, again: [node] })
    return `rerun ${node.id}: ${made.turn.id}`
  }

  edit(lane: RefLane): string {
    const found = this.anyNode(lane)
    if (found === undefined) return 'no node'
    const { turn, node } = found
    const text = `e${++this.count}`
    const expected = editRefusal(lane, turn, node)
    const made = this.expect('edit', expected, (draft) =>
      planEdit(draft, node.id, { conversationId: lane.id, ...ASKED, content: text }),
    )
    if (made === undefined) return `edit ${node.id}: ${expected}`
    lane.head = turn.before
    if (turn.isByHand) this.editedByHand(lane, { turn, node, turnId: made.turn.id, text })
    else {
      const kept = turn.nodes.filter((one) => one === node || one.kind === 'sum')
      this.addCopy(lane, { kept, source: turn, turnId: made.turn.id, again: null, text, about: node })
    }
    return `edit ${node.id} to ${text}: ${made.turn.id}`
  }

  private editedByHand(lane: RefLane, { turn, node, turnId, text }: Edited): void {
    const after = followersOf(turn, node).filter(({ kind, by }) => kind === 'agent' && by === null)
    const kept = turn.nodes.filter((one) => one.by === null && !after.includes(one))
    const again = after.filter(({ isByHand }) => isByHand)
    this.addCopy(lane, { kept, source: turn, turnId, again, text, about: node })
  }

  retry(lane: RefLane): string {
    const found = this.anyNode(lane, ({ state }) => state !== 'finished' || this.chance.is(0.2))
    if (found === undefined) return 'no node'
    const { turn, node } = found
    if (node.by !== null && isOpen(newest(node)) && newest(node) === node.by) {
      this.expect('retry', 'done', (draft) => planRetryNode(draft, node.id, { conversationId: lane.id, ...ASKED }))
      return `retry ${node.id} again`
    }
    const expected = retryRefusal(lane, turn, node)
    if (expected === 'unsure') return 'a retry that may find another'
    const made = this.expect('retry', expected, (draft) =>
      planRetryNode(draft, node.id, { conversationId: lane.id, ...ASKED }),
    )
    if (made === undefined) return `retry ${node.id}: ${expected}`
    if (turn.state !== 'ended') this.retried(turn, node, made.nodeId)
    else {
      lane.head = turn.before
      const after = followersOf(turn, node)
      const kept = turn.nodes.filter((one) => one !== node && one.by === null && !after.includes(one))
      const again = [node, ...after.filter(({ by, isByHand }) => by === null && isByHand)]
      this.addCopy(lane, { kept, source: turn, turnId: made.turn.id, again })
    }
    return `retry ${node.id}: ${made.nodeId}`
  }

  private retried(turn: RefTurn, node: RefNode, id: Id): void {
    const { caller, delegates, isByHand } = node
    const version = refNode(node.kind, { id, state: 'pending', caller, delegates, isByHand })
    if (node.edges !== null) version.edges = node.edges.filter(({ from }) => from.by === null)
    for (const one of turn.nodes) {
      const edge = one.by === null ? one.edges?.find(({ from }) => from === node) : undefined
      if (edge !== undefined) one.edges?.push({ ...edge, from: version })
    }
    node.by = version
    turn.nodes.push(version)
    if (node.caller !== null) node.caller.calls = node.caller.calls.map((one) => (one === node ? version : one))
  }

  adopt(lane: RefLane): string {
    const found = this.anyNode(lane, ({ kind }) => kind === 'agent')
    if (found === undefined) return 'no node'
    const { turn, node } = found
    const expected = adoptRefusal(lane, turn, node)
    const isActive = lineOf(lane.head).includes(turn)
    const made = this.expect('adopt', expected, (draft) => {
      planAdopt(draft, node.id, { conversationId: lane.id })
      return true
    })
    if (made === true && !isActive) lane.head = turn
    return `adopt ${node.id}: ${expected}`
  }

  merge(lane: RefLane): string {
    const others = this.lanes.filter((one) => one !== lane && this.chance.is(0.4))
    const heads = others.map(lastOwn)
    const { head } = lane
    const isSame =
      others.length > 0 &&
      head?.lane === lane &&
      head.merged.length === others.length &&
      heads.every((turn) => turn?.state === 'ended' && head.merged.includes(turn))
    const expected = isSame ? 'done' : mergeRefusal(lane, heads)
    const made = this.expect('merge', expected, (draft) =>
      planMerge(draft, { conversationId: lane.id, ...ASKED, laneIds: others.map(({ id }) => id), prompt: null }),
    )
    if (made === undefined || isSame) return `merge ${others.map(({ id }) => id).join()} into ${lane.id}: ${expected}`
    const merged = heads.filter((turn) => turn !== undefined)
    this.bind(
      this.addTurn(lane, {
        id: made.turn.id,
        state: 'running',
        nodes: [refNode('agent', { state: 'pending' })],
        merged,
      }),
    )
    return `merge ${others.map(({ id }) => id).join()} into ${lane.id}: ${made.turn.id}`
  }

  archive(lane: RefLane): string {
    if (this.lanes.filter(({ isArchived }) => !isArchived).length < 2 || this.chance.is(0.7)) return 'no archive'
    const mode = this.chance.pick(['finish', 'cancel'] as const)
    this.commit((draft) => planArchive(draft, lane.id, mode))
    lane.isArchived = true
    if (mode === 'cancel')
      for (const turn of lane.turns.filter(({ state }) => state !== 'ended').toReversed()) this.cancelled(turn, false)
    return `archive ${lane.id} (${mode})`
  }

  compress(lane: RefLane): string {
    const own = lane.turns
    if (own.length === 0) return 'no turn'
    const { from, to } = this.mix === 'summaries' ? this.shortRange(own) : this.anyRange(own)
    const text = `s${++this.count}`
    const expected = compressRefusal(lane, from, to)
    const id = this.expect('compress', expected, (draft) =>
      planCompress(draft, { conversationId: lane.id, fromRunId: from?.id ?? null, toRunId: to.id, summary: text }),
    )
    if (id === undefined) return `compress to ${to.id}: ${expected}`
    to.fold = { id, text, from: from ?? firstOf(lane) ?? to, upTo: null, sum: null, earlier: to.fold }
    return `compress ${from?.id ?? 'all'} to ${to.id}: ${text}`
  }

  private anyRange(own: readonly RefTurn[]): Range {
    const from = this.chance.is(0.4) ? null : this.chance.pick(own)
    return { from, to: this.chance.pick(own) }
  }

  /** Short ones as often as any, so that there are several in a row. */
  private shortRange(own: readonly RefTurn[]): Range {
    const to = this.chance.pick(own)
    const near = own[own.indexOf(to) - this.chance.below(2)] ?? to
    return { from: this.chance.is(0.3) ? null : this.chance.is(0.5) ? near : this.chance.pick(own), to }
  }

  uncompress(lane: RefLane): string {
    const folded = lane.turns.filter(({ fold }) => fold !== null)
    if (folded.length === 0) return 'no summary'
    const turn = this.chance.pick(folded)
    const id = turn.fold?.id ?? ''
    const expected = uncompressRefusal(lane, turn)
    this.expect('uncompress', expected, (draft) => planUncompress(draft, id, lane.id))
    if (expected === 'done') turn.fold = turn.fold?.earlier ?? null
    return `take back ${id}: ${expected}`
  }

  show(lane: RefLane): string {
    const found = this.anyNode(lane, ({ kind }) => kind !== 'sum')
    if (found === undefined) return 'no node'
    const { node } = found
    const change = this.chance.pick(['exclude', 'include', 'delete', 'restore'] as const)
    const expected = node.by !== null ? 'replaced' : isOpen(node) ? 'wrong_state' : 'done'
    this.expect('show', expected, (draft) => planVisibility(draft, node.id, lane.id, change))
    if (expected === 'done') {
      if (change === 'exclude' || change === 'include') node.isExcluded = change === 'exclude'
      else node.isDeleted = change === 'delete'
    }
    return `${change} ${node.id}: ${expected}`
  }
}

const MIXES: Readonly<Record<'any' | 'summaries', readonly Operation[]>> = {
  any: [
    ...times(5, (world: World) => world.say(world.touched)),
    (world) => world.say(world.touched, true),
    ...times(12, (world: World) => world.step()),
    ...times(3, (world: World) => world.fork(world.touched)),
    ...times(2, (world: World) => world.rerun(world.touched)),
    ...times(2, (world: World) => world.edit(world.touched)),
    ...times(3, (world: World) => world.retry(world.touched)),
    ...times(2, (world: World) => world.adopt(world.touched)),
    ...times(2, (world: World) => world.merge(world.touched)),
    (world) => world.archive(world.touched),
    ...times(2, (world: World) => world.byHand(world.touched)),
    ...times(2, (world: World) => world.compress(world.touched)),
    (world) => world.uncompress(world.touched),
    ...times(2, (world: World) => world.show(world.touched)),
    (world) => world.stop(world.anyConversation()),
    (world) => world.skip(world.anyConversation()),
    (world) => world.cancel(world.anyConversation()),
  ],
  summaries: [
    ...times(8, (world: World) => world.say(world.touched)),
    ...times(60, (world: World) => world.step()),
    ...times(3, (world: World) => world.edit(world.touched)),
    ...times(6, (world: World) => world.adopt(world.touched)),
    ...times(9, (world: World) => world.compress(world.touched)),
    ...times(3, (world: World) => world.uncompress(world.touched)),
  ],
}

function times(count: number, operation: Operation): Operation[] {
  return Array.from({ length: count }, () => operation)
}
