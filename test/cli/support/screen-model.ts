import { widthOf } from '../../../src/cli/terminal/width.ts'

const ESC = '\u001b'
/** Whole frames, and marks around what is pasted. */
const HARMLESS: ReadonlySet<string> = new Set(['?2026', '?2004'])

/** Just enough of a terminal to know what people see: text, line breaks, and the codes that the command line writes. */
export class ScreenModel {
  isCursorVisible = true
  /** Codes that are none of those: there must be none. */
  readonly unknown: string[] = []
  private columns: number
  private rows: number
  /** All lines, those that were scrolled away first. A wide character is followed by an empty cell. */
  private lines: string[][] = [[]]
  private top = 0
  private row = 0
  private column = 0
  private rest = ''

  constructor(columns: number, rows: number) {
    this.columns = columns
    this.rows = rows
  }

  /** What is on the screen. */
  get text(): string {
    return this.shown(this.top)
  }

  /** The same with what was scrolled away. */
  get all(): string {
    return this.shown(0)
  }

  get lineCount(): number {
    return this.text.split('\n').length
  }

  /** A frame is shown when it is complete, as terminals that know how do it. */
  write(text: string): void {
    const all = this.rest + text
    const begun = all.lastIndexOf(`${ESC}[?2026h`)
    const isWhole = begun === -1 || all.includes(`${ESC}[?2026l`, begun)
    this.rest = isWhole ? '' : all.slice(begun)
    this.show(isWhole ? all : all.slice(0, begun))
  }

  private show(text: string): void {
    const [first = '', ...sequences] = text.split(ESC)
    this.plain(first)
    for (const [at, sequence] of sequences.entries()) {
      const [whole, parameters = '', code = ''] = /^\[([?\d;]*)([A-Za-z])/.exec(sequence) ?? []
      if (whole !== undefined) {
        this.control(parameters, code)
        this.plain(sequence.slice(whole.length))
      } else if (at === sequences.length - 1 && /^(?:\[[?\d;]*)?$/.test(sequence))
        this.rest = ESC + sequence + this.rest
      else this.unknown.push(sequence)
    }
  }

  /** As terminals do it: lines that are too long are broken, and the cursor stays with its line. */
  resize(columns: number, rows: number): void {
    const broken: string[][] = []
    let row = 0
    for (const [at, line] of this.lines.entries()) {
      if (at === this.row) row = broken.length
      const cells = this.trimmed(line)
      do broken.push(cells.splice(0, columns))
      while (cells.length > 0)
    }
    this.lines = broken
    this.columns = columns
    this.rows = rows
    this.row = row
    this.top = Math.max(0, Math.min(this.top, row), row - rows + 1)
  }

  private shown(from: number): string {
    const lines = this.lines.slice(from).map((line) => this.trimmed(line).join(''))
    while (lines.at(-1) === '') lines.pop()
    return lines.join('\n')
  }

  private trimmed(line: readonly string[]): string[] {
    const cells = Array.from(line, (cell) => cell ?? ' ')
    while (cells.at(-1) === ' ') cells.pop()
    return cells
  }

  private down(): void {
    this.row++
    if (this.row - this.top >= this.rows) this.top++
    this.lines[this.row] ??= []
  }

  private plain(text: string): void {
    for (const piece of text.split(/(?<=[\r\n])|(?=[\r\n])/)) {
      if (piece === '\r') this.column = 0
      else if (piece === '\n') this.down()
      else this.put(piece)
    }
  }

  private put(text: string): void {
    for (const { segment } of new Intl.Segmenter().segment(text)) {
      const width = widthOf(segment)
      if (width === 0 && segment < ' ') this.unknown.push(segment)
      if (this.column + width > this.columns) {
        this.column = 0
        this.down()
      }
      const line = this.lines[this.row] ?? []
      while (line.length < this.column) line.push(' ')
      line[this.column] = segment
      if (width === 2) line[this.column + 1] = ''
      this.lines[this.row] = line
      this.column += width
    }
  }

  private control(parameters: string, code: string): void {
    const number = Number(parameters || 1)
    const known: Readonly<Record<string, () => void>> = {
      A: () => {
        this.row = Math.max(this.top, this.row - number)
      },
      G: () => {
        this.column = number - 1
      },
      K: () => {
        this.lines[this.row] = (this.lines[this.row] ?? []).slice(0, this.column)
      },
      J: () => {
        this.lines = this.lines.slice(0, this.row + 1)
        this.lines[this.row] = (this.lines[this.row] ?? []).slice(0, this.column)
      },
      m: () => undefined,
      h: () => this.mode(parameters, true),
      l: () => this.mode(parameters, false),
    }
    const act = known[code]
    if (act === undefined) this.unknown.push(`[${parameters}${code}`)
    else act()
  }

  private mode(parameters: string, on: boolean): void {
    if (parameters === '?25') this.isCursorVisible = on
    else if (!HARMLESS.has(parameters)) this.unknown.push(`[${parameters}`)
  }
}
