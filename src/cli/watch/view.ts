import type { RunEvent } from '../../index.ts'
import type { Desk } from '../desk/desk.ts'
import { jsonLine, put, write } from '../terminal/output.ts'
import { hasScreen, painter } from '../terminal/paint.ts'
import { EventLines, type EventLinesOptions } from './event-lines.ts'
import { LiveTree } from './live-tree.ts'
import type { ScreenQuestion } from './request-text.ts'

/** A display for the events of watched runs: a live tree, plain lines, or JSON. */
export interface RunView {
  /** Whether a newly watched run is shown from its first event. */
  readonly wantsHistory: boolean
  take(event: RunEvent, runId: string): void | Promise<void>
  /** Prints permanent text. */
  say(text: string): void
  /**
   * Shows a question at the bottom of the screen, if there is one; null removes it. Calls `shown` once it can be read.
   */
  ask(question: ScreenQuestion | null, shown?: () => void): void
  /** Shows the final state and restores the terminal. */
  close(): void
}

/** Chooses a display: a live tree on a terminal, plain lines without one, one JSON event a line for programs. */
export function viewFor(desk: Desk, options: ViewOptions): RunView {
  const { json, env, hint, isBeside = false, isAllowed = false, prompt = null } = options
  const paint = painter(isBeside && !process.stdout.isTTY ? process.stderr : process.stdout, env)
  if (json) {
    return {
      wantsHistory: false,
      take: (event) => write(jsonLine(event)),
      say: (text) => {
        put(process.stderr, text)
      },
      ask: () => undefined,
      close: () => undefined,
    }
  }
  if (hasScreen(process.stdout, env)) return new LiveTree(desk, { paint, hint, speaks: isBeside })
  return lineView({ paint, deltas: false, isAllowed, ...(isBeside ? { brief: { prompt } } : {}) }, isBeside)
}

function lineView(options: EventLinesOptions, isBeside: boolean): RunView {
  const lines = new Map<string, EventLines>()
  const say = (text: string) => put(isBeside ? process.stderr : process.stdout, text)
  return {
    wantsHistory: false,
    take: (event, runId) => {
      const teller = lines.get(runId) ?? new EventLines(options)
      lines.set(runId, teller)
      return isBeside ? say(teller.tell(event)) : write(teller.tell(event))
    },
    say,
    ask: () => undefined,
    close: () => undefined,
  }
}

export interface ViewOptions {
  readonly json: boolean
  readonly env: NodeJS.ProcessEnv
  /** A hint at what the person can do meanwhile. */
  readonly hint: string
  /** Write lines to stderr if there is no screen, because stdout holds the answer. */
  readonly isBeside?: boolean
  /** Everything is allowed at once, and whoever allows it reports it. */
  readonly isAllowed?: boolean
  /** Text to show, on stderr, in place of the input of the run that the person started. */
  readonly prompt?: string | null
}
