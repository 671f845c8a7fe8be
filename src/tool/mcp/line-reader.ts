/** Lines of a stream of bytes; the end of the stream is no line. Says when a line is longer than it may be. */
export class LineReader {
  private readonly most: number
  private parts: Buffer[] = []
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
      const line = Buffer.concat([...this.parts, chunk.subarray(from, at)]).toString('utf8')
      lines.push(line.endsWith('\r') ? line.slice(0, -1) : line)
      this.parts = []
      this.size = 0
      from = at + 1
    }
    const rest = chunk.subarray(from)
    this.size += rest.length
    if (this.size > this.most) return undefined
    if (rest.length > 0) this.parts.push(rest)
    return lines
  }
}

const LINE_END = 0x0a
