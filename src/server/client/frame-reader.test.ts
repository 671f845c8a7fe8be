import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ClientError } from './error.ts'
import { type Frame, FrameReader } from './frame-reader.ts'

const bytesOf = (text: string) => new TextEncoder().encode(text)

function read(...pieces: readonly string[]): Frame[] {
  const reader = new FrameReader()
  return pieces.flatMap((piece) => reader.push(bytesOf(piece)))
}

describe('a reader of frames', () => {
  test('gives data, type and id; lines of data are joined; comments and unknown fields are nothing', () => {
    const frames = read(': hi\n\nid: 7\nevent: note\nwhat: ever\ndata: a\ndata:  b\ndata\n\ndata: c\n\n')

    expect(frames).toEqual([
      { id: '7', hasId: true, event: 'note', data: 'a\n b\n' },
      { id: '7', hasId: false, event: 'message', data: 'c' },
    ])
  })

  test('gives nothing of a frame that has not ended, and nothing for one without data', () => {
    expect(read('data: a\n')).toEqual([])
    expect(read('event: x\nid: 1\n\n')).toEqual([])
    expect(read('data: a', '\n', '\n')).toHaveLength(1)
  })

  test('hears how long to wait; what is no whole number says nothing', () => {
    const reader = new FrameReader()
    reader.push(bytesOf('retry: 250\n\n'))
    reader.push(bytesOf('retry: soon\n\nretry: -1\n\n'))

    expect(reader.retryMs).toBe(250)
  })

  test('reads the same wherever the bytes are cut, with any line break and any character', () => {
    const text = fc.string({ unit: fc.constantFrom('a', ' ', ':', 'é', '😀', '\u2028', '"') })
    const frame = fc.record({ event: fc.constantFrom('x', 'text-delta'), data: text, id: fc.nat() })
    const breaks = fc.constantFrom('\n', '\r', '\r\n')
    fc.assert(
      fc.property(fc.array(frame), breaks, fc.array(fc.nat(40)), (frames, end, cuts) => {
        const written = frames.map(
          ({ event, data, id }) => `id: ${id}${end}event: ${event}${end}data: ${data}${end}${end}`,
        )
        const bytes = bytesOf(`\uFEFF${written.join('')}`)
        const reader = new FrameReader()
        const found: Frame[] = []
        let from = 0
        for (const cut of [...cuts, bytes.length]) {
          found.push(...reader.push(bytes.slice(from, from + cut)))
          from += cut
        }
        found.push(...reader.push(bytes.slice(from)))

        expect(found.map(({ event, data, id }) => ({ event, data, id: Number(id) }))).toEqual(frames)
      }),
    )
  })

  test('refuses a frame beyond its limit, in one line or in many, and reads any number of small ones', () => {
    const reader = () => new FrameReader(1_000)

    expect(() => reader().push(bytesOf(`data: ${'a'.repeat(1_000)}`))).toThrow(ClientError)
    expect(() => reader().push(bytesOf('data: aaaa\n'.repeat(1_000)))).toThrow(ClientError)
    expect(reader().push(bytesOf('data: aaaa\n\n'.repeat(1_000)))).toHaveLength(1_000)
    expect(reader().push(bytesOf(': nothing at all\n'.repeat(1_000)))).toEqual([])
  })

  test('takes time in proportion to the bytes, byte by byte too', () => {
    const time = (size: number) => {
      const bytes = bytesOf(`data: ${'a'.repeat(size)}\n\n`)
      const start = performance.now()
      const reader = new FrameReader()
      let found = 0
      for (let at = 0; at < bytes.length; at++) found += reader.push(bytes.subarray(at, at + 1)).length
      expect(found).toBe(1)
      return performance.now() - start
    }
    time(20_000)

    expect(time(200_000)).toBeLessThan(time(20_000) * 40 + 200)
  })
})
