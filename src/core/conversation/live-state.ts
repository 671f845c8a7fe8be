// The words that nodes have streamed so far, for readers that come while they speak.
//
// Stays true:
// - A `live` event holds exactly what the deltas before it said, so the deltas after it continue it: nothing is lost or doubled.
// - It is made when somebody asks, from the pieces that the feed keeps anyway. Readers that ask at the same moment share it.

import { after, type Later } from '../base/maybe.ts'
import type { LiveCall, LiveState } from '../graph/content.ts'
import type { LiveBody, LiveEvent } from '../graph/event.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Id, Node } from '../graph/rows.ts'
import { look, MissingRows } from '../store/look.ts'
import type { Store } from '../store/store.ts'
import type { Feeds, TreeFeed } from './feeds.ts'
import { LiveNode } from './live-node.ts'

/** A tree that somebody reads. */
export interface LiveReading {
  readonly store: Store
  readonly feeds: Feeds
  readonly feed: TreeFeed
}

/**
 * Gives a function that makes one `live` event for each node that streams at the moment of the call. Nodes that run in other
 * processes and have shown nothing yet are among them: their reader may have heard more elsewhere, and hears all of it again.
 */
export function liveReader(place: LiveReading): Later<() => LiveEvent[]> {
  const { store, feeds, feed } = place
  if (!store.shared) return after(store.tree(feed.rootId), (tree) => () => liveEvents(place, tree, []))
  return after(store.openTurns(MOST_TURNS, feed.rootId), (turns) =>
    look(store, feed.rootId, (tree) => {
      const open = turns.flatMap(({ id }) => tree.openNodes(id))
      const silent = open.filter((node) => node.state === 'running' && isSpoken(node) && !feeds.isOwn(node))
      const streams = silent.map((node) => silentNode(tree, node))
      return () => liveEvents(place, tree, streams)
    }),
  )
}

/** A task streams no words. */
function isSpoken({ input }: Node): boolean {
  return input.call === undefined
}

const MOST_TURNS = 10_000

function liveEvents({ feeds, feed }: LiveReading, tree: TreeReader, silent: readonly LiveNode[]): LiveEvent[] {
  const streams = new Map<Id, LiveNode>()
  for (const stream of silent) streams.set(stream.node.id, stream)
  for (const stream of feed.streams.values()) streams.set(stream.node.id, stream)
  for (const stream of feeds.liveIn(feed.rootId)) streams.set(stream.node.id, stream)
  return [...streams.values()].flatMap((stream) => {
    if (!isOpen(tree, stream.node)) return []
    const state = stateOf(stream)
    return state === null ? [] : [liveEvent(stream, state, { seq: feed.nextLive(), at: feeds.now() })]
  })
}

function silentNode(tree: TreeReader, node: Node): LiveNode {
  const conversation = tree.conversation(node.conversationId)
  const parentId = tree.link(node.turnId)?.hostTurnId ?? conversation?.parentTurnId ?? null
  const live = new LiveNode(node, conversation?.path ?? [], parentId)
  live.keep({ type: 'reset', attempt: node.attempt })
  return live
}

/** The end of a node, and its next try, come as durable events: its deltas count only until then. */
function isOpen(tree: TreeReader, { id, epoch }: Node): boolean {
  try {
    const row = tree.node(id)
    return row !== undefined && row.state === 'running' && row.epoch === epoch
  } catch (error) {
    // Rows that are not here have ended.
    if (!(error instanceof MissingRows)) throw error
    return false
  }
}

function liveEvent(
  { node, path, parentId }: LiveNode,
  state: LiveState,
  now: Pick<LiveEvent, 'seq' | 'at'>,
): LiveEvent {
  const { conversationId, turnId: runId, id: nodeId } = node
  return { ...now, conversationId, runId, nodeId, path, parentId, type: 'live', ...state }
}

/** The last state of each node that somebody asked for, and what it was made of. */
const made: WeakMap<LiveNode, { readonly pieces: number; readonly length: number; readonly state: LiveState | null }> =
  new WeakMap()

/** The words of a node in its last try; null where it streams something else, such as its progress. */
function stateOf(stream: LiveNode): LiveState | null {
  const { said, node } = stream
  const [pieces, length] = [said.length, said.at(-1)?.text?.length ?? 0]
  const known = made.get(stream)
  if (known?.pieces === pieces && known.length === length) return known.state
  const state = foldPieces(said as readonly LiveBody[], node.attempt)
  made.set(stream, { pieces, length, state })
  return state
}

function foldPieces(said: readonly LiveBody[], first: number): LiveState | null {
  const from = said.findLastIndex(({ type }) => type === 'reset')
  const reset = said[from]
  const attempt = reset?.type === 'reset' ? reset.attempt : first
  const [text, reasoning]: [string[], string[]] = [[], []]
  const calls = new Map<string, { readonly tool: string; readonly text: string[] }>()
  for (const piece of said.slice(from + 1)) {
    if (piece.type === 'text-delta') text.push(piece.text)
    else if (piece.type === 'reasoning-delta') reasoning.push(piece.text)
    else if (piece.type === 'tool-input-delta') addInput(calls, piece)
  }
  if (reset === undefined && text.length + reasoning.length + calls.size === 0) return null
  const written = [...calls].map(([callId, call]): LiveCall => ({ callId, tool: call.tool, text: call.text.join('') }))
  return { attempt, text: text.join(''), reasoning: reasoning.join(''), calls: written }
}

function addInput(
  calls: Map<string, { readonly tool: string; readonly text: string[] }>,
  piece: Extract<LiveBody, { type: 'tool-input-delta' }>,
): void {
  const known = calls.get(piece.callId)
  if (known === undefined) calls.set(piece.callId, { tool: piece.tool, text: [piece.text] })
  else known.text.push(piece.text)
}
