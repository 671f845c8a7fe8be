import { Problem } from '../http/problem/problem.ts'

/** Bodies larger than this, and those that do not say how large they are, take turns. */
const LARGE_BYTES = 100_000
/** Large bodies of one principal at a time. */
const MOST_AT_ONCE = 4
/** Those that wait for their turn. */
const MOST_WAITING = 16
/** A request that waits for something else than work keeps nobody from his turn. */
const LONGEST_MS = 2_000

interface Queue {
  busy: number
  readonly waiting: (() => void)[]
}

/** Large requests or answers of one principal, a few at a time: to read, keep and send them takes the time and memory of everybody. */
export class Turns {
  private readonly queues: Map<string, Queue> = new Map()
  private readonly atOnce: number

  constructor(atOnce: number = MOST_AT_ONCE) {
    this.atOnce = atOnce
  }

  /** Does the work when it is its turn. Refuses where too many wait. */
  async take<Done>(key: string, work: (read: () => void) => Promise<Done>): Promise<Done> {
    const pass = this.enterNow(key) ?? (await this.enter(key))
    let timer: NodeJS.Timeout | undefined
    try {
      return await work(() => {
        timer = setTimeout(pass, LONGEST_MS)
      })
    } finally {
      clearTimeout(timer)
      pass()
    }
  }

  /** Has somebody a turn of this key? */
  isBusy(key: string): boolean {
    return this.queues.has(key)
  }

  /** Begins a turn now, and gives what ends it; undefined where others have theirs. */
  enterNow(key: string): (() => void) | undefined {
    const queue = this.queues.get(key) ?? { busy: 0, waiting: [] }
    if (queue.busy >= this.atOnce) return undefined
    this.queues.set(key, queue)
    queue.busy++
    return once(() => this.pass(key, queue))
  }

  /** Waits for a turn, and gives what ends it. Refuses where too many wait, and rejects when who waits has left. */
  async enter(key: string, signal?: AbortSignal): Promise<() => void> {
    const queue = this.queues.get(key)
    const now = this.enterNow(key)
    if (now !== undefined || queue === undefined) return now ?? (() => undefined)
    await wait(queue, this.atOnce, signal)
    return once(() => this.pass(key, queue))
  }

  /** Gives the turn to the next one that waits. */
  private pass(key: string, queue: Queue): void {
    const next = queue.waiting.shift()
    if (next !== undefined) {
      // Others than this principal come in between.
      setImmediate(next)
      return
    }
    queue.busy--
    if (queue.busy === 0) this.queues.delete(key)
  }
}

/** Is a body large enough to take turns? */
export function isLarge(headers: Headers): boolean {
  const length = headers.get('content-length')
  return length === null ? headers.has('transfer-encoding') : Number(length) > LARGE_BYTES
}

function wait({ waiting }: Queue, atOnce: number, signal: AbortSignal | undefined): Promise<void> {
  if (waiting.length >= MOST_WAITING) {
    const headers = { 'retry-after': '2', connection: 'close' }
    throw new Problem('too_many', `${atOnce + MOST_WAITING} of your large requests are under way.`, headers)
  }
  return new Promise((resolve, reject) => {
    const begin = () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    }
    const leave = () => {
      const at = waiting.indexOf(begin)
      // Whoever has left the queue has a turn already, and finds out by himself.
      if (at < 0) return
      waiting.splice(at, 1)
      reject(signal?.reason)
    }
    waiting.push(begin)
    signal?.addEventListener('abort', leave, { once: true })
    if (signal?.aborted === true) leave()
  })
}

function once(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}
