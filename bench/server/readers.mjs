// Readers of event streams in a process of their own: raw sockets, so that reading costs little beside serving.
//
// The parent sends { open: [{ path, after? }], token, port } and gets { opened } when all have heard the server, then { done,
// figures }. Each reader counts its frames, follows the ids of durable events, and takes the time from the one that a delta
// names to its arrival. Readers that drop also compare what they heard of a message with the message, and keep a hash of all
// recorded events.

import { createHash } from 'node:crypto'
import { connect } from 'node:net'

/** One stream: its counts, and whether its ids came without a gap. */
class Reader {
  constructor({ path, after = 0, dropEvery = 0, slim = true }, { port, token }) {
    this.request = { path, port, token, slim }
    this.last = after
    this.dropEvery = dropEvery
    this.frames = 0
    this.deltas = 0
    this.bytes = 0
    this.gaps = 0
    this.doubled = 0
    this.text = ''
    /** Every recorded event, as text. */
    this.record = createHash('sha256')
    this.isOver = false
    this.rest = ''
    this.wrongTexts = 0
    this.opened = new Promise((resolve) => (this.hasOpened = resolve))
    this.done = new Promise((resolve) => (this.finish = resolve))
  }

  open() {
    const { path, port, token, slim } = this.request
    this.socket = connect(port, '127.0.0.1')
    this.rest = ''
    const mark = path.includes('?') ? '&' : '?'
    this.socket.write(
      `GET ${path}${slim ? `${mark}slim=1` : ''} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n` +
        `Accept: text/event-stream\r\n${this.last > 0 ? `Last-Event-ID: ${this.last}\r\n` : ''}\r\n`,
    )
    this.socket.setEncoding(this.dropEvery > 0 ? 'utf8' : 'latin1')
    this.socket.on('data', (chunk) => this.take(chunk))
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => this.closed())
    return this
  }

  take(chunk) {
    this.bytes += chunk.length
    this.rest += chunk
    let from = 0
    for (let end = this.rest.indexOf('\n\n', from); end !== -1; end = this.rest.indexOf('\n\n', from)) {
      this.frame(this.rest.slice(from, end))
      from = end + 2
    }
    this.rest = this.rest.slice(from)
  }

  frame(frame) {
    const event = /(?:^|\n)event: ?(.*)/.exec(frame)?.[1]
    if (event === undefined) return
    this.frames++
    const id = /(?:^|\n)id: ?(\d+)/.exec(frame)?.[1]
    if (id !== undefined) this.take_id(Number(id), frame)
    if (event === 'text-delta') this.delta(frame)
    if (event === 'hello') this.hasOpened()
    if (this.dropEvery > 0) this.compare(event, frame)
    if (event === 'end') {
      this.isOver = true
      this.socket.destroy()
      return
    }
    if (this.dropEvery > 0 && Math.random() < 1 / this.dropEvery) this.socket.destroy()
  }

  delta(frame) {
    this.deltas++
    span.to = performance.now()
    span.from = Math.min(span.from, span.to)
    const said = /"text":"(\d{13})/.exec(frame)?.[1]
    if (said !== undefined && latencies.length < 500_000) latencies.push(Date.now() - Number(said))
  }

  /** Whatever was heard of a message is the beginning of it. */
  compare(event, frame) {
    if (!['text-delta', 'live', 'message', 'reset', 'node-state'].includes(event)) return
    const { text, content, role, to } = JSON.parse(/\ndata: (.*)/.exec(`\n${frame}`)[1])
    if (event === 'text-delta') this.text += text
    if (event === 'live') this.text = text
    // Another process begins the message anew.
    if (event === 'reset' || to === 'pending') this.text = ''
    if (event === 'message' && role === 'agent' && !content.startsWith(this.text)) this.wrongTexts++
  }

  take_id(id, frame) {
    if (id === this.last + 1) {
      this.last = id
      if (this.dropEvery > 0) this.record.update(/\ndata: (.*)/.exec(`\n${frame}`)[1])
    } else if (id <= this.last) this.doubled++
    else {
      this.gaps += id - this.last - 1
      this.last = id
    }
  }

  closed() {
    if (this.isOver) this.finish()
    else setTimeout(() => this.open(), 50 + Math.random() * 200)
  }
}

const latencies = []
/** When the first and the last delta came. */
const span = { from: Number.POSITIVE_INFINITY, to: 0 }

process.on('message', async ({ open, port, token, isIdle }) => {
  const readers = open.map((one) => new Reader(one, { port, token }).open())
  await Promise.all(readers.map(({ opened }) => opened))
  process.send({ opened: readers.length })
  if (isIdle === true) return
  await Promise.all(readers.map(({ done }) => done))
  const sum = (name) => readers.reduce((total, reader) => total + reader[name], 0)
  latencies.sort((a, b) => a - b)
  const at = (share) => latencies[Math.floor(latencies.length * share)] ?? 0
  process.send({
    done: true,
    frames: sum('frames'),
    bytes: sum('bytes'),
    deltas: sum('deltas'),
    gaps: sum('gaps'),
    doubled: sum('doubled'),
    wrongTexts: sum('wrongTexts'),
    lasts: [...new Set(readers.map(({ last }) => last))],
    records: [...new Set(readers.map(({ record }) => record.digest('hex')))],
    tookMs: span.to - span.from,
    p50: at(0.5),
    p99: at(0.99),
  })
})
