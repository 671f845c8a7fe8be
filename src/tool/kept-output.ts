import type { Readable } from 'node:stream'

/** The beginning of what a stream gives, as text. The rest is read and thrown away, so that nobody waits for room. */
export class KeptOutput {
  isCut = false
  private readonly chunks: Buffer[] = []
  private left: number

  constructor(stream: Readable, maxBytes: number) {
    this.left = maxBytes
    stream.on('data', (chunk: Buffer) => this.keep(chunk))
    stream.on('error', () => undefined) // what came before it is kept
  }

  /** A character that was cut in two is left out. */
  text(): string {
    return new TextDecoder().decode(Buffer.concat(this.chunks), { stream: this.isCut })
  }

  private keep(chunk: Buffer): void {
    if (chunk.length > this.left) this.isCut = true
    if (this.left === 0) return
    const kept = chunk.subarray(0, this.left)
    this.left -= kept.length
    this.chunks.push(kept)
  }
}
