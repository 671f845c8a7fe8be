import { type PlainRequest, unpackRequest } from './packed-request.ts'
import type { AnswerLine, CodeLine, ReadRecording, RunLine, SourceLine } from './recording-file.ts'

export interface RecordedEntry extends PlayedLine {
  readonly line: AnswerLine | CodeLine
  /** The full request of a model's answer. */
  readonly request: PlainRequest | null
  /** The line number in the file. */
  readonly number: number
}

export interface RecordedScript {
  readonly runs: readonly RunLine[]
  readonly entries: readonly RecordedEntry[]
  readonly sources: readonly { readonly line: SourceLine; readonly number: number }[]
}

/** Prepares a recording for playing: if a lost process made a line appear twice, the second one counts. */
export function recordedScript({ lines }: ReadRecording): RecordedScript {
  const runs = lines.flatMap(({ line }) => ('run' in line ? [line] : []))
  const sources = lines.flatMap(({ line, number }) => ('source' in line ? [{ line, number }] : []))
  const requests = new Map<string, PlainRequest>()
  const found = new Map<string, Omit<RecordedEntry, 'index'>>()
  for (const { line, number } of lines) {
    if (!('at' in line)) continue
    const request = 'request' in line ? unpackRequest(line.request, requests.get(line.request.after ?? '')) : null
    if (request !== null) requests.set(line.at, request)
    const isOpenEnded = 'stopped' in line || ('result' in line && isCancelled(line.result))
    found.delete(line.at)
    found.set(line.at, {
      at: line.at,
      run: runOf(runs, line.at),
      isOpenEnded,
      isAsked: false,
      isOver: false,
      line,
      request,
      number,
    })
  }
  return { runs, sources, entries: [...found.values()].map((entry, index) => ({ ...entry, index })) }
}

function isCancelled(result: CodeLine['result']): boolean {
  return 'stopped' in result && result.stopped === 'cancel'
}

function runOf(runs: readonly RunLine[], at: string): string {
  const own = runs.filter(({ run }) => at.startsWith(run) && '.+@'.includes(at[run.length] ?? '')).map(({ run }) => run)
  return own.toSorted((a, b) => b.length - a.length)[0] ?? ''
}

/** A line that is played. */
export interface PlayedLine {
  readonly at: string
  /** Its index among all played lines. */
  readonly index: number
  /** The root run it belongs to. */
  readonly run: string
  /** Whether nobody waits for it, because it had no end. */
  readonly isOpenEnded: boolean
  isAsked: boolean
  /** Whether its result is in the rows, or will not come. */
  isOver: boolean
}

/** How long nothing may happen before earlier lines are no longer waited for. */
const PATIENCE_MS = 1_000

/**
 * Makes recorded calls end in their recorded order, because the order of ends decides what happens next. Lines that a
 * changed program never asks for cause only a short delay.
 */
export class PlayingOrder {
  private readonly lines: readonly PlayedLine[]
  private readonly runs: Set<string> = new Set()
  private waiting: (() => void)[] = []

  constructor(lines: readonly PlayedLine[]) {
    this.lines = lines
  }

  /** Expects the lines of this run from now on. */
  expect(run: string): void {
    this.runs.add(run)
  }

  over(line: PlayedLine): void {
    line.isOver = true
    const { waiting } = this
    this.waiting = []
    for (const wake of waiting) wake()
  }

  /** Resolves when all lines before this one are over. */
  turnOf(line: PlayedLine, signal: AbortSignal): Promise<void> {
    return this.until(() => this.lines.slice(0, line.index).filter((one) => this.isExpected(one)), signal)
  }

  /** Resolves when that line is over. */
  after(at: string, signal: AbortSignal): Promise<void> {
    return this.until(() => this.lines.filter((one) => one.at === at && this.isExpected(one)), signal)
  }

  private isExpected({ run, isOver, isOpenEnded }: PlayedLine): boolean {
    return !isOver && !isOpenEnded && this.runs.has(run)
  }

  private async until(awaited: () => readonly PlayedLine[], signal: AbortSignal): Promise<void> {
    for (let open = awaited(); open.length > 0; open = awaited()) {
      signal.throwIfAborted()
      const hasMoved = await this.change(signal)
      if (!hasMoved) for (const line of open) line.isOver = true
    }
    signal.throwIfAborted()
  }

  /** Waits for a change; false if nothing happened for too long. */
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
