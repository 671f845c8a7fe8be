/** The most characters that are kept of the beginning and of the end of a standard error. */
const KEPT = 1_000
/** The most of a line: of a longer one the beginning counts. */
const LONGEST_LINE = 500

/** Frames of a stack in the forms of JavaScript and Python: they say where something went wrong, and not what. */
const FRAME = /^\s+at |^\s+File "[^"]*", line \d+|^\s*\^+\s*$/
const CAUSE = /(?:error|exception|fatal|panic)\b/i

/**
 * Keeps of what a program writes to its standard error that which says why it ended: its beginning, its end, and the last line
 * that names an error, all without the frames of a stack. It holds a few kilobytes, however much comes. What is cut off are ends of
 * lines and whole lines: the beginning of a secret is still known as one.
 */
export class ErrorOutput {
  private head = ''
  private tail = ''
  private cause = ''
  private line = ''

  add(chunk: string): void {
    const lines = chunk.split('\n')
    const last = lines.pop() ?? ''
    for (const line of lines) {
      this.take(this.begun(line))
      this.line = ''
    }
    this.line = this.begun(last)
  }

  /** The lines that are kept, in the order in which the program wrote them. */
  get text(): string {
    const shown = new ErrorOutput()
    Object.assign(shown, { head: this.head, tail: this.tail, cause: this.cause })
    shown.take(this.line)
    return shown.whole().trim()
  }

  private begun(more: string): string {
    return `${this.line}${more.slice(0, LONGEST_LINE)}`.slice(0, LONGEST_LINE)
  }

  private take(line: string): void {
    if (line.trim() === '' || FRAME.test(line)) return
    if (CAUSE.test(line)) this.cause = line
    if (this.tail === '' && this.head.length + line.length <= KEPT) this.head += `${line}\n`
    else this.tail = lastLines(`${this.tail}${line}\n`)
  }

  private whole(): string {
    const { head, tail, cause } = this
    if (tail === '') return head
    return head.includes(cause) || tail.includes(cause) ? `${head}... ${tail}` : `${head}... ${cause}\n... ${tail}`
  }
}

function lastLines(text: string): string {
  return text.length <= KEPT ? text : text.slice(text.indexOf('\n', text.length - KEPT - 1) + 1)
}
