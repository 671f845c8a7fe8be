import { connect, type Socket } from 'node:net'

/** A connection that sends exactly the bytes it is told to. */
export class RawConnection {
  readonly socket: Socket
  text = ''
  isEnded = false
  private readonly waiting = new Set<() => void>()

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    this.socket.setEncoding('utf8')
    this.socket.on('data', (part: string) => this.heard(part))
    this.socket.on('error', () => this.heard(''))
    this.socket.on('end', () => this.ended())
    this.socket.on('close', () => this.ended())
  }

  send(text: string): this {
    this.socket.write(text)
    return this
  }

  /** Resolves when the text that came so far fits, or the other side has ended. */
  async until(isEnough: (text: string) => boolean, timeoutMs = 10_000): Promise<string> {
    const until = Date.now() + timeoutMs
    while (!isEnough(this.text) && !this.isEnded) {
      if (Date.now() > until) throw new Error(`Nothing more came. So far: ${this.text.slice(0, 500)}`)
      await new Promise<void>((resolve) => {
        this.waiting.add(resolve)
        setTimeout(resolve, 50)
      })
    }
    return this.text
  }

  /** Resolves with everything when the other side has ended. */
  end(timeoutMs?: number): Promise<string> {
    return this.until(() => false, timeoutMs)
  }

  close(): void {
    this.socket.destroy()
  }

  private heard(part: string): void {
    this.text += part
    for (const wake of this.waiting) wake()
    this.waiting.clear()
  }

  private ended(): void {
    this.isEnded = true
    this.heard('')
  }
}

/** The head of a request, ready to send. */
export function head(line: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${line}\r\n${lines.join('')}\r\n`
}
