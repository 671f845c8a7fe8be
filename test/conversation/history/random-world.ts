import { auditTree } from '../../../src/core/audit/audit.ts'
import { turnsBackward, turnsForward } from '../../../src/core/conversation/conversation-pages.ts'
import { textOf } from '../../../src/core/graph/content.ts'
import { buildTranscript as seenBy, collectContext as shownTo } from '../../../src/core/graph/context.ts'
import type { Draft } from '../../../src/core/graph/draft.ts'
import { BUILT_IN_KINDS } from '../../../src/core/graph/kinds.ts'
import { readTree } from '../../../src/core/graph/reader.ts'
import type { Id, Node } from '../../../src/core/graph/rows.ts'
import { resultContent } from '../../../src/core/graph/tasks.ts'
import { endTurns } from '../../../src/core/rules/settle/end-turns.ts'
import { tellChanges } from '../../../src/core/rules/settle/told.ts'
import { Ledger } from '../../../src/core/store/ledger.ts'
import { memoryStore } from '../../../src/core/store/memory/index.ts'
import type { LocalStore } from '../../../src/core/store/store.ts'

import { fakeClock } from '../../../src/testing/stand-ins/fake-clock.ts'
import { Chance } from '../../support/chance.ts'
import {
  contextOf,
  isAfter,
  isOpen,
  leadsTo,
  lineOf,
  newest,
  type RefEdge,
  type RefFold,
  type RefLane,
  type RefNode,
  type RefTurn,
  refNode,
  transcriptOf,
} from './reference.ts'
import { followersOf, isHopeless, isVersionOf, lastNode } from './reference-rules.ts'

const SHOWN = { isExcluded: false, isDeleted: false }

const ENGINE = '01900000-0000-7000-8000-00000000eeee'

/** A conversation in a store beside what the reference has of it, and how the two are compared. */
export abstract class RandomWorld {
  readonly done: string[] = []
  protected readonly chance: Chance
  protected readonly store: LocalStore = memoryStore({ keep: 1_000_000 })
  protected readonly clock = fakeClock()
  protected readonly ledger: Ledger
  protected readonly lanes: RefLane[] = []
  /** The conversations of children. */
  protected readonly children: RefLane[] = []
  protected readonly rootId: Id
  protected count = 0
  protected isClaiming = false
  /** Something was tried since it was last compared. */
  private isTouched = true
  touched: RefLane

  constructor(seed: number) {
    this.chance = new Chance(seed)
    this.ledger = new Ledger({
      store: this.store,
      clock: this.clock,
      kinds: BUILT_IN_KINDS,
      listener: { claims: () => (this.isClaiming ? CLAIMS : null), committed: () => undefined, mayWait: () => false },
    })
    this.ledger.endTurns = endTurns
    this.ledger.tellChanges = tellChanges
    this.rootId = this.newId()
    this.touched = this.addLane(this.rootId, null)
  }

  protected tick(): void {
    this.clock.advance(1).catch(() => undefined)
  }

  /** The reference is wrong from now on: a test of the comparison. */
  damage(): void {
    for (const turn of this.lanes.flatMap(({ turns }) => turns))
      turn.state = turn.state === 'ended' ? 'queued' : 'ended'
  }

  /** The lane that was last changed, or each, is as the reference has it: for people, page by page, and for its model. */
  compare(isWhole: boolean): void {
    if (!isWhole && !this.isTouched) return
    this.isTouched = false
    for (const lane of isWhole ? [...this.lanes, ...this.children] : [this.touched]) this.compareLane(lane, isWhole)
  }

  protected compareLane(lane: RefLane, isWhole: boolean): void {
    const row = this.store.conversation(lane.id)
    if (row === undefined) throw new Error(`the lane ${lane.id} is not there`)
    const own = lineOf(lane.head).filter((turn) => turn.lane === lane)
    const ids = own.map(({ id }) => id)
    same(
      'turns',
      turnsBackward(this.store, row, { last: row.turnCount - 1, limit: 1_000 }).map(({ id }) => id),
      ids,
    )
    if (isWhole) {
      same(
        'turns forward',
        turnsForward(this.store, row, { first: 0, limit: 1_000 }).map(({ id }) => id),
        ids,
      )
      for (const turn of lane.turns) this.compareTurn(turn)
    }
    const looked = isWhole ? own : own.slice(-3)
    const seen = looked.flatMap(({ id }) => seenBy(this.store.nodesOf(id))).map(({ nodeId }) => nodeId)
    same('transcript', seen, transcriptOf(looked))
    for (const turn of own.slice(-2)) this.compareTurn(turn)
    const head = lane.head
    const last = head === null ? undefined : lastNode(head)
    if (head === null || last === undefined || head.lane !== lane) return
    const node = this.node(last.id)
    // What was made after it and leads to it comes in the order in which it ended, which the reference does not know.
    if (head.isByHand && head.nodes.slice(head.nodes.indexOf(last)).some((one) => leadsTo(head, one, last))) return
    same(
      'context',
      shownTo(this.store, node, 1_000)
        .map(wordOf)
        .filter((word) => word !== ''),
      contextOf(head, last),
    )
  }

  protected compareTurn({ id, state, nodes }: RefTurn): void {
    const stored = this.store.nodesOf(id).filter(({ kind }) => kind !== 'summary')
    same(
      'nodes',
      stored.map((node) => `${node.id} ${node.state}`),
      nodes.map((node) => `${node.id} ${node.state}`),
    )
    same('state', [this.store.turn(id)?.state ?? ''], [state])
  }

  audit(): void {
    const wrong = auditTree(readTree(this.store, this.rootId), ANYWHERE)
    if (wrong.length > 0) throw new Error(wrong.map(({ type, message }) => `${type}: ${message}`).join('\n'))
  }

  // The reference.

  protected cancelled(turn: RefTurn, isRestart: boolean): void {
    if (turn.isCancelled) return
    turn.isCancelled = true
    turn.isRestarted = isRestart
    for (const node of turn.nodes) if (isOpen(node) && node.state !== 'running') node.state = 'stopped'
    for (const child of this.childrenOf(turn)) this.cancelled(child, false)
    this.settle(turn)
  }

  /** What comes after a node that was stopped is stopped too. */
  protected ended(turn: RefTurn, node: RefNode): void {
    if (turn.isByHand) this.spread(turn, node)
    else if (node.state === 'stopped' || node.isAskedToStop) {
      for (const one of followersOf(turn, node)) if (one.state === 'pending') one.state = 'stopped'
    }
    this.settle(turn)
  }

  /** Over edges: after a stop all is stopped, what depends on what did not finish is left out. */
  private spread(turn: RefTurn, node: RefNode): void {
    const isStopped = node.state === 'stopped' || node.isAskedToStop
    for (const one of turn.nodes) {
      const edge = one.edges?.find(({ from, type }) => {
        return from === node && (isStopped || (type === 'dependency' && node.state !== 'finished'))
      })
      if (edge === undefined || one.state !== 'pending') continue
      one.state = isStopped ? 'stopped' : 'skipped'
      this.spread(turn, one)
    }
  }

  protected settle(turn: RefTurn): void {
    if (turn.state === 'ended' || turn.nodes.some(isOpen) || this.childrenOf(turn).length > 0) return
    if (turn.isByHand && this.grew(turn)) return this.settle(turn)
    const wasRunning = turn.state === 'running'
    turn.state = 'ended'
    const next = turn.lane.turns.find(({ state }) => state === 'queued')
    if (wasRunning && next !== undefined) next.state = 'running'
  }

  /** What people said is not the last word: an answer comes after it, or a word that it was stopped. */
  private grew(turn: RefTurn): boolean {
    const isLast = (node: RefNode) => node.by === null && !turn.nodes.some(({ edges }) => edges?.some(isFrom(node)))
    const leaf = turn.nodes.findLast(isLast)
    if (leaf === undefined || leaf.kind !== 'user' || turn.state === 'queued') return false
    const { isCancelled } = turn
    const id = this.store.nodesOf(turn.id)[turn.nodes.length]?.id ?? ''
    const edges: RefEdge[] = [{ from: leaf, type: 'sequence' }]
    turn.nodes.push(
      refNode('agent', { id, state: isCancelled ? 'finished' : 'pending', edges, isPlaceholder: isCancelled }),
    )
    return true
  }

  /** The runs that its tasks have started and that go on. */
  protected abstract childrenOf(turn: RefTurn): RefTurn[]

  protected addLane(id: Id, base: RefTurn | null): RefLane {
    const lane: RefLane = { id, head: base, base, isArchived: false, turns: [] }
    this.lanes.push(lane)
    return lane
  }

  protected addTurn(lane: RefLane, given: Pick<RefTurn, 'id' | 'state' | 'nodes'> & Partial<RefTurn>): RefTurn {
    const turn: RefTurn = {
      lane,
      before: lane.head,
      merged: [],
      isByHand: false,
      isCancelled: false,
      isRestarted: false,
      fold: null,
      host: null,
      ...given,
    }
    lane.turns.push(turn)
    lane.head = turn
    return turn
  }

  /** A turn made anew: what is kept, what is done again, and the message that reads the results. */
  protected addCopy(lane: RefLane, { kept, source, turnId, again, text, about }: Copying): void {
    const places = source.nodes.filter((node, at) => !isVersionOf(node, source.nodes.slice(0, at)))
    const nodes = places.map(newest).filter((node) => kept.includes(node) || again?.includes(node))
    const copies = copiesOf(nodes)
    for (const [node, copy] of copies) {
      if (node === about && text !== undefined) Object.assign(copy, { ...SHOWN, text })
      if (again?.includes(node))
        Object.assign(copy, { ...SHOWN, state: 'pending', text: '', isFailedChild: false, calls: [] })
    }
    const all = [...copies.values()]
    const isOver = again?.every(({ kind }) => kind === 'agent')
    const { isByHand } = source
    const last = about === undefined ? undefined : copies.get(about)
    const edges: RefNode['edges'] = isByHand && last !== undefined ? [{ from: last, type: 'sequence' }] : null
    const next = isOver === true ? [] : [refNode('agent', { state: 'pending', edges })]
    const { merged } = source
    const turn = this.addTurn(lane, { id: turnId, state: 'running', nodes: [...all, ...next], isByHand, merged })
    this.skipHopeless(turn)
    this.settle(turn)
    this.bind(turn)
    turn.fold = movedFold(source, source.fold, copies)
  }

  private skipHopeless(turn: RefTurn): void {
    for (const node of turn.nodes) {
      if (node.state !== 'pending' || node.edges?.some(isHopeless) !== true) continue
      node.state = 'skipped'
      this.spread(turn, node)
    }
  }

  /** The reference learns which ids the nodes of a new turn have; there must be as many. */
  protected bind({ id, nodes }: RefTurn): void {
    const stored = this.store.nodesOf(id)
    same(
      'made',
      stored.map(({ kind, purpose, state }) => `${purpose === 'summarize' ? 'sum' : KINDS[kind]} ${state}`),
      nodes.map(({ kind, state }) => `${kind} ${state}`),
    )
    for (const [at, node] of nodes.entries()) node.id = stored[at]?.id ?? ''
  }

  protected anyNode(lane: RefLane, isWanted: (node: RefNode) => boolean = () => true) {
    const all = lane.turns.flatMap((turn) => turn.nodes.filter(isWanted).map((node) => ({ turn, node })))
    return all.length === 0 ? undefined : this.chance.pick(all)
  }

  protected node(id: Id): Node {
    const node = this.store.node(id)
    if (node === undefined) throw new Error(`there is no node ${id}`)
    return node
  }

  protected claimOf({ id }: RefNode) {
    const { rootId, engineId, epoch } = this.node(id)
    return { rootId, nodeId: id, engineId: engineId ?? '', epoch }
  }

  protected newId(): Id {
    return `01900000-0000-7000-8000-${String(++this.count).padStart(12, '0')}`
  }

  /** The rule does what the reference says, or refuses for the reason it says. */
  protected expect<T>(what: string, expected: string, plan: (draft: Draft) => T): T | undefined {
    let reason = 'done'
    let made: T | undefined
    try {
      made = this.commit(plan)
    } catch (error) {
      const { details } = error as { details?: { reason?: string } }
      if (details?.reason === undefined) throw error
      reason = details.reason
    }
    if (reason !== expected) throw new Error(`${what} was ${reason}, and should have been ${expected}`)
    return made
  }

  protected commit<T>(plan: (draft: Draft) => T): T {
    this.isTouched = true
    let failure: unknown
    let result: T | undefined
    // A refusal at once comes as a rejection: it is caught here, where it is made.
    const guarded = (draft: Draft) => {
      try {
        result = plan(draft)
      } catch (error) {
        failure = error
        throw STOP
      }
    }
    const stored = this.ledger.commit({ kind: 'mutate', rootId: this.rootId, plan: guarded })
    if (stored instanceof Promise) stored.catch(() => undefined)
    if (failure !== undefined) throw failure
    return result as T
  }
}

function isFrom(node: RefNode): (edge: RefEdge) => boolean {
  return ({ from }) => from === node
}

/** With one another as the nodes are with one another. */
function copiesOf(nodes: readonly RefNode[]): Map<RefNode, RefNode> {
  const copies = new Map<RefNode, RefNode>(nodes.map((node) => [node, { ...node, isAskedToStop: false, by: null }]))
  for (const [node, copy] of copies) {
    copy.caller = node.caller === null ? null : (copies.get(node.caller) ?? null)
    copy.calls = node.calls.map((task) => copies.get(task) ?? task)
    copy.edges = node.edges === null ? null : edgesAmong(copies, node.edges)
    if (copy.folds !== null) copy.folds = { ...copy.folds, target: copies.get(newestOf(copy.folds.target)) ?? null }
  }
  return copies
}

/** Edges to what is copied, as the copies have them. */
function edgesAmong(copies: ReadonlyMap<RefNode, RefNode>, edges: readonly RefEdge[]): RefEdge[] {
  return edges.flatMap(({ from, type }) => {
    const copy = copies.get(from)
    return copy === undefined ? [] : [{ from: copy, type }]
  })
}

function newestOf(node: RefNode | null): RefNode {
  return node === null ? refNode('agent') : newest(node)
}

/** The newest summary inside a turn of which all that it stands for was kept. */
function movedFold(source: RefTurn, fold: RefFold | null, copies: ReadonlyMap<RefNode, RefNode>): RefFold | null {
  if (fold === null) return null
  const earlier = movedFold(source, fold.earlier, copies)
  const sum = fold.sum === null ? undefined : copies.get(fold.sum)
  const { upTo } = fold
  if (sum === undefined || sum.state !== 'finished' || upTo === null) return earlier
  const isFolded = (node: RefNode) => upTo !== 'none' && !isAfter(source, upTo)(node) && node.by === null
  const folded = source.nodes.filter(isFolded)
  const isKept = (node: RefNode) => copies.get(node)?.state === node.state
  if (folded.some((node) => node.kind !== 'user' && !isKept(node))) return earlier
  const last = folded.findLast(isKept)
  return { ...fold, id: sum.id, sum, upTo: last === undefined ? 'none' : (copies.get(last) ?? 'none'), earlier }
}

const STOP = new Error('the rule has refused')

interface Copying {
  readonly kept: readonly RefNode[]
  readonly source: RefTurn
  readonly turnId: Id
  readonly again: readonly RefNode[] | null
  /** What people say instead. */
  readonly text?: string
  /** What is gone on from. */
  readonly about?: RefNode
}

const CLAIMS = { engineId: ENGINE, running: 0, take: () => null, giveBack: () => undefined }
const ANYWHERE = { kinds: BUILT_IN_KINDS, isAlive: () => true }
const KINDS: Readonly<Record<string, string>> = { user_message: 'user', agent_message: 'agent', task: 'task' }

function wordOf(node: Node): string {
  if (node.kind === 'summary') return textOf(node.output.content ?? '')
  if (node.kind === 'user_message') return textOf(node.input.content ?? '')
  if (node.kind !== 'task') return textOf(node.output.content ?? '')
  const text = textOf(resultContent(node))
  return text.startsWith('This result was left out') ? 'LEFT OUT' : `${node.state} ${textOf(node.output.content ?? '')}`
}

function same(what: string, found: readonly string[], expected: readonly string[]): void {
  if (found.length === expected.length && found.every((one, at) => one === expected[at])) return
  throw new Error(`${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`)
}
