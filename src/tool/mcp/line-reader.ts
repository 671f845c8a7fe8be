const EMPTY = Buffer.alloc(0)

/** Lines of a stream of bytes; the end of the stream is no line. Says when a line is longer than it may be. */
export class LineReader {
  private readonly most: number
  /** The beginning of a line: the first `size` bytes of it. It grows by doubling, however small the pieces are. */
  private begun: Buffer = EMPTY
  private size = 0

  constructor(most: number) {
    this.most = most
  }

  /** The lines that this chunk ends; undefined when one is too long. */
  take(chunk: Buffer): string[] | undefined {
    const lines: string[] = []
    let from = 0
    for (let at = chunk.indexOf(LINE_END); at !== -1; at = chunk.indexOf(LINE_END, from)) {
      if (this.size + at - from > this.most) return undefined
      lines.push(this.finish(chunk, from, at))
      from = at + 1
    }
    if (this.size + chunk.length - from > this.most) return undefined
    this.keep(chunk.subarray(from))
    return lines
  }

  private finish(chunk: Buffer, from: number, to: number): string {
    const isWhole = this.size === 0
    if (!isWhole) this.keep(chunk.subarray(from, to))
    const line = isWhole ? chunk.toString('utf8', from, to) : this.begun.toString('utf8', 0, this.size)
    if (!isWhole) this.begun = EMPTY
    this.size = 0
    return line.endsWith('\r') ? line.slice(0, -1) : line
  }

  private keep(bytes: Buffer): void {
    const size = this.size + bytes.length
    if (size > this.begun.length) {
      const larger = Buffer.allocUnsafe(Math.max(size, this.begun.length * 2))
      this.begun.copy(larger, 0, 0, this.size)
      this.begun = larger
    }
    bytes.copy(this.begun, this.size)
    this.size = size
  }
}

const LINE_END = 0x0a
