import { joinStatus } from '../graph/kinds.ts'
import type { TreeRows } from '../graph/reader.ts'
import type { Id, Link, Node } from '../graph/rows.ts'
import { isJoin } from '../rules/delegation/join.ts'
import { nextTryOf } from '../rules/delegation/retry-child.ts'
import { type Finding, type FindingPlace, finding } from '../store/archive.ts'
import type { Check } from './check.ts'
import { placeOfNode } from './node-checks.ts'

function placeOf({ id, rootId, hostConversationId }: Link): FindingPlace {
  return { subject: 'link', id, rootId, conversationId: hostConversationId }
}

/** Both ends of a delegation exist. */
export const linkEnds: Check = {
  types: ['dangling_child', 'dangling_task'],
  *find(tree) {
    for (const link of tree.links.values()) {
      const child = tree.turns.get(link.id)
      const name = `The delegation ${link.id} to "${link.agentName}"`
      if (!tree.nodes.has(link.taskId)) {
        yield finding(
          'dangling_task',
          placeOf(link),
          `${name} was started by the task ${link.taskId}, which is not there.`,
        )
      }
      if (child === undefined || !tree.conversations.has(link.childConversationId)) {
        yield finding(
          'dangling_child',
          placeOf(link),
          `${name} has no child: ${link.childConversationId} is not there.`,
        )
      } else if (child.conversationId !== link.childConversationId) {
        yield finding('dangling_child', placeOf(link), `${name} has its turn in another conversation than it says.`)
      }
    }
    yield* childless(tree)
  },
}

/** A task that names a child, or waits for one, has a delegation. */
function* childless(tree: TreeRows): Generator<Finding> {
  const tasks = new Set([...tree.links.values()].map(({ taskId }) => taskId))
  for (const node of tree.nodes.values()) {
    const waits = node.state === 'waiting' && node.wait?.on === 'children' && node.metadata['waits'] === undefined
    // A copy has the result of a delegation, which stays with the original.
    if (node.metadata['copyOf'] !== undefined) continue
    if ((!waits && node.output.subagent === undefined) || tasks.has(node.id)) continue
    const child = node.output.subagent?.child_conversation_id ?? 'its child'
    const message = `The ${node.kind} ${node.id} says that it delegated to ${child}, but there is no such delegation.`
    yield finding('dangling_child', placeOfNode(node), message)
  }
}

/** A64: each try of a delegation has exactly one child. */
export const twins: Check = {
  types: ['two_children'],
  *find(tree) {
    const counts = new Map<Id, number>()
    for (const link of tree.links.values()) {
      if (link.mode !== 'parked' || isTriedAgain(tree, link)) continue
      counts.set(link.taskId, (counts.get(link.taskId) ?? 0) + 1)
    }
    for (const [id, count] of counts) {
      const task = tree.nodes.get(id)
      if (count < 2 || task === undefined) continue
      yield finding('two_children', placeOfNode(task), `The task ${id} was delegated ${count} times.`)
    }
  },
}

/** The host knows the end of its child, and nobody waits for a child that has ended. */
export const linkOutcomes: Check = {
  types: ['wrong_link_outcome', 'waits_for_ended', 'undelivered'],
  *find(tree) {
    for (const link of tree.links.values()) {
      const child = tree.turns.get(link.id)
      if (child === undefined) continue
      const task = tree.nodes.get(link.taskId)
      const name = `The delegation ${link.id} to "${link.agentName}"`
      if (link.outcome === null && child.state === 'ended' && child.outcome !== null) {
        yield finding(
          'waits_for_ended',
          placeOf(link),
          `${name} is open, but its child has ended: ${child.outcome.status}.`,
        )
      } else if (JSON.stringify(child.outcome) !== JSON.stringify(link.outcome)) {
        yield finding('wrong_link_outcome', placeOf(link), `${name} has another outcome than its child.`)
      } else if (task !== undefined && link.mode === 'parked') yield* taskEnd(tree, link, task)
    }
    yield* endedJoins(tree)
  },
}

function* taskEnd(tree: TreeRows, link: Link, task: Node): Generator<Finding> {
  const isLast = !isTriedAgain(tree, link)
  if (link.outcome !== null && task.state === 'waiting' && isLast) {
    const message = `The task ${task.id} still waits for "${link.agentName}", which has ended: ${link.outcome.status}.`
    yield finding('waits_for_ended', placeOf(link), message)
  } else if (link.outcome === null && task.state === 'finished') {
    const message = `The task ${task.id} has finished, but its child "${link.agentName}" has not.`
    yield finding('wrong_link_outcome', placeOf(link), message)
  } else if (task.state === 'finished' && link.deliveredTo !== task.id) {
    const message = `The task ${task.id} has finished, but the end of "${link.agentName}" was not delivered to it.`
    yield finding('undelivered', placeOf(link), message)
  }
}

/** Yields waits for several background children that should be over. */
function* endedJoins({ nodes, links }: TreeRows): Generator<Finding> {
  for (const node of nodes.values()) {
    const { wait } = node
    if (!isJoin(node) || wait === null) continue
    const refs = wait.refs.map((id) => links.get(id))
    if (refs.includes(undefined)) continue
    const statuses = refs.map((link) => link?.outcome?.status ?? null)
    if (joinStatus(wait.join, statuses) === undefined) continue
    const message = `The ${node.kind} ${node.id} still waits for ${wait.refs.length} children, but what it waits for has happened.`
    yield finding('waits_for_ended', placeOfNode(node), message)
  }
}

/** True where another child has replaced the one that failed. */
function isTriedAgain({ links }: TreeRows, { id }: Link): boolean {
  return nextTryOf({ link: (one) => links.get(one) }, id) !== undefined
}

export const waits: Check = {
  types: ['waits_for_nothing'],
  *find({ nodes, links }) {
    for (const node of nodes.values()) {
      if (node.state !== 'waiting') continue
      const { wait } = node
      const missing = wait?.on === 'children' ? wait.refs.find((id) => !links.has(id)) : undefined
      if (wait !== null && missing === undefined) continue
      const what = wait === null ? 'does not say for what' : `waits for the delegation ${missing}, which is not there`
      yield finding('waits_for_nothing', placeOfNode(node), `The ${node.kind} ${node.id} is waiting and ${what}.`)
    }
  },
}

/** A child that must end with its host has ended. */
export const lostChildren: Check = {
  types: ['child_of_ended_parent'],
  *find(tree) {
    for (const link of tree.links.values()) {
      const host = tree.turns.get(link.hostTurnId)
      const child = tree.turns.get(link.id)
      if (link.outcome !== null || child === undefined || child.state === 'ended' || host?.state !== 'ended') continue
      const isLeft = link.onParentClose === 'abandon' || (link.mode === 'background' && host.cancel === null)
      if (isLeft || child.cancel !== null) continue
      const message = `The delegation ${link.id} to "${link.agentName}" goes on, but the run it works for has ended.`
      yield finding('child_of_ended_parent', placeOf(link), message)
    }
  },
}
