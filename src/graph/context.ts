import { textOf } from './content.ts'
import { ALL_TURNS, BUILT_IN_KINDS, type Kinds } from './kinds.ts'
import {
  headOf,
  isDeleted,
  isReplaced,
  lineage,
  type Rounds,
  roundsBefore,
  roundsUpTo,
  turnAt,
  withoutHidden,
} from './lane.ts'
import type { Reader } from './reader.ts'
import type { Conversation, Fold, Id, LanePlace, Node, Turn } from './rows.ts'

/**
 * What a node may know: what led to it in its turn, the rounds before, oldest first, and what its lane began with. Only what has ended is
 * shown, so a sibling that still runs never is. It costs what it gives: what a summary stands for is not read.
 */
export function contextOf(reader: Reader, node: Node, limitTurns: number = ALL_TURNS): Node[] {
  const turn = reader.turn(node.turnId)
  if (turn === undefined) return []
  const own = reader.nodesOf(turn.id)
  const led = own.some(isByHand) ? causes(reader, node, own) : endedOf(own, node.ordinal)
  // Nothing came before it: most children are so.
  if (turn.ordinal === 0 && turn.history === null && reader.conversation(turn.laneId)?.lane == null) {
    return withoutHidden(led)
  }
  const nodes: Node[] = []
  const fold = foldFor(turn, node)
  const rounds = roundsBefore(reader, fold === turn.history?.fold ? turn : withFold(turn, fold), limitTurns - 1)
  nodes.push(...pinsOf(reader, turn, rounds.turns))
  addEarlier(reader, rounds, nodes)
  addFolded(reader, { fold, led }, nodes)
  return withoutHidden(nodes)
}

/** What the next turn of a lane will be shown of those before it. */
export function contextAfter(reader: Reader, lane: Conversation, limitTurns: number): Node[] {
  const nodes: Node[] = []
  addEarlier(reader, roundsUpTo(reader, { laneId: lane.id, last: headOf(lane) }, limitTurns), nodes)
  return withoutHidden(nodes)
}

function addEarlier(reader: Reader, { turns, summaries }: Rounds, nodes: Node[]): void {
  for (const id of summaries) addSummary(reader, id, nodes)
  for (const turn of turns) {
    const ended = endedOf(reader.nodesOf(turn.id), Number.POSITIVE_INFINITY)
    // Another input took its place while it worked: what people said stays, what it had begun does not.
    const isLeft = turn.cancel?.cause === 'restarted'
    addFolded(reader, { fold: turn.history?.fold ?? null, led: isLeft ? ended.filter(isSaid) : ended }, nodes)
  }
}

interface Led {
  readonly fold: Fold | null
  readonly led: readonly Node[]
}

/** A summary first, then what it does not stand for. */
function addFolded(reader: Reader, { fold, led }: Led, nodes: Node[]): void {
  if (fold === null) {
    for (const node of led) nodes.push(node)
    return
  }
  addSummary(reader, fold.summaryId, nodes)
  const { upTo } = fold
  if (upTo === null) return
  for (const node of led) if (node.ordinal > upTo || isSaid(node)) nodes.push(node)
}

function addSummary(reader: Reader, id: Id, nodes: Node[]): void {
  const summary = reader.node(id)
  if (summary !== undefined) nodes.push({ ...summary, metadata: { ...summary.metadata, standsFor: true } })
}

/** What people and the application said, and no model. */
function isSaid({ kind }: Node): boolean {
  return kind === 'user_message' || kind === 'developer_message' || kind === 'system_message'
}

/** The summary that holds for a node of the turn: not for what it was made of. */
function foldFor({ history }: Turn, node: Node): Fold | null {
  const fold = history?.fold ?? null
  if (fold === null || fold.upTo === null) return null
  if (fold.summaryId === node.id) return (node.metadata['previousFold'] as Fold | null | undefined) ?? null
  return node.ordinal > fold.upTo ? fold : null
}

function withFold(turn: Turn, fold: Fold | null): Turn {
  return turn.history === null ? turn : { ...turn, history: { ...turn.history, fold } }
}

/** What its lane was told to begin with is known however long it gets: the words of a host or application, not of people. */
function pinsOf(reader: Reader, turn: Turn, rounds: readonly Turn[]): Node[] {
  const oldest = rounds[0] ?? turn
  const lane = reader.conversation(turn.laneId)?.lane ?? null
  if (oldest.ordinal === 0 && lane === null) return []
  const begin =
    lane === null
      ? { laneId: turn.laneId, last: oldest.ordinal }
      : lineage(reader, { laneId: turn.laneId, last: turn.ordinal }).at(-1)
  const first = begin === undefined ? undefined : firstTurn(reader, begin)
  if (first === undefined || first.id === turn.id || rounds.some(({ id }) => id === first.id)) return []
  return reader.nodesOf(first.id).filter(({ kind, endedAt }) => PINNED.includes(kind) && endedAt !== null)
}

const PINNED: readonly string[] = ['developer_message', 'system_message']

/** What has ended of a turn before `end`, without tries that were given up. */
function endedOf(turn: readonly Node[], end: number): Node[] {
  const nodes: Node[] = []
  for (const known of turn) {
    if (known.ordinal > end) return nodes
    if (known.metadata[RESET] === true) forgetTry(nodes)
    const version = known.marks === null ? known : versionOf(turn, known)
    if (known.ordinal < end && version.endedAt !== null && !isLater(turn, known)) nodes.push(version)
  }
  return nodes
}

/** What took a node's place in its turn stands where it stood. */
function versionOf(turn: readonly Node[], node: Node): Node {
  const by = node.marks?.replacedBy ?? null
  const version = by === null ? undefined : turn.find(({ id }) => id === by)
  return version === undefined ? node : versionOf(turn, version)
}

function isLater(turn: readonly Node[], { id, retryOf }: Node): boolean {
  return retryOf !== null && turn.some(({ marks }) => marks?.replacedBy === id)
}

/** On the first message of a new try: what was said and done before it in its turn is not shown to the model. */
export const RESET = 'reset'

/** Keeps of a turn's nodes only what it was asked and told. */
function forgetTry(nodes: Node[]): void {
  const told = nodes.filter(({ kind, purpose }) => purpose === 'brief' || !SAID.has(kind))
  nodes.length = 0
  nodes.push(...told)
}

const SAID: ReadonlySet<string> = new Set(['agent_message', 'character_message', 'task'])

/** The first turn of a lane that counts for what comes after it up to a turn. */
function firstTurn(reader: Reader, { laneId, last }: LanePlace): Turn | undefined {
  const skipped = reader.conversation(laneId)?.lane?.skips[0]
  const isReplaced = skipped !== undefined && skipped[0] === 0 && last > skipped[1]
  return turnAt(reader, laneId, isReplaced ? skipped[1] + 1 : 0)
}

/** In a turn that nobody has put nodes into, what was made before a node and has ended is what led to it. */
function isByHand({ metadata }: Node): boolean {
  return metadata['byHand'] === true
}

/** What a node comes after by its edges, in the order it was made; what was made later than the node, as it ended. */
function causes(reader: Reader, node: Node, own: readonly Node[]): Node[] {
  const before = ancestorsOf(reader, node)
  const ended = own.filter(({ id, endedAt }) => endedAt !== null && before.has(id))
  const isMadeBefore = ({ ordinal }: Node) => ordinal < node.ordinal
  return [...ended.filter(isMadeBefore), ...ended.filter((known) => !isMadeBefore(known)).sort(byEnd)]
}

/** All nodes of its turn that `node` comes after. */
export function ancestorsOf(reader: Pick<Reader, 'edgesTo' | 'node'>, node: Node): ReadonlySet<Id> {
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

export interface TranscriptLine {
  readonly nodeId: string
  readonly turnId: string
  readonly role: 'user' | 'agent'
  readonly text: string
  readonly state: Node['state']
}

const LONGEST = 2_000

export interface TranscriptOptions {
  /** What was deleted is shown too. */
  readonly includeDeleted?: boolean
}

/** What people see of a conversation: what was said, and in safe words why something was not. */
export function transcriptOf(
  all: readonly Node[],
  kinds: Kinds = BUILT_IN_KINDS,
  { includeDeleted = false }: TranscriptOptions = {},
): TranscriptLine[] {
  const lines: TranscriptLine[] = []
  const nodes = all.filter((node) => !isReplaced(node) && (includeDeleted || !isDeleted(node)))
  const last = lastWords(nodes)
  for (const node of nodes) {
    if (kinds.get(node.kind)?.transcript !== true || !isVisible(node, last)) continue
    const role = node.kind === 'user_message' ? 'user' : 'agent'
    lines.push({ nodeId: node.id, turnId: node.turnId, role, text: lineText(node), state: node.state })
  }
  return lines
}

/** The last message of each turn: what was said in the end is seen, also when it was a repair or a summing up. */
function lastWords(nodes: readonly Node[]): ReadonlySet<string> {
  const last = new Map<string, string>()
  for (const node of nodes) {
    if (node.kind === 'agent_message' && node.purpose !== 'summarize') last.set(node.turnId, node.id)
  }
  return new Set(last.values())
}

function isVisible(node: Node, last: ReadonlySet<string>): boolean {
  if (node.kind === 'user_message') return true
  if (node.purpose !== null && node.purpose !== 'answer' && !last.has(node.id)) return false
  if (node.state === 'pending' || node.state === 'running') return true
  // W31: what a person is asked to allow is seen.
  if (node.state === 'awaiting_approval') return true
  return spokenText(node) !== '' || node.failure !== null || node.metadata['transcriptPreview'] !== undefined
}

function spokenText(node: Node): string {
  return textOf((node.kind === 'user_message' ? node.input.content : node.output.content) ?? '')
}

function lineText(node: Node): string {
  const said = spokenText(node)
  if (said !== '') return said
  const preview = node.metadata['transcriptPreview']
  if (typeof preview === 'string') return preview.slice(0, LONGEST)
  const why = node.failure
  if (why === null) return ''
  const phrase = PHRASES[node.state] ?? 'Ended'
  const reason = node.state === 'skipped' ? why.code.replaceAll('_', ' ') : why.message
  return `${phrase}: ${reason}`.slice(0, LONGEST)
}

const PHRASES: Readonly<Partial<Record<Node['state'], string>>> = {
  errored: 'Errored',
  rejected: 'Rejected',
  stopped: 'Stopped',
  skipped: 'Skipped',
  uncertain: 'Uncertain',
}
