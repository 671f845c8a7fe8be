import type { Conversation, Link, Turn } from '../rows.ts'
import type { Check } from './check.ts'
import { type Finding, finding } from './finding.ts'
import type { TreeRows } from './tree-rows.ts'
import { lineIn, placeOfConversation, placeOfTurn } from './turn-checks.ts'

/** Who may run and who waits is counted right after every commit, and nobody waits for room that is there. */
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

/** Has everything that limits a waiting link room for it? */
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
