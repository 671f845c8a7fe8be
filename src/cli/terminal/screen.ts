import { printable } from './clean.ts'
import { widthOf } from './width.ts'

const ESC = '\u001b['
/** Terminals that support this mark show a frame only when it is complete; others ignore it. */
const BEGIN = `${ESC}?2026h`
const END = `${ESC}?2026l`
const HIDE_CURSOR = `${ESC}?25l`
const SHOW_CURSOR = `${ESC}?25h`
const CLEAR_REST_OF_LINE = `${ESC}K`
const CLEAR_BELOW = `${ESC}J`

/** A line to write, and its width in columns without colours. */
export interface ScreenLine {
  readonly text: string
  readonly columns: number
}

export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

/**
 * A block of lines at the end of the terminal's output that is redrawn: one write per frame, and only the lines that
 * changed. Other output appears above it. The cursor is always restored.
 */
export class Screen {
  private readonly stream: NodeJS.WriteStream
  /** The stream's original `write`, whatever replaces it while the screen is open. */
  private readonly put: (text: string) => void
  private drawn: readonly ScreenLine[] = []
  private drawnColumns = 0
  private isOpen = false
  private restoreStreams: () => void = () => undefined
  private readonly onExit = (): void => this.close()

  constructor(stream: NodeJS.WriteStream) {
    this.stream = stream
    const write = stream.write.bind(stream)
    this.put = (text) => {
      write(text)
    }
  }

  private get size(): ScreenSize {
    return { columns: this.stream.columns || 80, rows: this.stream.rows || 24 }
  }

  /** Asks the terminal for its size: the signal of a change may come after the next frame. */
  measure(): ScreenSize {
    const { _refreshSize: refresh } = this.stream as { _refreshSize?: () => void }
    refresh?.call(this.stream)
    return this.size
  }

  /**
   * Draws these lines in place of the previous ones. They must be narrower than the terminal and fewer than its rows.
   */
  draw(drawn: readonly ScreenLine[]): void {
    const lines = drawn.map(({ text, columns }) => ({ text: printable(text), columns }))
    if (!this.isOpen) this.open()
    const frame = this.frame(lines)
    if (frame !== '') this.put(`${BEGIN}${frame}${END}`)
    this.drawn = lines
    this.drawnColumns = this.size.columns
  }

  /** Prints permanent text above the block. */
  print(text: string): void {
    if (!this.isOpen) return this.put(text)
    const lines = this.drawn
    const end = text.endsWith('\n') ? '' : '\n'
    this.drawn = []
    this.put(`${BEGIN}${this.upOver(lines)}${CLEAR_BELOW}${text}${end}${lines.map(toLine).join('')}${END}`)
    this.drawn = lines
    this.drawnColumns = this.size.columns
  }

  /** Leaves the last frame and restores the terminal. May be called more than once. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.drawn = []
    this.restoreStreams()
    process.off('exit', this.onExit)
    this.put(SHOW_CURSOR)
  }

  private open(): void {
    this.isOpen = true
    process.on('exit', this.onExit)
    this.put(HIDE_CURSOR)
    this.restoreStreams = intercept((text) => this.print(text))
  }

  private frame(lines: readonly ScreenLine[]): string {
    const isSameWidth = this.drawnColumns === this.size.columns
    if (!isSameWidth) return `${this.upOver(this.drawn)}${CLEAR_BELOW}${lines.map(toLine).join('')}`
    const first = lines.findIndex((line, at) => line.text !== this.drawn[at]?.text)
    const isShorter = lines.length < this.drawn.length
    if (first === -1 && !isShorter) return ''
    const from = first === -1 ? lines.length : first
    const body = lines.slice(from).map((line, at) => this.changed(line, from + at))
    return `${up(this.drawn.length - from)}${body.join('')}${isShorter ? CLEAR_BELOW : ''}`
  }

  private changed(line: ScreenLine, at: number): string {
    return this.drawn[at]?.text === line.text ? '\n' : `${line.text}${CLEAR_REST_OF_LINE}\n`
  }

  /** Moves to the start of the block. A terminal that became narrower has broken its lines. */
  private upOver(lines: readonly ScreenLine[]): string {
    const { columns, rows } = this.size
    const taken = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.columns / columns)), 0)
    return up(Math.min(taken, rows - 1))
  }
}

export function plainLine(text: string): ScreenLine {
  return { text, columns: widthOf(text) }
}

function up(lines: number): string {
  return lines > 0 ? `\r${ESC}${lines}A` : '\r'
}

function toLine({ text }: ScreenLine): string {
  return `${text}${CLEAR_REST_OF_LINE}\n`
}

/** Catches the output of a user's own code, which the next frame would overwrite. Returns a function that stops it. */
function intercept(print: (text: string) => void): () => void {
  const streams = [process.stdout, process.stderr].filter(({ isTTY }) => isTTY)
  const originals = streams.map((stream) => stream.write)
  for (const stream of streams) {
    stream.write = ((chunk: string | Uint8Array, ...rest: readonly unknown[]) => {
      print(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString())
      const done = rest.find((value) => typeof value === 'function') as (() => void) | undefined
      if (done !== undefined) process.nextTick(done)
      return true
    }) as typeof stream.write
  }
  return () => {
    for (const [at, stream] of streams.entries()) stream.write = originals[at] ?? stream.write
  }
}
