// Commits on their way to the database.
//
// Owns:      the statements that store commits, and which commits one statement stores.
// Called by: the transport, with the values of each commit.
// Must stay true:
//   - Commits that wait at the same moment are one statement and one transaction: one round trip, one write to the disk.
//   - A commit is stored or refused by itself. Where a statement with several is refused, each of them is sent alone; so is one
//     whose answer was lost. A lease is always alone: nothing that others wait for may hold it up.
//   - A statement with several locks all its trees before it writes, in the order of their ids. So statements never wait for each
//     other in a circle, and transactions get their numbers in the order of a tree's commits: readers of changes rely on that.

import type { CommitValues } from './commit-values.ts'
import type { Database } from './connection/database.ts'
import type { PgRow } from './connection/driver.ts'
import { isLost } from './connection/failure.ts'

const COMMIT_FUNCTION = '@.commit_1'
/** How many values it takes. */
const VALUES = 7
/** How many commits one statement stores: a few, so that the process goes on while the server works; more where very many wait. */
const FEW = 4
const MOST = 16
/** Fewer wait so long for the answer to those before them. Then they are sent beside them. */
const PATIENCE_MS = 5
/** So many characters of one commit would hold up the others: it is sent by itself. */
const LARGE = 64_000

/** Stores one commit, and gives its head. */
export const SEND = `SELECT ${callOf(0)}`

/** A commit as it is sent. */
export interface QueuedCommit {
  /** The key of its tree; null for one of no tree. */
  readonly root: string | null
  readonly values: CommitValues
  /** It goes with no others. */
  readonly isAlone: boolean
}

interface WaitingCommit extends QueuedCommit {
  readonly resolve: (head: unknown) => void
  readonly reject: (error: unknown) => void
}

type Sender = Pick<Database, 'once' | 'lanes'>

export class Commits {
  private readonly database: Sender
  private readonly waiting: WaitingCommit[] = []
  private underWay = 0
  private begunAt = 0
  private gathering: NodeJS.Immediate | undefined
  private patience: NodeJS.Timeout | undefined

  constructor(database: Sender) {
    this.database = database
  }

  /** Gives the head of the tree once the commit is stored. Throws what the driver throws. */
  send(parcel: QueuedCommit): Promise<unknown> {
    if (parcel.isAlone || sizeOf(parcel.values) > LARGE) return this.store([parcel]).then(([head]) => head)
    return new Promise((resolve, reject) => {
      this.waiting.push({ ...parcel, resolve, reject })
      // Commits of one turn of the event loop go together.
      this.gathering ??= setImmediate(() => {
        this.gathering = undefined
        this.sendWaiting()
      })
    })
  }

  private sendWaiting(): void {
    const answered = () => {
      this.underWay--
      this.sendWaiting()
    }
    while (this.waiting.length > 0 && this.mayBegin()) {
      this.underWay++
      this.begunAt = performance.now()
      this.sendLot(this.waiting.splice(0, this.nextSize()).toSorted(byRoot)).then(answered, answered)
    }
    if (this.waiting.length > 0 && this.underWay < this.database.lanes) this.sendLater()
  }

  private mayBegin(): boolean {
    if (this.underWay === 0) return true
    const isTime = this.waiting.length >= FEW || performance.now() >= this.begunAt + PATIENCE_MS
    return isTime && this.underWay < this.database.lanes
  }

  /** How many of those that wait go together: there is a statement for each power of two. */
  private nextSize(): number {
    const { length } = this.waiting
    return powerOfTwo(Math.min(length, MOST, Math.max(FEW, length / this.database.lanes)))
  }

  private sendLater(): void {
    const again = () => {
      this.patience = undefined
      this.sendWaiting()
    }
    this.patience ??= setTimeout(again, Math.ceil(this.begunAt + PATIENCE_MS - performance.now()))
  }

  private async sendLot(lot: readonly WaitingCommit[]): Promise<void> {
    try {
      const heads = await this.store(lot)
      for (const [at, { resolve }] of lot.entries()) resolve(heads[at])
    } catch (error) {
      // Where the answer was lost, nobody knows whether they are stored: each of them is asked for.
      if (lot.length === 1 || isLost(error)) for (const { reject } of lot) reject(error)
      else await Promise.all(lot.map((one) => this.sendLot([one])))
    }
  }

  private async store(lot: readonly QueuedCommit[]): Promise<PgRow> {
    const isOne = lot.length === 1
    const roots = lot.map(({ root }) => root)
    const values = lot.flatMap((parcel) => parcel.values as readonly unknown[])
    const [heads] = await this.database.once(statementOf(lot.length), isOne ? values : [...values, roots])
    return heads ?? []
  }
}

/** The order in which trees are locked and written, by everybody. */
function byRoot({ root: a }: QueuedCommit, { root: b }: QueuedCommit): number {
  return a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1
}

/** The largest one that is not above it. */
function powerOfTwo(most: number): number {
  return 2 ** Math.floor(Math.log2(most))
}

function sizeOf([header, added, changed, events, , , bodies]: CommitValues): number {
  return header.length + (added?.length ?? 0) + (changed?.length ?? 0) + events.length + (bodies?.length ?? 0)
}

const STATEMENTS = new Map<number, string>([[1, SEND]])

function statementOf(size: number): string {
  const known = STATEMENTS.get(size)
  if (known !== undefined) return known
  const calls = Array.from({ length: size }, (_, at) => callOf(at * VALUES))
  const made = `SELECT ${calls.join(', ')} FROM @.lock_1($${size * VALUES + 1})`
  STATEMENTS.set(size, made)
  return made
}

function callOf(from: number): string {
  return `${COMMIT_FUNCTION}(${Array.from({ length: VALUES }, (_, at) => `$${from + at + 1}`).join(', ')})`
}
