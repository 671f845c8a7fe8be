import type { Conversation, Id, Link, Turn } from '../graph/rows.ts'
import type { TreeRows } from './tree-rows.ts'

/** Who may run and who waits is counted right after every commit, and nobody waits for room that is there. */
export function wrongPlaces(tree: TreeRows): string[] {
  const open = [...tree.links.values()].filter(({ outcome }) => outcome === null)
  return [
    ...[...tree.conversations.values()].flatMap((conversation) => wrongKeys(conversation, open)),
    ...[...tree.turns.values()].flatMap((turn) => wrongTree(tree, turn, open)),
    ...open.filter((link) => mayRun(tree, link, open)).map(({ id }) => `link ${id} waits although it may run`),
  ]
}

function wrongKeys({ id, places }: Conversation, open: readonly Link[]): string[] {
  const own = open.filter(({ hostConversationId, keyed }) => hostConversationId === id && keyed !== null)
  const keys = new Set([...own.map(({ keyed }) => keyed?.key ?? ''), ...(places ?? []).map(({ key }) => key)])
  return [...keys].flatMap((key) => {
    const { live = 0, waiting = [] } = places?.find((entry) => entry.key === key) ?? {}
    const [running, queued] = [
      own.filter((link) => isOf(link, key, true)),
      own.filter((link) => isOf(link, key, false)),
    ]
    const isRight = live === running.length && waiting.length === queued.length
    if (isRight && queued.every((link) => waiting.includes(link.id))) return []
    const counted = `${live} that run and ${waiting.length} that wait`
    return [`conversation ${id}, key ${key}: it counts ${counted}, of ${running.length} and ${queued.length}`]
  })
}

function isOf({ keyed, released }: Link, key: string, isReleased: boolean): boolean {
  return keyed?.key === key && released === isReleased
}

function wrongTree(tree: TreeRows, { id, tree: places }: Turn, open: readonly Link[]): string[] {
  if (places === null || places.limit === null) return []
  const live = open.filter(
    ({ released, hostTurnId }) => released && lineOf(tree, hostTurnId).some((one) => one.id === id),
  )
  return live.length === places.live ? [] : [`turn ${id}: its tree counts ${places.live} that run, of ${live.length}`]
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
  const ancestors = new Set<Id>()
  for (const { tree: places, conversationId } of lineOf(tree, host.id)) {
    if (places !== null && places.limit !== null && places.live - ancestors.size >= places.limit) return false
    if (tree.conversations.get(conversationId)?.activeTurnId !== null) ancestors.add(conversationId)
  }
  return true
}

function lineOf({ turns, links }: TreeRows, turnId: Id): Turn[] {
  const line: Turn[] = []
  for (let id: Id | null = turnId; id !== null; ) {
    const turn: Turn | undefined = turns.get(id)
    if (turn === undefined) return line
    line.push(turn)
    id = links.get(id)?.hostTurnId ?? turn.wokenBy
  }
  return line
}
