import { Problem } from '../problem/problem.ts'

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

/** Large bodies of one principal, a few at a time: reading and keeping them takes the time of everybody. */
export class Turns {
  private readonly queues: Map<string, Queue> = new Map()

  /** Does the work when it is its turn. Refuses where too many wait. */
  async take<Done>(key: string, work: (read: () => void) => Promise<Done>): Promise<Done> {
    const queue = this.queues.get(key) ?? { busy: 0, waiting: [] }
    this.queues.set(key, queue)
    if (queue.busy < MOST_AT_ONCE) queue.busy++
    else await wait(queue)
    const pass = once(() => this.pass(key, queue))
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

function wait({ waiting }: Queue): Promise<void> {
  if (waiting.length >= MOST_WAITING) {
    const headers = { 'retry-after': '2', connection: 'close' }
    throw new Problem('too_many', `${MOST_AT_ONCE + MOST_WAITING} of your large requests are being read.`, headers)
  }
  return new Promise((resolve) => waiting.push(resolve))
}

function once(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}
