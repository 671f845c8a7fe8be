/**
 * What a conversation with lanes is, as simply as it can be said: turns that each know the turn before, and lanes that each
 * know their last turn. No ordinals, no ranges, no rows; slow and plain.
 */
export interface RefNode {
  id: string
  /** `sum`: a call that sums up for another. */
  readonly kind: 'user' | 'agent' | 'task' | 'sum'
  state: 'pending' | 'running' | 'waiting' | 'finished' | 'errored' | 'skipped' | 'stopped'
  text: string
  /** Of a message: its tasks, in order. */
  calls: RefNode[]
  /** Of a task: the message that called it. */
  caller: RefNode | null
  isExcluded: boolean
  isDeleted: boolean
  isAskedToStop: boolean
  /** Of a task: a child does it. */
  readonly delegates: boolean
  /** It has an end, and its child had none that is good. */
  isFailedChild: boolean
  readonly isByHand: boolean
  /** It only says that its turn was stopped. */
  readonly isPlaceholder: boolean
  /** In a turn that was put in by hand: what it comes after. */
  edges: RefEdge[] | null
  /** Of a call: it has had something summed up. */
  isCompacted: boolean
  /** Of a call that sums up: for whose sake, and which turn it ends with, wholly or up to a node of it. */
  folds: RefFolds | null
  /** The version that took its place in its turn. */
  by: RefNode | null
}

export interface RefEdge {
  readonly from: RefNode
  readonly type: 'sequence' | 'dependency'
}

export interface RefFolds {
  readonly target: RefNode | null
  readonly to: RefTurn
  readonly upTo: RefNode | 'none' | null
}

export interface RefTurn {
  id: string
  readonly lane: RefLane
  readonly before: RefTurn | null
  readonly merged: readonly RefTurn[]
  nodes: RefNode[]
  state: 'queued' | 'running' | 'ended'
  /** Its nodes were put in by hand: what led to one is told by edges. */
  readonly isByHand: boolean
  isCancelled: boolean
  isRestarted: boolean
  /** A summary that stands for this turn and those before it, back to `from`. */
  fold: RefFold | null
  /** The task that it does the work of, and how often that is tried again. */
  readonly host: { readonly turn: RefTurn; readonly task: RefNode; readonly tries: number } | null
}

export interface RefFold {
  readonly id: string
  readonly text: string
  /** Null: all there is. */
  readonly from: RefTurn | null
  /** Null: all of its turn; else up to this node of it. */
  readonly upTo: RefNode | 'none' | null
  /** The call that made it; null when it was made by hand. */
  readonly sum: RefNode | null
  readonly earlier: RefFold | null
}

export interface RefLane {
  readonly id: string
  head: RefTurn | null
  readonly base: RefTurn | null
  isArchived: boolean
  /** All turns that were ever made in it. */
  readonly turns: RefTurn[]
}

export function refNode(kind: RefNode['kind'], given: Partial<RefNode> = {}): RefNode {
  return {
    id: '',
    kind,
    state: 'finished',
    text: '',
    calls: [],
    caller: null,
    isExcluded: false,
    isDeleted: false,
    isAskedToStop: false,
    delegates: false,
    isFailedChild: false,
    isByHand: false,
    isPlaceholder: false,
    edges: null,
    isCompacted: false,
    folds: null,
    by: null,
    ...given,
  }
}

export function isOpen({ state }: RefNode): boolean {
  return state === 'pending' || state === 'running' || state === 'waiting'
}

/** All turns that led to one, itself last. */
export function lineOf(turn: RefTurn | null): RefTurn[] {
  const line: RefTurn[] = []
  for (let at = turn; at !== null; at = at.before) line.push(at)
  return line.reverse()
}

/** What the model of a node is shown, word by word. */
export function contextOf(turn: RefTurn, node: RefNode): string[] {
  const { fold } = turn
  if (fold === null || fold.upTo === null || !isAfter(turn, fold.upTo)(node)) {
    return [...earlier(turn), ...wordsOf(turn, node)]
  }
  return [fold.text, ...wordsOf(turn, node, fold)]
}

/** Was a node made after the last that a summary stands for? */
export function isAfter({ nodes }: RefTurn, upTo: RefNode | 'none'): (node: RefNode) => boolean {
  return (node) => upTo === 'none' || nodes.indexOf(node) > nodes.indexOf(upTo)
}

/** A turn of a lane that was merged more than once is read where it came first. */
function earlier(turn: RefTurn): string[] {
  const read = [...history(lineOf(turn.before), []), ...mergedInto(turn, [])]
  const isFirst = ({ turn: one }: Read, at: number) => read.findIndex(({ turn: known }) => known === one) === at
  return read.filter(isFirst).flatMap(({ words }) => words)
}

interface Read {
  readonly turn: RefTurn
  readonly words: readonly string[]
}

/** What turns in a row say, without those that are known already. */
function history(line: readonly RefTurn[], known: readonly RefTurn[]): Read[] {
  const read: Read[] = []
  for (let at = line.length - 1; at >= 0; ) {
    const turn = line[at] as RefTurn
    if (known.includes(turn)) break
    const { fold } = turn
    if (fold === null) read.unshift(...mergedInto(turn, known), { turn, words: wordsOf(turn, null) })
    else read.unshift({ turn, words: [fold.text, ...(fold.upTo === null ? [] : wordsOf(turn, null, fold))] })
    at = fold === null ? at - 1 : fold.from === null ? -1 : line.indexOf(fold.from) - 1
  }
  return read
}

/** What other lanes say, without what several have in common. */
function mergedInto(turn: RefTurn, above: readonly RefTurn[]): Read[] {
  const known = [...above, ...lineOf(turn.before)]
  return turn.merged.flatMap((other) => {
    const read = history(lineOf(other), known)
    known.push(...lineOf(other))
    return read
  })
}

/** What a turn says; before a node of it, if one is named, and without what a summary in it stands for. */
function wordsOf(turn: RefTurn, until: RefNode | null, fold: RefFold | null = null): string[] {
  if (until !== null && turn.isByHand) {
    return turn.nodes.filter((node) => node.by === null && !isOpen(node) && leadsTo(turn, node, until)).flatMap(wordOf)
  }
  const words: string[] = []
  for (const node of turn.nodes) {
    if (node === until) break
    if (node.kind === 'sum' || isFolded(turn, node, fold) || turn.nodes.some(({ by }) => by === node)) continue
    const shown = newest(node)
    if (isOpen(shown) || (turn.isRestarted && until === null && shown.kind !== 'user')) continue
    words.push(...wordOf(shown))
  }
  return words
}

function isFolded(turn: RefTurn, node: RefNode, fold: RefFold | null): boolean {
  return fold !== null && fold.upTo !== null && node.kind !== 'user' && !isAfter(turn, fold.upTo)(newest(node))
}

/** Over edges of nodes that were put in by hand. */
export function leadsTo(turn: RefTurn, from: RefNode, to: RefNode): boolean {
  return (to.edges ?? []).some((edge) => edge.from === from || leadsTo(turn, from, edge.from))
}

export function newest(node: RefNode): RefNode {
  return node.by === null ? node : newest(node.by)
}

function wordOf(node: RefNode): string[] {
  const { kind, text, isExcluded, isDeleted, caller, calls } = node
  const isHidden = isExcluded || isDeleted
  if (caller !== null && (caller.isExcluded || caller.isDeleted)) return []
  if (kind === 'task') return [isHidden ? 'LEFT OUT' : `${node.state} ${text}`]
  if (isHidden) return []
  return kind === 'agent' && text === '' && calls.length === 0 ? [] : [text]
}

/** What people see of turns. */
export function transcriptOf(turns: readonly RefTurn[]): string[] {
  return turns
    .flatMap(({ nodes }) => nodes)
    .filter(({ kind, isDeleted, by }) => kind !== 'task' && kind !== 'sum' && !isDeleted && by === null)
    .filter(({ kind, text, state, isPlaceholder }) => {
      return kind === 'user' || text !== '' || state !== 'finished' || isPlaceholder
    })
    .map(({ id }) => id)
}
