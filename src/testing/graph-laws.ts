import { expansionIds } from '../graph/expand.ts'
import { nextTryOf } from '../graph/retry-child.ts'
import type { Conversation, Id, Link, Node, Turn } from '../graph/rows.ts'
import { isOpen } from '../graph/states.ts'
import { wrongPlaces } from './place-laws.ts'
import type { TreeRows } from './tree-rows.ts'

/** What is true of a tree after every commit, and so whenever its processes were killed. */
export function brokenGraph(tree: TreeRows): string[] {
  return [
    ...[...tree.nodes.values()].flatMap((node) => [...brokenNode(tree, node), ...callsWithoutTask(tree, node)]),
    ...[...tree.links.values()].flatMap((link) => brokenLink(tree, link)),
    ...[...tree.turns.values()].flatMap((turn) => brokenTurn(tree, turn)),
    ...twins(tree),
    ...wrongPlaces(tree),
    ...[...tree.conversations.values()].flatMap((conversation) => wrongBackground(tree, conversation)),
    ...homeless(tree),
    ...leftBlocks(tree),
  ]
}

function brokenNode(tree: TreeRows, node: Node): string[] {
  const wrong: string[] = []
  const say = (what: string) => wrong.push(`${node.kind} ${node.id} (${node.state}): ${what}`)
  if (isOpen(node.state) !== (node.endedAt === null)) say(`endedAt is ${node.endedAt}`)
  if ((node.state === 'running') !== (node.engineId !== null)) say(`its engine is ${node.engineId}`)
  if (node.state === 'finished' && node.blockers !== 0) say(`it finished with ${node.blockers} blockers`)
  if (node.state !== 'pending' && node.state !== 'awaiting_approval') return wrong
  const blockers = unsatisfied(tree, node)
  if (blockers !== node.blockers) say(`it has ${node.blockers} blockers and ${blockers} unsatisfied edges`)
  return wrong
}

/** Blocking edges that still hold a node back, and one more while its turn is queued. */
function unsatisfied(tree: TreeRows, node: Node): number {
  const turn = tree.turns.get(node.turnId)
  const queued = turn?.state === 'queued' && turn.entryNodeId === node.id ? 1 : 0
  const edges = (tree.edgesTo.get(node.id) ?? []).filter(({ type, from }) => {
    const parent = tree.nodes.get(from)
    if (type === 'branch' || parent === undefined) return false
    return parent.endedAt === null || (type === 'dependency' && parent.state !== 'finished')
  })
  return edges.length + queued
}

/** A79: a stored call has its task, and no result is without its call. */
function callsWithoutTask(tree: TreeRows, node: Node): string[] {
  const calls = node.output.calls ?? []
  if (calls.length === 0) return []
  const ids = expansionIds(node.id, calls.length)
  return calls.flatMap((call, at) => {
    const task = tree.nodes.get(ids[at] ?? '')
    const isIts = task?.kind === 'task' && JSON.stringify(task.input.call) === JSON.stringify(call)
    return isIts ? [] : [`A79 ${node.kind} ${node.id}: call ${at} (${call.name}) has no task`]
  })
}

function brokenLink(tree: TreeRows, link: Link): string[] {
  const wrong: string[] = []
  const say = (what: string) => wrong.push(`link ${link.id} of task ${link.taskId}: ${what}`)
  const task = tree.nodes.get(link.taskId)
  const child = tree.turns.get(link.id)
  if (task === undefined) say('its task is not there')
  if (child === undefined) say('its child is not there')
  if (child !== undefined && child.conversationId !== link.childConversationId)
    say('its child is in another conversation')
  if (JSON.stringify(child?.outcome ?? null) !== JSON.stringify(link.outcome))
    say('its outcome is not that of its child')
  if (link.mode !== 'parked' || task === undefined) return wrong
  if (link.outcome === null && task.state === 'finished') say('its task has finished and its child has not')
  const isLast = !isTriedAgain(tree, link)
  if (link.outcome !== null && task.state === 'waiting' && isLast)
    say('its task still waits for a child that has ended')
  if (task.state === 'finished' && link.deliveredTo !== task.id) say('its outcome was not delivered')
  return wrong
}

/** Another child has taken the place of the one that failed. */
function isTriedAgain({ links }: TreeRows, { id }: Link): boolean {
  return nextTryOf({ link: (one) => links.get(one) }, id) !== undefined
}

function brokenTurn(tree: TreeRows, turn: Turn): string[] {
  const wrong: string[] = []
  const say = (what: string) => wrong.push(`turn ${turn.id} (${turn.state}): ${what}`)
  const nodes = [...tree.nodes.values()].filter(({ turnId }) => turnId === turn.id)
  const links = [...tree.links.values()].filter(({ hostTurnId }) => hostTurnId === turn.id)
  const open = links.filter(({ outcome }) => outcome === null)
  const hasOpenNodes = nodes.some(({ endedAt }) => endedAt === null)
  const live = open.filter(({ released }) => released).length
  if ((turn.state === 'ended') !== (turn.outcome !== null)) say('outcome and state do not fit')
  if (turn.state === 'ended' && hasOpenNodes) say('it has open nodes')
  if (turn.state === 'running' && !hasOpenNodes && open.length === 0) say('nothing in it is open')
  if (turn.account.children !== links.length) say(`it counts ${turn.account.children} children of ${links.length}`)
  if (turn.account.live !== live) say(`it counts ${turn.account.live} children that may run, of ${live}`)
  const conversation = tree.conversations.get(turn.conversationId)
  if ((turn.state === 'running') !== (conversation?.activeTurnId === turn.id)) say('its lane says otherwise')
  if (nodes.length !== turn.nodeCount) say(`it counts ${turn.nodeCount} nodes and has ${nodes.length}`)
  return wrong
}

/** A64: a delegation has exactly one child, each time it is tried. */
function twins(tree: TreeRows): string[] {
  const children = new Map<Id, number>()
  const behind = new Set<Id>()
  for (const link of tree.links.values()) {
    const { taskId, mode } = link
    if (mode === 'parked' && !isTriedAgain(tree, link)) children.set(taskId, (children.get(taskId) ?? 0) + 1)
    if (mode === 'background') behind.add(taskId)
  }
  const isJoin = ({ metadata }: Node) => metadata['waits'] !== undefined
  const parents = [...tree.nodes.values()].filter((node) => {
    return (node.wait?.on === 'children' && !isJoin(node)) || node.output.subagent
  })
  return [
    ...[...children].filter(([, count]) => count > 1).map(([id, count]) => `A64 task ${id} has ${count} children`),
    ...parents.filter(({ id }) => !children.has(id) && !behind.has(id)).map(({ id }) => `A64 task ${id} has no child`),
  ]
}

/** A75: what goes on in the background, or is still to be told, is kept by its host; what was told is not. */
function wrongBackground(tree: TreeRows, { id, background }: Conversation): string[] {
  const wrong: string[] = []
  for (const link of tree.links.values()) {
    if (link.hostConversationId !== id || link.mode !== 'background') continue
    const isKept = background.includes(link.id)
    const isDue = link.deliveredTo === null && (link.outcome === null || link.wake === 'auto')
    if (isKept !== isDue) wrong.push(`A75 link ${link.id} is ${isKept ? '' : 'not '}kept by its host`)
  }
  const unknown = background.filter((one) => tree.links.get(one)?.hostConversationId !== id)
  return [...wrong, ...unknown.map((one) => `A75 conversation ${id} keeps ${one}, which is not its own`)]
}

/** A child conversation knows who made it, and that task has a link to it. */
function homeless(tree: TreeRows): string[] {
  const wrong: string[] = []
  for (const { id, type, parentTaskId, parentTurnId, parentConversationId } of tree.conversations.values()) {
    if (type === 'user') continue
    const isKnown = [...tree.links.values()].some((link) => {
      const isFirst = link.childConversationId === id && link.taskId === parentTaskId
      return isFirst && link.hostTurnId === parentTurnId && link.hostConversationId === parentConversationId
    })
    if (!isKnown) wrong.push(`conversation ${id} is linked to nothing`)
  }
  return wrong
}

function leftBlocks(tree: TreeRows): string[] {
  return tree.blocks
    .filter(({ nodeId, epoch }) => {
      const node = tree.nodes.get(nodeId)
      return node?.state !== 'running' || node.epoch !== epoch
    })
    .map(({ nodeId }) => `a block of live events of ${nodeId} was left`)
}
