import type { RunEvent, Runtime } from '../../index.ts'
import { jsonLine, write } from '../terminal/output.ts'
import { hasScreen, painter } from '../terminal/paint.ts'
import type { Question } from './asked.ts'
import { EventLines, type EventLinesOptions } from './event-lines.ts'
import { LiveTree } from './live-tree.ts'

/** Where the events of watched runs go: a live tree, plain lines, or JSON. */
export interface View {
  /** One more run to watch, from its first event on. */
  readonly wantsHistory: boolean
  take(event: RunEvent, runId: string): void | Promise<void>
  /** Text that stays. */
  say(text: string): void
  /** A question at the bottom, where there is a screen; null for none. `shown` is called once it can be read. */
  ask(question: Question | null, shown?: () => void): void
  /** Shows how everything stands at the end and gives the terminal back. */
  close(): void
}

/** A live tree for people, plain lines where nobody looks at a terminal, one JSON event a line for programs. */
export function viewFor(runtime: Runtime, options: ViewOptions): View {
  const { json, env, hint, isBeside = false, isAllowed = false, prompt = null } = options
  const paint = painter(isBeside && !process.stdout.isTTY ? process.stderr : process.stdout, env)
  if (json) {
    return {
      wantsHistory: false,
      take: (event) => write(jsonLine(event)),
      say: (text) => {
        process.stderr.write(text)
      },
      ask: () => undefined,
      close: () => undefined,
    }
  }
  if (hasScreen(process.stdout, env)) return new LiveTree(runtime, { paint, hint, speaks: isBeside })
  return lineView({ paint, deltas: false, isAllowed, ...(isBeside ? { brief: { prompt } } : {}) }, isBeside)
}

function lineView(options: EventLinesOptions, isBeside: boolean): View {
  const lines = new Map<string, EventLines>()
  const put = (text: string) => {
    ;(isBeside ? process.stderr : process.stdout).write(text)
  }
  return {
    wantsHistory: false,
    take: (event, runId) => {
      const teller = lines.get(runId) ?? new EventLines(options)
      lines.set(runId, teller)
      return isBeside ? put(teller.tell(event)) : write(teller.tell(event))
    },
    say: put,
    ask: () => undefined,
    close: () => undefined,
  }
}

export interface ViewOptions {
  readonly json: boolean
  readonly env: NodeJS.ProcessEnv
  /** What a person can do meanwhile. */
  readonly hint: string
  /** Lines go to stderr where there is no screen: the output is for something else. */
  readonly isBeside?: boolean
  /** Everything that is asked for is allowed at once, and whoever does it says so. */
  readonly isAllowed?: boolean
  /** What is shown, beside the output, instead of what the agent is asked that a person runs. */
  readonly prompt?: string | null
}
