// The context of a node: the earlier nodes that its model is shown.
//
// Owns:      which nodes led to a node, which rounds and summaries come before, and which nodes are hidden from models.
// Called by: `agent/request` for every model call, `delegation/briefing` for children, `conversation` and chats for readers.
// Must stay true:
//   - Only ended nodes are shown, in order. A call and its result are shown together or not at all.
//   - It costs as much as it gives: nodes behind a summary are not read.

import { textOf } from './content.ts'
import { ALL_TURNS, BUILT_IN_KINDS, type Kinds } from './kinds.ts'
import { headOf, isDeleted, isReplaced, lineage, type Rounds, roundsBefore, roundsUpTo, turnAt } from './lane.ts'
import type { TreeReader } from './reader.ts'
import type { Conversation, Fold, Id, LanePlace, Node, Turn } from './rows.ts'
import { slotOf, taskIdsOf } from './tasks.ts'

/**
 * Collects the nodes that a node may know: those that led to it in its turn, the rounds before, oldest first, and the beginning
 * of its lane. Only ended nodes count, so a sibling that still runs is never shown. The cost is that of the result: nodes
 * behind a summary are not read.
 */
export function collectContext(reader: TreeReader, node: Node, limitTurns: number = ALL_TURNS): Node[] {
  const turn = reader.turn(node.turnId)
  if (turn === undefined) return []
  const own = reader.nodesOf(turn.id)
  const led = own.some(isByHand) ? causes(reader, node, own) : endedOf(own, node.ordinal)
  // Nothing came before: the usual case for a child.
  if (turn.ordinal === 0 && turn.history === null && reader.conversation(turn.laneId)?.lane == null) {
    return withoutHidden(led)
  }
  const nodes: Node[] = []
  const fold = foldFor(turn, node)
  const rounds = roundsBefore(reader, fold === turn.history?.fold ? turn : withFold(turn, fold), limitTurns - 1)
  nodes.push(...pinsOf(reader, turn, rounds.turns))
  addEarlier(reader, rounds, nodes)
  addFolded(reader, fold, led, nodes)
  return withoutHidden(nodes)
}

/** The earlier nodes that the next turn of a lane will be shown. */
export function contextAfter(reader: TreeReader, lane: Conversation, limitTurns: number): Node[] {
  const nodes: Node[] = []
  addEarlier(reader, roundsUpTo(reader, { laneId: lane.id, last: headOf(lane) }, limitTurns), nodes)
  return withoutHidden(nodes)
}

function addEarlier(reader: TreeReader, { turns, summaries }: Rounds, nodes: Node[]): void {
  for (const id of summaries) addSummary(reader, id, nodes)
  for (const turn of turns) {
    const ended = endedOf(reader.nodesOf(turn.id), Number.POSITIVE_INFINITY)
    // Another input replaced this turn while it worked: people's words stay, the unfinished work goes.
    const isLeft = turn.cancel?.cause === 'restarted'
    addFolded(reader, turn.history?.fold ?? null, isLeft ? ended.filter(isSaid) : ended, nodes)
  }
}

/** Adds a summary first, then the nodes that it does not cover. */
function addFolded(reader: TreeReader, fold: Fold | null, led: readonly Node[], nodes: Node[]): void {
  if (fold === null) {
    for (const node of led) nodes.push(node)
    return
  }
  addSummary(reader, fold.summaryId, nodes)
  const { upTo } = fold
  if (upTo === null) return
  for (const node of led) if (node.ordinal > upTo || isSaid(node)) nodes.push(node)
}

function addSummary(reader: TreeReader, id: Id, nodes: Node[]): void {
  const summary = reader.node(id)
  if (summary !== undefined) nodes.push({ ...summary, metadata: { ...summary.metadata, standsFor: true } })
}

/** True for words of people and of the application, not of a model. */
function isSaid({ kind }: Node): boolean {
  return kind === 'user_message' || kind === 'developer_message' || kind === 'system_message'
}

/** The summary that applies to a node of the turn; it never applies to the nodes it was made from. */
function foldFor({ history }: Turn, node: Node): Fold | null {
  const fold = history?.fold ?? null
  if (fold === null || fold.upTo === null) return null
  if (fold.summaryId === node.id) return (node.metadata['previousFold'] as Fold | null | undefined) ?? null
  return node.ordinal > fold.upTo ? fold : null
}

function withFold(turn: Turn, fold: Fold | null): Turn {
  return turn.history === null ? turn : { ...turn, history: { ...turn.history, fold } }
}

/** The opening words of a lane, which stay known however long it gets: those of a host or application, not of people. */
function pinsOf(reader: TreeReader, turn: Turn, rounds: readonly Turn[]): Node[] {
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

/** The ended nodes of a turn before `end`, without abandoned tries. */
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

/** The version that replaced a node in its turn, or the node itself. */
function versionOf(turn: readonly Node[], node: Node): Node {
  const by = node.marks?.replacedBy ?? null
  const version = by === null ? undefined : turn.find(({ id }) => id === by)
  return version === undefined ? node : versionOf(turn, version)
}

function isLater(turn: readonly Node[], { id, retryOf }: Node): boolean {
  return retryOf !== null && turn.some(({ marks }) => marks?.replacedBy === id)
}

/** Marks the first message of a new try: the model is not shown the earlier part of the turn. */
export const RESET = 'reset'

/** Removes a failed try from a turn's nodes: only instructions and inputs stay. */
function forgetTry(nodes: Node[]): void {
  const told = nodes.filter(({ kind, purpose }) => purpose === 'brief' || !SAID.has(kind))
  nodes.length = 0
  nodes.push(...told)
}

const SAID: ReadonlySet<string> = new Set(['agent_message', 'character_message', 'task'])

/** The first turn that counts in a lane, up to a given turn. */
function firstTurn(reader: TreeReader, { laneId, last }: LanePlace): Turn | undefined {
  const skipped = reader.conversation(laneId)?.lane?.skips[0]
  const isReplaced = skipped !== undefined && skipped[0] === 0 && last > skipped[1]
  return turnAt(reader, laneId, isReplaced ? skipped[1] + 1 : 0)
}

/**
 * True for a node that somebody put in by hand. In a turn without one, every earlier node that has ended led to the later ones.
 */
function isByHand({ metadata }: Node): boolean {
  return metadata['byHand'] === true
}

/**
 * The nodes before a node by its edges, in the order they were made; those made later than the node come in the order they
 * ended.
 */
function causes(reader: TreeReader, node: Node, own: readonly Node[]): Node[] {
  const before = ancestorsOf(reader, node)
  const ended = own.filter(({ id, endedAt }) => endedAt !== null && before.has(id))
  const isMadeBefore = ({ ordinal }: Node) => ordinal < node.ordinal
  return [...ended.filter(isMadeBefore), ...ended.filter((known) => !isMadeBefore(known)).sort(byEnd)]
}

/** All nodes of its turn that precede `node` by edges. */
export function ancestorsOf(reader: Pick<TreeReader, 'edgesTo' | 'node'>, node: Node): ReadonlySet<Id> {
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

/** Orders nodes by their end. */
function byEnd(a: Node, b: Node): number {
  return (a.endedAt ?? 0) - (b.endedAt ?? 0) || a.ordinal - b.ordinal
}

export interface TranscriptLine {
  readonly nodeId: string
  readonly runId: string
  readonly role: 'user' | 'agent'
  readonly text: string
  readonly state: Node['state']
  /** Set where `text` is the beginning of a text that would fill a page: its size. `runtime.result(nodeId)` gives all of the text. */
  readonly wholeBytes?: number
}

const LONGEST = 2_000

export interface TranscriptOptions {
  /** Shows deleted nodes too. */
  readonly includeDeleted?: boolean
}

/** Selects the nodes of a conversation that people see: messages, and in safe words why one is missing. */
export function buildTranscript(
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
    lines.push({ nodeId: node.id, runId: node.turnId, role, text: lineText(node), state: node.state })
  }
  return lines
}

/** The last message of each turn, which people see even when it is a repair or a summing up. */
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
  // W31: people see the calls that they are asked to allow.
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

/** True where models do not see it. */
function isHidden({ marks }: Node): boolean {
  return marks !== null && (marks.excludedAt !== null || marks.deletedAt !== null)
}

/** True for a summary at the place where it was made: models see it at the place that it covers. */
function isShownElsewhere({ kind, purpose, metadata }: Node): boolean {
  if (purpose !== 'summarize' && (kind !== 'summary' || metadata['folds'] === undefined)) return false
  return metadata['standsFor'] !== true
}

const LEFT_OUT = 'This result was left out of the conversation.'

/**
 * Removes hidden nodes from a context. A call and its result belong together: a hidden result leaves a short notice in its
 * place, and a hidden message takes the results of its calls with it.
 */
function withoutHidden(nodes: Node[]): Node[] {
  if (nodes.every((node) => node.marks === null && node.purpose !== 'summarize' && node.kind !== 'summary')) {
    return nodes
  }
  const gone = new Set<Id>()
  for (const node of nodes) if (isHidden(node)) for (const id of taskIdsOf(node)) gone.add(id)
  return nodes.flatMap((node) => {
    if (gone.has(slotOf(node)) || isReplaced(node) || isShownElsewhere(node)) return []
    if (!isHidden(node)) return [node]
    return node.kind === 'task' && node.input.call !== undefined ? [leftOut(node)] : []
  })
}

function leftOut(task: Node): Node {
  return { ...task, state: 'finished', output: { content: LEFT_OUT } }
}
