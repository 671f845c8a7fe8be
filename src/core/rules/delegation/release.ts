import type { Draft } from '../../graph/draft.ts'
import { changedAccount, type KeyLimit, type KeyPlaces, newTreePlaces, type TreePlaces } from '../../graph/limits.ts'
import { runsUpward } from '../../graph/reader.ts'
import type { Id, Link, Turn } from '../../graph/rows.ts'
import { startIfIdle } from '../turn/open-turn.ts'

/**
 * Decides whether a delegation may run within the limits of its run, its key and its tree; otherwise its turn is queued, first
 * come, first served. A delegation that waits for its key does not hold up the others of its run. Ancestors are never counted
 * against a delegation, so nothing waits for itself, at any depth.
 */
export function mayRun(draft: Draft, host: Turn, keyed: KeyLimit | null): boolean {
  const { account, limits } = host
  if (account.live >= limits.concurrency || account.nextRelease !== account.children) return false
  if (keyed !== null && !hasRoom(placesOf(draft, host, keyed.key), keyed)) return false
  return host.tree === null || fullTree(draft, host) === undefined
}

/** Counts a new delegation as running or waiting. The caller changes the account of its run. */
export function takePlace(draft: Draft, link: Link): void {
  if (link.released) return countIn(draft, link)
  if (link.keyed !== null) changePlaces(draft, link, ({ live, waiting }) => ({ live, waiting: [...waiting, link.id] }))
  const host = draft.turn(link.hostTurnId)
  const full = host.tree === null ? undefined : fullTree(draft, host)
  if (full !== undefined) waitAt(draft, full, host.id)
}

/** Ends the count of a delegation and starts those that waited for its places. The caller changes the account of its run. */
export function leavePlace(draft: Draft, link: Link): void {
  const { tree } = draft.turn(link.hostTurnId)
  if (link.keyed !== null) {
    changePlaces(draft, link, ({ live, waiting }) => ({
      live: link.released ? live - 1 : live,
      waiting: waiting.filter((id) => id !== link.id),
    }))
  }
  if (tree !== null && link.released) countTree(draft, link.hostTurnId, -1)
  release(draft, link.hostTurnId)
  if (link.keyed !== null) releaseKey(draft, link, link.keyed.key)
  if (tree !== null) releaseTrees(draft, link.hostTurnId)
}

/** Starts the delegations of a run that may now run. Gives the run whose tree is full, if that stopped it. */
function release(draft: Draft, hostTurnId: Id): Id | undefined {
  for (;;) {
    const host = draft.turn(hostTurnId)
    if (host.account.live >= host.limits.concurrency) return undefined
    const link = nextOf(draft, host)
    if (link === undefined) return undefined
    const full = host.tree === null ? undefined : fullTree(draft, host)
    if (full !== undefined) {
      waitAt(draft, full, host.id)
      return full.id
    }
    letRun(draft, link)
  }
}

function letRun(draft: Draft, link: Link): void {
  const host = draft.turn(link.hostTurnId)
  const { account } = host
  const nextRelease = link.keyed === null ? link.ordinal + 1 : account.nextRelease
  draft.changeTurn(host, { account: changedAccount(account, { live: account.live + 1, nextRelease }) })
  if (link.keyed !== null) {
    changePlaces(draft, link, ({ live, waiting }) => ({ live, waiting: waiting.filter((id) => id !== link.id) }))
  }
  countIn(draft, draft.changeLink(link, { released: true }))
  startIfIdle(draft, draft.turn(link.id))
}

/** The first waiting delegation whose key has room. */
function nextOf(draft: Draft, host: Turn): Link | undefined {
  const plain = nextWithoutKey(draft, host)
  const { places } = draft.conversation(host.conversationId)
  if (places === null) return plain
  let next = plain
  for (const entry of places) {
    const link = draft.findLink(entry.waiting[0] ?? '')
    if (link === undefined || link.hostTurnId !== host.id || !isWaiting(draft, link)) continue
    const isFree = link.keyed !== null && entry.live < link.keyed.limit
    if (isFree && (next === undefined || link.ordinal < next.ordinal)) next = link
  }
  return next
}

function nextWithoutKey(draft: Draft, host: Turn): Link | undefined {
  const { account } = host
  let at = account.nextRelease
  let found: Link | undefined
  for (; at < account.children; at++) {
    const link = draft.linkAt(host.id, at)
    if (link === undefined || link.keyed !== null || !isWaiting(draft, link)) continue
    found = link
    break
  }
  if (at !== account.nextRelease) {
    draft.changeTurn(draft.turn(host.id), { account: changedAccount(account, { nextRelease: at }) })
  }
  return found
}

function isWaiting(draft: Draft, link: Link): boolean {
  return !link.released && link.outcome === null && draft.turn(link.id).cancel === null
}

function countIn(draft: Draft, link: Link): void {
  if (link.keyed !== null) changePlaces(draft, link, ({ live, waiting }) => ({ live: live + 1, waiting }))
  if (draft.turn(link.hostTurnId).tree !== null) countTree(draft, link.hostTurnId, 1)
}

// Keys are counted per conversation of the host, over all its turns.

function placesOf(draft: Draft, { conversationId }: Turn, key: string): KeyPlaces {
  const { places } = draft.conversation(conversationId)
  return places?.find((entry) => entry.key === key) ?? { key, live: 0, waiting: NONE }
}

function hasRoom({ live, waiting }: KeyPlaces, { limit }: KeyLimit): boolean {
  return waiting.length === 0 && live < limit
}

function changePlaces(draft: Draft, link: Link, change: (now: KeyPlaces) => Omit<KeyPlaces, 'key'>): void {
  const key = link.keyed?.key ?? ''
  const conversation = draft.conversation(link.hostConversationId)
  const others = (conversation.places ?? NONE).filter((entry) => entry.key !== key)
  const { live, waiting } = change(placesOf(draft, draft.turn(link.hostTurnId), key))
  const all = live === 0 && waiting.length === 0 ? others : [...others, { key, live, waiting }]
  draft.changeConversation(conversation, { places: all.length === 0 ? null : all })
}

/** Delegations that wait for the key may belong to other turns of the conversation. */
function releaseKey(draft: Draft, { hostTurnId }: Link, key: string): void {
  const { waiting } = placesOf(draft, draft.turn(hostTurnId), key)
  const hosts = new Set(waiting.map((id) => draft.link(id).hostTurnId))
  for (const host of hosts) release(draft, host)
}

// Trees are counted per run, with everything below it.

/** The counter for a child of this run, with or without a limit of its own. */
export function treeBelow({ tree }: Turn, limit: number | null): TreePlaces | null {
  return tree === null ? newTreePlaces(limit) : { limit, live: 0, waiting: NONE }
}

/** The first run upwards that has a limit and no room. A root's conversation is no delegation and is never counted. */
function fullTree(draft: Draft, host: Turn): Turn | undefined {
  let ancestors = 0
  for (const turn of runsUpward(draft, host.id)) {
    const { tree, conversationId } = turn
    if (tree !== null && tree.limit !== null && tree.live - ancestors >= tree.limit) return turn
    const { type, activeTurnId } = draft.conversation(conversationId)
    if (type === 'sub_agent' && activeTurnId !== null) ancestors++
  }
  return undefined
}

function countTree(draft: Draft, hostTurnId: Id, by: 1 | -1): void {
  for (const turn of limitedTrees(draft, hostTurnId)) changeTree(draft, turn, (tree) => ({ live: tree.live + by }))
}

function waitAt(draft: Draft, full: Turn, hostTurnId: Id): void {
  if (full.tree?.waiting.includes(hostTurnId)) return
  changeTree(draft, full, ({ waiting }) => ({ waiting: [...waiting, hostTurnId] }))
}

function releaseTrees(draft: Draft, hostTurnId: Id): void {
  for (const { id, tree } of limitedTrees(draft, hostTurnId)) {
    for (const host of tree?.waiting ?? NONE) {
      if (release(draft, host) === id) continue
      changeTree(draft, draft.turn(id), ({ waiting }) => ({ waiting: waiting.filter((one) => one !== host) }))
    }
  }
}

function limitedTrees(draft: Draft, turnId: Id): Turn[] {
  return [...runsUpward(draft, turnId)].filter(({ tree }) => tree !== null && tree.limit !== null)
}

function changeTree(draft: Draft, turn: Turn, change: (now: TreePlaces) => Partial<TreePlaces>): void {
  const { tree } = draft.turn(turn.id)
  if (tree !== null) draft.changeTurn(draft.turn(turn.id), { tree: { ...tree, ...change(tree) } })
}

const NONE: readonly never[] = []
