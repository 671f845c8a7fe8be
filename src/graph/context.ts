import type { Reader } from './reader.ts'
import type { Id, Node, Turn } from './rows.ts'

export const CONTEXT_TURNS = 50

/**
 * What a node may know: what led to it in its turn, the latest rounds before, oldest first, and what its lane began with. Only what has ended is
 * shown, so a sibling that still runs never is. Bounded by rounds; nothing loads a whole conversation.
 */
export function contextOf(reader: Reader, node: Node, limitTurns: number = CONTEXT_TURNS): Node[] {
  const turn = reader.turn(node.turnId)
  if (turn === undefined) return []
  const rounds = earlierTurns(reader, turn, limitTurns - 1)
  const nodes: Node[] = pinsOf(reader, turn, rounds)
  for (const earlier of rounds) {
    pushEnded(nodes, reader.nodesOf(earlier.id), Number.POSITIVE_INFINITY)
  }
  const own = reader.nodesOf(turn.id)
  if (own.some(isByHand)) return [...nodes, ...causes(reader, node, own)]
  pushEnded(nodes, own, node.ordinal)
  return nodes
}

/** What its lane was told to begin with is known however long it gets: the words of a host or application, not of people. */
function pinsOf(reader: Reader, turn: Turn, rounds: readonly Turn[]): Node[] {
  if ((rounds[0] ?? turn).ordinal === 0) return []
  const [first] = reader.turnsOf(turn.laneId, { last: 0, limit: 1 })
  if (first === undefined) return []
  return reader.nodesOf(first.id).filter(({ kind, endedAt }) => PINNED.includes(kind) && endedAt !== null)
}

const PINNED: readonly string[] = ['developer_message', 'system_message']

/** What has ended of a turn before `end`, without tries that were given up. */
function pushEnded(nodes: Node[], turn: readonly Node[], end: number): void {
  const first = nodes.length
  for (const known of turn) {
    if (known.ordinal > end) return
    if (known.metadata[RESET] === true) forgetTry(nodes, first)
    if (known.ordinal < end && known.endedAt !== null) nodes.push(known)
  }
}

/** On the first message of a new try: what was said and done before it in its turn is not shown to the model. */
export const RESET = 'reset'

/** Keeps of a turn's nodes only what it was asked and told. */
function forgetTry(nodes: Node[], first: number): void {
  const told = nodes.slice(first).filter(({ kind, purpose }) => purpose === 'brief' || !SAID.has(kind))
  nodes.length = first
  nodes.push(...told)
}

const SAID: ReadonlySet<string> = new Set(['agent_message', 'character_message', 'task'])

/** In a turn that nobody has put nodes into, what was made before a node and has ended is what led to it. */
function isByHand({ metadata }: Node): boolean {
  return metadata['byHand'] === true
}

/** What a node comes after by its edges, in the order it was made; what was made later than the node, as it ended. */
function causes(reader: Reader, node: Node, own: readonly Node[]): Node[] {
  const before = ancestorsOf(reader, node)
  const ended = own.filter(({ id, endedAt }) => endedAt !== null && before.has(id))
  const isEarlier = ({ ordinal }: Node) => ordinal < node.ordinal
  return [...ended.filter(isEarlier), ...ended.filter((known) => !isEarlier(known)).sort(byEnd)]
}

/** All nodes of its turn that `node` comes after. */
export function ancestorsOf(reader: Reader, node: Node): ReadonlySet<Id> {
  const found = new Set<Id>()
  const open = [node.id]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const { from, type } of reader.edgesTo(id)) {
      if (type === 'branch' || found.has(from) || reader.node(from)?.turnId !== node.turnId) continue
      found.add(from)
      open.push(from)
    }
  }
  return found
}

/** What comes after something ended after it. */
function byEnd(a: Node, b: Node): number {
  return (a.endedAt ?? 0) - (b.endedAt ?? 0) || a.ordinal - b.ordinal
}

function earlierTurns(reader: Reader, turn: Turn, limit: number): readonly Turn[] {
  if (turn.ordinal === 0 || limit < 1) return []
  return reader.turnsOf(turn.laneId, { last: turn.ordinal - 1, limit })
}
