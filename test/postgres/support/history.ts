import type { CountedEffect, TreeRows, WorkerLine } from 'legate/testing'
import { brokenGraph } from '../../../src/testing/crash/aftermath.ts'
import { lostEvents, unsettled, wrongEffects } from '../../../src/testing/crash/laws.ts'

// The checker of everything that several processes did to one database and saw of it. Order per tree is given by the chain of
// its commits, so no search for an order is needed: each law is one pass over what was logged.

/** What one read of a tree's events saw, and when, by the clock that all processes of a machine share. */
export interface ReadLine {
  readonly type: 'read'
  readonly pid: number
  /** The name of the reader: one that reads on from where it stopped. */
  readonly reader: string
  readonly rootId: string
  readonly asked: number
  readonly answered: number
  /** It asked for what comes after this event. */
  readonly after: number
  /** The events it got: their numbers and types. */
  readonly events: readonly (readonly [seq: number, type: string])[]
  /** It got as many as it asked for: there may be more. */
  readonly isFull: boolean
}

/** How long the tree of a run took to end after somebody had cancelled it. */
export interface CancelLine {
  readonly type: 'cancel'
  readonly pid: number
  readonly ms: number
}

export type HistoryLine = WorkerLine | ReadLine | CancelLine

/** One commit in the chain of a tree. */
export interface StoredCommit {
  readonly rootId: string
  /** Its place in the chain, from 1. */
  readonly n: number
  readonly id: string
  readonly kind: string
  /** The number of the tree's last event after it. */
  readonly seq: number
  /** How many events it has. */
  readonly count: number
}

/** Everything that is known when all processes are gone. */
export interface History {
  readonly lines: readonly HistoryLine[]
  /** All commits of all trees, in the order of their chains. */
  readonly chain: readonly StoredCommit[]
  readonly trees: readonly TreeRows[]
  readonly effects: readonly CountedEffect[]
}

type CommitLine = Extract<HistoryLine, { type: 'commit' }>

/** Lists every broken promise: nothing lost, nothing doubled, nothing left open, every doubt told, every reader without a gap. */
export function wrongInHistory(history: History): string[] {
  const { lines, chain, trees, effects } = history
  const acknowledged = commitsIn(lines)
  const reads = lines.filter((line): line is ReadLine => line.type === 'read')
  return [
    ...brokenChain(chain),
    ...misplaced(acknowledged, chain),
    ...outOfOrder(acknowledged, chain),
    ...lostEvents(lines.filter(isWorkerLine), trees),
    ...gaps(reads),
    ...misread(reads, trees),
    ...staleReads(reads, acknowledged),
    ...trees.flatMap(brokenGraph),
    ...trees.flatMap(unsettled),
    ...wrongEffects(effects, trees),
  ]
}

function isWorkerLine(line: HistoryLine): line is WorkerLine {
  return line.type === 'commit' || line.type === 'pass'
}

/** Streams and leases are in no chain. */
function commitsIn(lines: readonly HistoryLine[]): CommitLine[] {
  return lines.filter(
    (line): line is CommitLine => line.type === 'commit' && line.rootId !== null && line.kind !== 'stream',
  )
}

/** Every chain counts 1, 2, 3, ..., its events too, and no commit is in it twice, or in two. */
function brokenChain(chain: readonly StoredCommit[]): string[] {
  const wrong: string[] = []
  const ids = new Set<string>()
  const last = new Map<string, StoredCommit>()
  for (const commit of chain) {
    const { rootId, id, n, seq, count } = commit
    const before = last.get(rootId) ?? { n: 0, seq: 0 }
    if (n !== before.n + 1) wrong.push(`chain ${rootId}: commit ${n} follows on ${before.n}`)
    if (seq !== before.seq + count) wrong.push(`chain ${rootId}: commit ${n} ends at ${seq}, not ${before.seq + count}`)
    if (ids.has(id)) wrong.push(`doubled ${rootId}: commit ${n} has the id ${id} of another`)
    ids.add(id)
    last.set(rootId, commit)
  }
  return wrong
}

/** An acknowledged commit is in the chain of its tree, once, with its events at the numbers that were acknowledged. */
function misplaced(acknowledged: readonly CommitLine[], chain: readonly StoredCommit[]): string[] {
  const stored = new Map(chain.map((commit) => [commit.id, commit]))
  const told = new Set<string>()
  return acknowledged.flatMap(({ id, rootId, kind, events }) => {
    const isAgain = told.has(id)
    told.add(id)
    const found = stored.get(id)
    if (found === undefined) return [`lost ${rootId}: the acknowledged commit ${id} (${kind}) is not in the chain`]
    const wrong = isAgain ? [`doubled ${rootId}: the commit ${id} was acknowledged twice`] : []
    const first = found.seq - found.count + 1
    const isThere = found.rootId === rootId && found.kind === kind && found.count === events.length
    if (!isThere || events.some(({ seq }, at) => seq !== first + at)) {
      wrong.push(`misplaced ${rootId}: the commit ${id} is not where it was acknowledged`)
    }
    return wrong
  })
}

/** A commit that was sent after another of its tree was acknowledged comes after it in the chain. */
function outOfOrder(acknowledged: readonly CommitLine[], chain: readonly StoredCommit[]): string[] {
  const place = new Map(chain.map(({ id, n }) => [id, n]))
  return byTree(acknowledged).flatMap(([rootId, commits]) => {
    const sent = commits.toSorted((a, b) => a.sent - b.sent)
    const acks = commits.toSorted((a, b) => a.at - b.at)
    const wrong: string[] = []
    let most = 0
    let next = 0
    for (const commit of sent) {
      for (let ack = acks[next]; ack !== undefined && ack.at < commit.sent; ack = acks[++next]) {
        most = Math.max(most, place.get(ack.id) ?? 0)
      }
      const n = place.get(commit.id)
      if (n !== undefined && n <= most)
        wrong.push(`order ${rootId}: commit ${n} was sent after ${most} was acknowledged`)
    }
    return wrong
  })
}

/** Every reader sees each event once and in order, also where it goes on from what it saw before. */
function gaps(reads: readonly ReadLine[]): string[] {
  const last = new Map<string, number>()
  return reads.flatMap(({ reader, rootId, after, events }) => {
    const key = `${reader} ${rootId}`
    const before = last.get(key) ?? 0
    const wrong = after === before ? [] : [`gap ${rootId}: the reader ${reader} went on from ${after}, not ${before}`]
    const at = events.findIndex(([seq], index) => seq !== after + index + 1)
    if (at >= 0) wrong.push(`gap ${rootId}: the reader ${reader} saw ${events[at]?.[0]} at place ${after + at + 1}`)
    last.set(key, events.at(-1)?.[0] ?? after)
    return wrong
  })
}

/** What a reader saw is what is stored in the end: nobody sees what does not stay. */
function misread(reads: readonly ReadLine[], trees: readonly TreeRows[]): string[] {
  const stored = new Map(trees.map(({ rootId, events }) => [rootId, events]))
  return reads.flatMap(({ reader, rootId, events }) =>
    events
      .filter(([seq, type]) => stored.get(rootId)?.[seq - 1]?.body.type !== type)
      .map(([seq, type]) => `misread ${rootId}: the reader ${reader} saw a ${type} at ${seq}, which is not there`),
  )
}

/**
 * A read contains every write that was acknowledged before it was asked, in whatever process, and all that another read had seen
 * by then.
 */
function staleReads(reads: readonly ReadLine[], acknowledged: readonly CommitLine[]): string[] {
  const commits = new Map(byTree(acknowledged))
  return byTree(reads).flatMap(([rootId, ofTree]) => {
    const known = [
      ...(commits.get(rootId) ?? []).map(({ at, events }) => ({ at, seq: events.at(-1)?.seq ?? 0 })),
      ...ofTree.map((read) => ({ at: read.answered, seq: lastOf(read) })),
    ].toSorted((a, b) => a.at - b.at)
    const wrong: string[] = []
    let most = 0
    let next = 0
    for (const read of ofTree.toSorted((a, b) => a.asked - b.asked)) {
      for (let one = known[next]; one !== undefined && one.at < read.asked; one = known[++next]) {
        most = Math.max(most, one.seq)
      }
      if (lastOf(read) < most && !read.isFull) {
        wrong.push(`stale ${rootId}: the reader ${read.reader} saw up to ${lastOf(read)} when ${most} was known`)
      }
    }
    return wrong
  })
}

function lastOf({ after, events }: ReadLine): number {
  return events.at(-1)?.[0] ?? after
}

function byTree<Line extends { readonly rootId: string | null }>(lines: readonly Line[]): [string, Line[]][] {
  const found = new Map<string, Line[]>()
  for (const line of lines) {
    const known = found.get(line.rootId ?? '')
    if (known === undefined) found.set(line.rootId ?? '', [line])
    else known.push(line)
  }
  return [...found]
}
