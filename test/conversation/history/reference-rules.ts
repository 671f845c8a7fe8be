import { isOpen, leadsTo, lineOf, type RefEdge, type RefLane, type RefNode, type RefTurn } from './reference.ts'

export function runningOf({ turns }: RefLane): RefTurn | undefined {
  return turns.find(({ state }) => state === 'running')
}

export function lastNode({ nodes }: RefTurn): RefNode | undefined {
  return nodes.findLast((node) => node.kind === 'agent') ?? nodes.at(-1)
}

/** What waits for a node: the message that reads its results; for a call that sums up, the one it was made for. */
export function followersOf(turn: RefTurn, node: RefNode): RefNode[] {
  if (turn.isByHand) return turn.nodes.filter((one) => leadsTo(turn, node, one))
  const target = node.folds?.target ?? null
  if (target !== null) return [...versionsOf(target), ...followersOf(turn, target)]
  if (node.kind === 'sum') return []
  const nodes = turn.nodes.filter(({ kind }) => kind !== 'sum')
  const message = node.kind === 'task' ? node.caller : node
  if (message === null) return []
  if (node.kind === 'user') return nodes.filter(({ kind }) => kind !== 'user')
  if (node.kind === 'task') return readersOf(nodes, node, message)
  const at = nodes.indexOf(firstVersion(nodes, message))
  return nodes.slice(at + 1).filter((one) => !isVersionOf(one, nodes.slice(0, at + 1)))
}

/** The message that reads the result of a call, and what comes after it. */
function readersOf(nodes: readonly RefNode[], task: RefNode, caller: RefNode): RefNode[] {
  const at = nodes.indexOf(caller)
  const reader = nodes.findIndex((one, index) => index > at && one.kind === 'agent')
  if (reader < 0) return []
  return nodes.slice(reader).filter((one) => one !== task && !isVersionOf(one, nodes.slice(0, reader)))
}

/** Where a version stands. */
function firstVersion(nodes: readonly RefNode[], node: RefNode): RefNode {
  const before = nodes.find(({ by }) => by === node)
  return before === undefined ? node : firstVersion(nodes, before)
}

function versionsOf(node: RefNode): RefNode[] {
  return node.by === null ? [node] : [node, ...versionsOf(node.by)]
}

/** A version of a node that was made before: it stands where that one stood. */
export function isVersionOf(node: RefNode, earlier: readonly RefNode[]): boolean {
  return earlier.some((one) => one.by === node || (one.by !== null && isVersionOf(node, [one.by])))
}

/** All that leads to it has ended. */
export function mayRun(turn: RefTurn, node: RefNode): boolean {
  if (node.kind === 'task' || node.kind === 'sum') return true
  return turn.nodes.filter((one) => isOpen(one) && one !== node).every((one) => !followersOf(turn, one).includes(node))
}

export function idleRefusal(lane: RefLane): string {
  if (lane.isArchived) return 'archived'
  return lane.turns.some(({ state }) => state !== 'ended') ? 'busy' : 'done'
}

export function isLeaf(turn: RefTurn, node: RefNode): boolean {
  return node.kind === 'agent' && followersOf(turn, node).length === 0
}

export function rerunRefusal(lane: RefLane, turn: RefTurn, node: RefNode): string {
  if (node.by !== null) return 'replaced'
  if (node.kind !== 'agent') return 'wrong_kind'
  if (node.state !== 'finished') return 'wrong_state'
  if (!isLeaf(turn, node)) return 'has_followers'
  if (!lineOf(lane.head).includes(turn)) return 'replaced'
  const idle = idleRefusal(lane)
  return idle !== 'done' ? idle : lane.head === turn ? 'done' : 'later_turns'
}

export function editRefusal(lane: RefLane, turn: RefTurn, node: RefNode): string {
  if (node.by !== null) return 'replaced'
  if (node.kind !== 'user') return 'wrong_kind'
  return lineOf(lane.head).includes(turn) ? idleRefusal(lane) : 'replaced'
}

const FAILED = ['errored', 'stopped']

export function retryRefusal(lane: RefLane, turn: RefTurn, node: RefNode): string {
  if (node.by !== null) return 'replaced'
  if (node.kind === 'user' || node.kind === 'sum') return 'wrong_kind'
  if (!FAILED.includes(node.state) && !node.isFailedChild) return 'wrong_state'
  if (!lineOf(lane.head).includes(turn)) return 'unsure'
  if (turn.state !== 'ended') return inPlaceRefusal(turn, node)
  const idle = idleRefusal(lane)
  return idle !== 'done' ? idle : lane.head === turn ? 'done' : 'later_turns'
}

function inPlaceRefusal(turn: RefTurn, node: RefNode): string {
  if (turn.isCancelled) return 'busy'
  if (followersOf(turn, node).some(({ state, by }) => state !== 'pending' && by === null)) return 'used'
  return node.edges?.some(isHopeless) === true ? 'wrong_state' : 'done'
}

/** What depends on this will not run. */
export function isHopeless({ from, type }: RefEdge): boolean {
  return type === 'dependency' && from.by === null && !isOpen(from) && from.state !== 'finished'
}

export function adoptRefusal(lane: RefLane, turn: RefTurn, node: RefNode): string {
  if (node.by !== null) return 'replaced'
  if (node.state !== 'finished') return 'wrong_state'
  if (!isLeaf(turn, node)) return 'has_followers'
  if (lineOf(lane.head).includes(turn)) return 'done'
  const idle = idleRefusal(lane)
  if (idle !== 'done') return idle
  return lane.turns.some(({ before }) => before === turn) ? 'has_followers' : 'done'
}

/** The first message on the way to a node that has started children. */
export function firstWithChildren(turn: RefTurn, node: RefNode): RefNode | undefined {
  const led = turn.nodes.filter((one) => one.by === null && (one === node || followersOf(turn, one).includes(node)))
  return led.find(({ calls }) => calls.some(({ delegates }) => delegates))
}

/** What a fork at a node keeps of its turn; `whole` when the node was its last word. */
export function cutOf(turn: RefTurn, node: RefNode, again?: RefNode): RefNode[] | 'whole' | 'open' {
  const message = again ?? (node.kind === 'task' ? node.caller : node.calls.length > 0 ? node : null)
  if (message === null) {
    if (turn.state === 'ended' && isLeaf(turn, node)) return 'whole'
    const led = turn.nodes.filter((one) => one.by === null && (one === node || followersOf(turn, one).includes(node)))
    return led.some(isOpen) ? 'open' : led
  }
  const before = turn.nodes.filter(
    (one) => one.by === null && (one === message || followersOf(turn, one).includes(message)),
  )
  const kept = [...before, ...message.calls]
  return kept.some(isOpen) ? 'open' : kept
}

export function firstOf(lane: RefLane): RefTurn | undefined {
  return lineOf(lane.head).find((turn) => turn.lane === lane)
}

export function compressRefusal(lane: RefLane, from: RefTurn | null, to: RefTurn): string {
  const line = lineOf(lane.head).filter((turn) => turn.lane === lane)
  const start = from ?? line[0] ?? to
  if (!line.includes(start) || !line.includes(to)) return 'replaced'
  const [a, b] = [line.indexOf(start), line.indexOf(to)]
  if (a > b) return 'not_related'
  if (to.state !== 'ended') return 'wrong_state'
  if (b === line.length - 1) return 'is_last'
  const isTorn = activeFolds(line).some(({ first, last }) => {
    const isInside = last >= a && last <= b
    return isInside ? first < a : last > b && first <= b
  })
  return isTorn ? 'inside_summary' : 'done'
}

/** The summaries that are shown, each with the places of the turns it stands for. */
export function activeFolds(line: readonly RefTurn[]): { first: number; last: number }[] {
  const found: { first: number; last: number }[] = []
  for (let at = line.length - 1; at >= 0; ) {
    const fold = line[at]?.fold ?? null
    if (fold === null) {
      at--
      continue
    }
    const first = fold.from === null ? 0 : line.indexOf(fold.from)
    found.push({ first, last: at })
    at = first - 1
  }
  return found
}

export function uncompressRefusal(lane: RefLane, turn: RefTurn): string {
  const line = lineOf(lane.head).filter((one) => one.lane === lane)
  const at = line.indexOf(turn)
  if (at < 0) return 'replaced'
  return activeFolds(line).some(({ first, last }) => first <= at && at < last) ? 'inside_summary' : 'done'
}

export function forkRefusal(turn: RefTurn, node: RefNode, again?: RefNode): string {
  if (node.by !== null) return 'replaced'
  if (node.kind === 'sum') return 'wrong_kind'
  if (isOpen(node)) return 'wrong_state'
  if (node.isDeleted) return 'deleted'
  return cutOf(turn, node, again) === 'open' ? 'open_calls' : 'done'
}

/** The last turn that a lane has of its own. */
export function lastOwn(lane: RefLane): RefTurn | undefined {
  return lineOf(lane.head).findLast((turn) => turn.lane === lane)
}

export function mergeRefusal(lane: RefLane, others: readonly (RefTurn | undefined)[]): string {
  const bad = others.find((turn) => turn?.state !== 'ended')
  if (bad !== undefined) return 'busy'
  return others.length === 0 || others.includes(undefined) ? 'not_related' : idleRefusal(lane)
}
