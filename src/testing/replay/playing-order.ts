/** A line that is played. */
export interface Played {
  readonly at: string
  /** Among all that are played. */
  readonly index: number
  /** The run at the root that it is of. */
  readonly run: string
  /** Nobody waits for it: it had no end. */
  readonly isOpenEnded: boolean
  isAsked: boolean
  /** What it came to is in the rows, or it will not come. */
  isOver: boolean
}

/** How long nothing may happen before what was recorded earlier is not waited for any more. */
const PATIENCE_MS = 1_000

/**
 * Lets what was recorded end in the order in which it was recorded: who is first to end makes a difference to what happens
 * next. What a changed program never asks for holds nothing up for long.
 */
export class PlayingOrder {
  private readonly lines: readonly Played[]
  private readonly runs: Set<string> = new Set()
  private waiting: (() => void)[] = []

  constructor(lines: readonly Played[]) {
    this.lines = lines
  }

  /** This run is played: its lines are expected from here on. */
  expect(run: string): void {
    this.runs.add(run)
  }

  over(line: Played): void {
    line.isOver = true
    const { waiting } = this
    this.waiting = []
    for (const wake of waiting) wake()
  }

  /** Resolves when all that was recorded before this line is over. */
  turnOf(line: Played, signal: AbortSignal): Promise<void> {
    return this.until(() => this.lines.slice(0, line.index).filter((one) => this.isExpected(one)), signal)
  }

  /** Resolves when that line is over. */
  after(at: string, signal: AbortSignal): Promise<void> {
    return this.until(() => this.lines.filter((one) => one.at === at && this.isExpected(one)), signal)
  }

  private isExpected({ run, isOver, isOpenEnded }: Played): boolean {
    return !isOver && !isOpenEnded && this.runs.has(run)
  }

  private async until(awaited: () => readonly Played[], signal: AbortSignal): Promise<void> {
    for (let open = awaited(); open.length > 0; open = awaited()) {
      signal.throwIfAborted()
      const hasMoved = await this.change(signal)
      if (!hasMoved) for (const line of open) line.isOver = true
    }
    signal.throwIfAborted()
  }

  /** False when nothing happened for too long. */
  private change(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (hasMoved: boolean) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', stop)
        resolve(hasMoved)
      }
      const stop = () => settle(true)
      const timer = setTimeout(() => settle(false), PATIENCE_MS)
      signal.addEventListener('abort', stop, { once: true })
      this.waiting.push(stop)
    })
  }
}
