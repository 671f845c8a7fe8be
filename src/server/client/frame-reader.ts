// Frames of server-sent events, read from pieces of bytes.
//
// Stays true:
// - A frame comes whole or not at all, wherever the pieces are cut: inside a character, a line break or a field.
// - It reads each byte once. A frame beyond the limit is an error, so that a server cannot fill the memory.

import { ClientError } from './error.ts'

/** One frame of a stream. */
export interface Frame {
  /** The last id that the stream has named, also in an earlier frame; undefined before the first. */
  readonly id: string | undefined
  /** True where this frame itself names the id. */
  readonly hasId: boolean
  readonly event: string
  readonly data: string
}

const MOST_CHARACTERS = 64_000_000
const LINE_END = /\r\n|\r|\n/g

/** Reads the frames of one connection. */
export class FrameReader {
  /** How long to wait before coming back, where the server has said it. */
  retryMs: number | undefined
  private readonly decoder: InstanceType<typeof TextDecoder> = new TextDecoder()
  private readonly most: number
  /** The pieces of a line that has not ended. */
  private pieces: string[] = []
  private size = 0
  private endedWithReturn = false
  private data: string[] = []
  private event = ''
  private id: string | undefined
  private hasId = false

  constructor(most: number = MOST_CHARACTERS) {
    this.most = most
  }

  /** The frames that are whole with these bytes. */
  push(bytes: Uint8Array): Frame[] {
    return this.read(this.decoder.decode(bytes, { stream: true }))
  }

  private read(text: string): Frame[] {
    const found: Frame[] = []
    if (text === '') return found
    // The second half of a line break whose first half came with the bytes before.
    let from = this.endedWithReturn && text.startsWith('\n') ? 1 : 0
    LINE_END.lastIndex = from
    for (let end = LINE_END.exec(text); end !== null; end = LINE_END.exec(text)) {
      this.add(text.slice(from, end.index))
      this.line(found)
      from = LINE_END.lastIndex
    }
    this.endedWithReturn = text.endsWith('\r')
    this.add(text.slice(from))
    return found
  }

  private add(piece: string): void {
    if (piece === '') return
    this.pieces.push(piece)
    this.size += piece.length
    if (this.size <= this.most) return
    const message = `A frame of the stream is longer than ${this.most} characters.`
    throw new ClientError(message, { status: 0, code: 'too_large' })
  }

  /** A line has ended. An empty one ends the frame. */
  private line(found: Frame[]): void {
    const line = this.pieces.length === 1 ? (this.pieces[0] ?? '') : this.pieces.join('')
    this.pieces = []
    if (line === '') this.end(found)
    else this.field(line)
  }

  private field(line: string): void {
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const rest = colon < 0 ? '' : line.slice(colon + 1)
    const value = rest.startsWith(' ') ? rest.slice(1) : rest
    if (name === 'data') this.data.push(value)
    if (name === 'event') this.event = value
    if (name === 'retry' && /^\d{1,9}$/.test(value)) this.retryMs = Number(value)
    if (name === 'id' && !value.includes('\0')) {
      this.id = value
      this.hasId = true
    }
    // Comments and other fields stay nowhere.
    if (name !== 'data') this.size -= line.length
  }

  private end(found: Frame[]): void {
    const { id, hasId, event, data } = this
    if (data.length > 0) found.push({ id, hasId, event: event === '' ? 'message' : event, data: data.join('\n') })
    this.data = []
    this.event = ''
    this.hasId = false
    this.size = 0
  }
}
