import type { TreeRows } from '../graph/reader.ts'
import type { Conversation, Id, Link, Turn } from '../graph/rows.ts'
import { type Finding, finding } from '../store/archive.ts'
import type { Check } from './check.ts'
import { lineIn, placeOfConversation, placeOfTurn } from './turn-checks.ts'

/** Every child conversation was made by a task that has a delegation to it. */
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

/** The place of a conversation in its tree agrees with its parent. */
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
  const owner = conversations.get(rootId)?.owner
  if (owner !== undefined && row.owner !== owner) return `its owner is ${row.owner}, that of its root ${owner}`
  const forked = wrongFork(conversations, row)
  if (forked !== undefined) return forked
  if (row.type === 'user') return wrongRoot(rootId, row)
  const parent = conversations.get(row.parentConversationId ?? '')
  if (parent === undefined) return `its parent ${row.parentConversationId} is not there`
  if (row.depth !== parent.depth + 1) return `its depth is ${row.depth}, that of its parent ${parent.depth}`
  const isBelow = row.path.length === parent.path.length + 1 && parent.path.every((name, at) => row.path[at] === name)
  return isBelow ? undefined : 'its path does not begin with that of its parent'
}

/** A lane is in the tree and conversation of the lane it was forked from. */
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

/** A75: a host's conversation lists its background delegations until it has heard their end, and no longer. */
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

/** Groups links by the conversation of their host, in order. */
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

/** The counts of running and waiting delegations are right after every commit, and nobody waits for room that is free. */
export const places: Check = {
  types: ['wrong_places', 'held_back'],
  *find(tree) {
    const open = [...tree.links.values()].filter(({ outcome }) => outcome === null)
    for (const conversation of tree.conversations.values()) yield* wrongKeys(conversation, open)
    for (const turn of tree.turns.values()) yield* wrongTree(tree, turn, open)
    for (const link of open) {
      if (!mayRun(tree, link, open)) continue
      const place = {
        subject: 'link',
        id: link.id,
        rootId: link.rootId,
        conversationId: link.hostConversationId,
      } as const
      yield finding('held_back', place, `The delegation ${link.id} waits for room although there is some.`)
    }
  },
}

function* wrongKeys(conversation: Conversation, open: readonly Link[]): Generator<Finding> {
  const { id, places: counted } = conversation
  const own = open.filter(({ hostConversationId, keyed }) => hostConversationId === id && keyed !== null)
  if (own.length === 0 && counted === null) return
  const keys = new Set([...own.map(({ keyed }) => keyed?.key ?? ''), ...(counted ?? []).map(({ key }) => key)])
  for (const key of keys) {
    const { live = 0, waiting = [] } = counted?.find((entry) => entry.key === key) ?? {}
    const running = own.filter((link) => isOf(link, key, true))
    const queued = own.filter((link) => isOf(link, key, false))
    const isRight = live === running.length && waiting.length === queued.length
    if (isRight && queued.every((link) => waiting.includes(link.id))) continue
    const said = `${live} that run and ${waiting.length} that wait`
    const message = `The conversation ${id}, key ${key}: it counts ${said}, of ${running.length} and ${queued.length}.`
    yield finding('wrong_places', placeOfConversation(conversation), message)
  }
}

function isOf({ keyed, released }: Link, key: string, isReleased: boolean): boolean {
  return keyed?.key === key && released === isReleased
}

function* wrongTree(tree: TreeRows, turn: Turn, open: readonly Link[]): Generator<Finding> {
  const { id, tree: counted } = turn
  if (counted === null || counted.limit === null) return
  const live = open.filter(
    ({ released, hostTurnId }) => released && lineIn(tree, hostTurnId).some((one) => one.id === id),
  )
  if (live.length === counted.live) return
  const message = `The turn ${id}: its tree counts ${counted.live} delegations that run, of ${live.length}.`
  yield finding('wrong_places', placeOfTurn(turn), message)
}

/** True where everything that limits a waiting link has room for it. */
function mayRun(tree: TreeRows, link: Link, open: readonly Link[]): boolean {
  const host = tree.turns.get(link.hostTurnId)
  if (host === undefined || link.released || tree.turns.get(link.id)?.cancel !== null) return false
  if (host.account.live >= host.limits.concurrency) return false
  const isFirst = open.every((other) => {
    const isBefore = other.hostTurnId === link.hostTurnId && other.ordinal < link.ordinal && !other.released
    return !isBefore || other.keyed !== null
  })
  if (link.keyed === null && !isFirst) return false
  return hasKeyRoom(tree, link) && hasTreeRoom(tree, host)
}

function hasKeyRoom(tree: TreeRows, { id, keyed, hostConversationId }: Link): boolean {
  if (keyed === null) return true
  const entry = tree.conversations.get(hostConversationId)?.places?.find(({ key }) => key === keyed.key)
  return entry !== undefined && entry.live < keyed.limit && entry.waiting[0] === id
}

function hasTreeRoom(tree: TreeRows, host: Turn): boolean {
  let ancestors = 0
  for (const { tree: counted, conversationId } of lineIn(tree, host.id)) {
    if (counted !== null && counted.limit !== null && counted.live - ancestors >= counted.limit) return false
    const conversation = tree.conversations.get(conversationId)
    if (conversation?.type === 'sub_agent' && conversation.activeTurnId !== null) ancestors++
  }
  return true
}
