import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { within } from '../../base/abort.ts'
import { ToolError } from '../../base/error.ts'
import { parseJson } from '../../base/json.ts'
import type { OwnerFolder } from '../../files/files.ts'
import type { ProgramRequest } from '../../grant/request.ts'
import { type GroupedChild, signalGroup, startGroup } from '../../tool/process-group.ts'
import { ErrorOutput } from './error-output.ts'
import { MOST_MESSAGE_BYTES, MOST_MESSAGE_DEPTH } from './options.ts'
import { unreadAnswer, usableMessage } from './usable-message.ts'

export interface StdioProgram {
  readonly request: ProgramRequest
  readonly cwd: string | undefined
  /** The folder of an owner, in which it runs instead. */
  readonly own?: OwnerFolder | null
  readonly env: Readonly<Record<string, string>>
}

/** How long a server may take to end after its input has ended, and after it was asked to. */
const END_MS = 150
const KILL_MS = 250

/**
 * A server as a process group: it ends with the connection and with this process, together with all that stays in its group.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  private readonly program: StdioProgram
  private readonly reader: LineReader = new LineReader(MOST_MESSAGE_BYTES)
  private child: GroupedChild | undefined
  private gone: Promise<void> = Promise.resolve()
  private isClosing = false
  private isOver = false
  /** The lines of the last chunk. The output is paused until all are read; `nextLine` is the next one. */
  private lines: readonly string[] = []
  private nextLine = 0
  /** How many lines since the last message were no message. */
  private strays = 0
  private readonly said: ErrorOutput = new ErrorOutput()
  private end = ''
  /** True when the program ended by itself. */
  hasExited = false
  /** By this field and `pid` the library recognises a transport over pipes, where silence is no outage. */
  readonly stderr: null = null

  constructor(program: StdioProgram) {
    this.program = program
  }

  /** The reason why it ended, and what its standard error says of it. */
  get lastWords(): string {
    const said = this.said.text
    return `${this.end}${said === '' ? '' : `${this.end === '' ? '' : '; '}it said: ${said}`}`
  }

  get pid(): number | null {
    return this.child?.pid ?? null
  }

  async start(): Promise<void> {
    const { request, own = null, ...options } = this.program
    const child =
      own === null
        ? await startGroup(request, options)
        : await own.use((cwd) => startGroup(request, { ...options, cwd }))
    if (this.isOver) {
      signalGroup(child, 'SIGKILL')
      throw new ToolError('tool', 'it is not needed any more')
    }
    this.child = child
    child.stdin.on('error', () => undefined) // its exit reports the end
    child.stdout.on('data', (chunk: Buffer) => this.receive(chunk))
    child.stdout.on('error', () => undefined)
    child.stderr.on('data', (chunk: Buffer) => this.said.add(chunk.toString('utf8')))
    child.stderr.on('error', () => undefined)
    this.gone = new Promise((resolve) => {
      child.once('exit', (code) => {
        this.exited(code)
        signalGroup(child, 'SIGKILL') // ends what it left running in its group
        setImmediate(() => this.overWhenRead())
        resolve()
      })
    })
    // The server alone does not keep this process alive; waiting for its answers does.
    child.unref()
    for (const stream of child.stdio) (stream as { unref?: () => void } | null)?.unref?.()
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { child } = this
    if (child === undefined || this.isOver || !child.stdin.writable) throw new ToolError('tool', 'the server has ended')
    const line = `${JSON.stringify(message)}\n`
    const waiting = child.stdin.writableLength
    if (waiting > 0 && waiting + Buffer.byteLength(line) > MOST_MESSAGE_BYTES) throw new ToolError('tool', NOT_READ)
    const failure = await new Promise<Error | null | undefined>((resolve) => {
      child.stdin.write(line, resolve)
    })
    if (failure) throw await this.whyUnwritable(failure)
  }

  /** Called when the program ended although nobody asked it to. */
  private exited(code: number | null): void {
    if (this.isClosing || this.end !== '') return
    this.hasExited = code !== NOT_FOUND
    this.end = code === NOT_FOUND ? `there is no program ${this.program.request.argv[0]}` : ended(code)
  }

  /** A pipe breaks a moment before the process is seen to end, and only the end shows the reason. */
  private async whyUnwritable(failure: Error): Promise<Error> {
    await within(this.gone, END_MS)
    return this.lastWords === '' ? failure : new ToolError('tool', this.lastWords, { cause: failure })
  }

  async close(): Promise<void> {
    this.isClosing = true
    const { child } = this
    if (child === undefined) return this.over()
    child.ref()
    child.stdin.end()
    const asking = setTimeout(() => signalGroup(child, 'SIGTERM'), END_MS)
    const killing = setTimeout(() => signalGroup(child, 'SIGKILL'), END_MS + KILL_MS)
    await this.gone
    clearTimeout(asking)
    clearTimeout(killing)
    this.over()
  }

  private receive(chunk: Buffer): void {
    const lines = this.isOver ? [] : this.reader.take(chunk)
    if (lines === undefined) return this.refuse(`it sent a message of more than ${MOST_MESSAGE_BYTES / 1e6} MB`)
    this.lines = lines
    this.nextLine = 0
    this.readLines()
  }

  /** Reads a few lines and lets others work before the next ones: a server may write faster than we can read. */
  private readLines(): void {
    for (let left = LINES_AT_ONCE; left > 0 && this.hasLines; left--) this.read(this.lines[this.nextLine++] ?? '')
    if (this.hasLines) {
      this.child?.stdout.pause()
      setImmediate(() => this.readLines())
    } else this.child?.stdout.resume()
  }

  private get hasLines(): boolean {
    return !this.isOver && this.nextLine < this.lines.length
  }

  private overWhenRead(): void {
    if (this.hasLines) setImmediate(() => this.overWhenRead())
    else this.over()
  }

  /** Skips lines that are no message: some servers write other things to their output. */
  private read(line: string): void {
    const parsed = parseJson(line, { maxBytes: MOST_MESSAGE_BYTES, maxDepth: MOST_MESSAGE_DEPTH })
    const message = parsed.ok ? usableMessage(parsed.value) : unreadAnswer(line, parsed.error)
    if (message !== null) {
      this.strays = 0
      this.hand(message)
    } else if (++this.strays > MOST_STRAYS) this.refuse(`it wrote ${MOST_STRAYS} lines in a row that are no messages`)
    else this.onerror?.(new Error(parsed.ok ? 'It is no message.' : parsed.error))
  }

  /** The library delivers notices a moment later than answers, so an answer waits for the notices before it. */
  private hand(message: JSONRPCMessage): void {
    const isNotice = typeof message === 'object' && message !== null && 'method' in message
    if (isNotice) this.onmessage?.(message)
    else setImmediate(() => this.onmessage?.(message))
  }

  private refuse(reason: string): void {
    this.end = reason
    this.over()
    if (this.child !== undefined) signalGroup(this.child, 'SIGKILL')
  }

  private over(): void {
    if (this.isOver) return
    this.isOver = true
    this.child?.stdin.destroy()
    this.child?.stdout.destroy()
    this.child?.stderr.destroy()
    this.onclose?.()
  }
}

const NOT_FOUND = 127
const NOT_READ = `the server does not read its input: no more than ${MOST_MESSAGE_BYTES / 1e6} MB wait for it`
/** Some servers write a log to their output; a server that writes nothing else would keep this process busy. */
const MOST_STRAYS = 10_000
/** Reading this many messages takes a few milliseconds. */
const LINES_AT_ONCE = 200

function ended(code: number | null): string {
  return code === null ? 'it was killed' : `it ended with exit code ${code}`
}

const EMPTY = Buffer.alloc(0)

/**
 * Splits a stream of bytes into lines; an unfinished line at its end does not count. Reports a line that is too long.
 */
export class LineReader {
  private readonly most: number
  /** The beginning of a line: its first `size` bytes. The buffer doubles, however small the pieces are. */
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
