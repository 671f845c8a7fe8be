import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

type Pair = readonly [near: Socket, far: Socket]

/** A way to a server that can be cut, so that nothing passes and no end is told, as when a cable is pulled. */
export class Cable {
  readonly port: number
  /** The port that new connections are led to. */
  to: number
  /** How long everything takes on its way. */
  delayMs = 0
  /** How much longer it takes at most, by chance. */
  jitterMs = 0
  private readonly server: ReturnType<typeof createServer>
  private readonly pairs: Set<Pair> = new Set()
  /** Ends that nothing of what they send arrives from any more. */
  private readonly dumb: Set<Socket> = new Set()
  private isCut = false
  private isDeaf = false
  /** How many messages were sent to the server. */
  sent = 0
  /** Called before each of them is led on. */
  sends: (number: number, message: Buffer) => void = () => undefined

  private constructor(server: ReturnType<typeof createServer>, to: number) {
    this.server = server
    this.to = to
    const address = server.address()
    this.port = typeof address === 'object' && address !== null ? address.port : 0
    server.on('connection', (near) => this.join(near, connect(this.to, '127.0.0.1')))
  }

  static async open(to: number, host = '127.0.0.1'): Promise<Cable> {
    const server = createServer().listen(0, host)
    await once(server, 'listening')
    return new Cable(server, to)
  }

  cut(): void {
    this.isCut = true
  }

  /** What is sent arrives; no answer does. */
  loseAnswers(): void {
    this.isDeaf = true
  }

  /**
   * Nothing passes through the connections of now any more, or nothing in one direction, and neither side is told. New ones work.
   */
  forget(what: 'all' | 'questions' | 'answers' = 'all'): void {
    for (const [near, far] of this.pairs) {
      if (what !== 'answers') this.dumb.add(near)
      if (what !== 'questions') this.dumb.add(far)
    }
  }

  /** Connections that were cut end now: both sides had forgotten each other. */
  heal(): void {
    this.isCut = false
    this.isDeaf = false
    this.break()
  }

  /** The connections of now end at once, and both sides are told. New ones work. */
  break(): void {
    for (const pair of this.pairs) for (const socket of pair) socket.resetAndDestroy()
  }

  /** How many connections go through it. */
  get connections(): number {
    return this.pairs.size
  }

  async close(): Promise<void> {
    this.heal()
    this.server.close()
    await once(this.server, 'close')
  }

  private join(near: Socket, far: Socket): void {
    const pair: Pair = [near, far]
    this.pairs.add(pair)
    this.lead(pair, near, far)
    this.lead(pair, far, near)
  }

  private lead(pair: Pair, from: Socket, to: Socket): void {
    let lastDue = 0
    const waiting: Buffer[] = []
    from.on('error', () => undefined)
    from.on('data', (data) => {
      if (from === pair[0]) this.sends(++this.sent, data)
      if (from.destroyed || to.destroyed) return
      if (this.isCut || this.dumb.has(from) || (this.isDeaf && from === pair[1])) return
      // What was sent first arrives first, however long it takes.
      lastDue = Math.max(lastDue, performance.now() + this.delayMs + Math.random() * this.jitterMs)
      if (lastDue <= performance.now() && waiting.length === 0) to.write(data)
      else {
        waiting.push(data)
        setTimeout(() => to.destroyed || to.write(waiting.shift() ?? ''), lastDue - performance.now())
      }
    })
    from.on('close', () => {
      this.pairs.delete(pair)
      this.dumb.delete(from)
      to.destroy()
    })
  }
}
