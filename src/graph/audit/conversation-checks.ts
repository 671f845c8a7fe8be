import type { Conversation, Id, Link } from '../rows.ts'
import type { Check } from './check.ts'
import { finding } from './finding.ts'
import type { TreeRows } from './tree-rows.ts'
import { placeOfConversation } from './turn-checks.ts'

/** A child conversation was made by a task that has a delegation to it. */
export const orphans: Check = {
  types: ['orphan_child'],
  *find({ conversations, links }) {
    const known = new Set<string>()
    for (const link of links.values()) known.add(`${link.childConversationId} ${link.taskId} ${link.hostTurnId}`)
    for (const conversation of conversations.values()) {
      const { id, type, parentTaskId, parentTurnId } = conversation
      if (type === 'user' || known.has(`${id} ${parentTaskId} ${parentTurnId}`)) continue
      const message = `The conversation ${id} of "${conversation.agent.name}" is a child, but nothing delegated to it.`
      yield finding('orphan_child', placeOfConversation(conversation), message)
    }
  },
}

/** Where a conversation stands in its tree is what its parent says. */
export const parentage: Check = {
  types: ['wrong_parentage'],
  *find(tree) {
    for (const conversation of tree.conversations.values()) {
      const wrong = wrongPlace(tree, conversation)
      if (wrong === undefined) continue
      const message = `The conversation ${conversation.id} of "${conversation.agent.name}": ${wrong}.`
      yield finding('wrong_parentage', placeOfConversation(conversation), message)
    }
  },
}

function wrongPlace({ rootId, conversations }: TreeRows, row: Conversation): string | undefined {
  if (row.rootId !== rootId) return `it is of the tree ${row.rootId}, and was found in ${rootId}`
  if (row.path.at(-1) !== row.agent.name) return `its path ends in "${row.path.at(-1)}"`
  const forked = wrongFork(conversations, row)
  if (forked !== undefined) return forked
  if (row.type === 'user') return wrongRoot(rootId, row)
  const parent = conversations.get(row.parentConversationId ?? '')
  if (parent === undefined) return `its parent ${row.parentConversationId} is not there`
  if (row.depth !== parent.depth + 1) return `its depth is ${row.depth}, that of its parent ${parent.depth}`
  const isBelow = row.path.length === parent.path.length + 1 && parent.path.every((name, at) => row.path[at] === name)
  return isBelow ? undefined : 'its path does not begin with that of its parent'
}

/** A lane is where the one it was forked from is. */
function wrongFork(conversations: ReadonlyMap<Id, Conversation>, row: Conversation): string | undefined {
  const from = row.lane?.from ?? null
  if (from === null) return undefined
  const source = conversations.get(from.laneId)
  if (source === undefined) return `the lane ${from.laneId} it was forked from is not there`
  return source.depth === row.depth
    ? undefined
    : `its depth is ${row.depth}, that of where it was forked ${source.depth}`
}

function wrongRoot(rootId: Id, row: Conversation): string | undefined {
  if (row.lane?.from != null) return undefined
  if (row.id !== rootId) return 'it is a root, but not that of its tree'
  return row.parentConversationId === null && row.depth === 0 ? undefined : 'it is a root and has a parent'
}

/** A75: what goes on in the background, or is still to be told, is kept by its host; what was told is not. */
export const background: Check = {
  types: ['wrong_background'],
  *find({ conversations, links }) {
    const due = dueLinks(links)
    for (const conversation of conversations.values()) {
      const right = due.get(conversation.id) ?? []
      const { background: kept } = conversation
      if (right.length === kept.length && right.every((id) => kept.includes(id))) continue
      const message = `The conversation ${conversation.id} keeps ${kept.length} delegations in the background; ${right.length} are open or to be told.`
      yield finding('wrong_background', placeOfConversation(conversation), message)
    }
  },
}

/** By the conversation of their host, in order. */
export function dueLinks(links: ReadonlyMap<Id, Link>): Map<Id, Id[]> {
  const due = new Map<Id, Id[]>()
  for (const { id, mode, hostConversationId, deliveredTo, outcome, wake } of links.values()) {
    if (mode !== 'background' || deliveredTo !== null || (outcome !== null && wake !== 'auto')) continue
    const known = due.get(hostConversationId)
    if (known === undefined) due.set(hostConversationId, [id])
    else known.push(id)
  }
  return due
}
