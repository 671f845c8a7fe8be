/**
 * The same WebAssembly module, whose memory can grow to so many pages of 64 KB and no further. Bytes that are not
 * understood are given back as they are.
 *
 * Its source is also run in a thread, by itself: it may use nothing from around it.
 */
export function boundMemory(bytes: Uint8Array, pages: number): Uint8Array {
  let at = 8
  const readNumber = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
  }
  const numberBytes = (value: number): number[] => {
    const written: number[] = []
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      written.push(rest < 128 ? rest : (rest % 128) + 128)
      if (rest < 128) return written
    }
  }
  while (at < bytes.length) {
    const start = at
    const section = bytes[at++]
    const size = readNumber()
    const end = at + size
    if (section === 5) {
      const count = readNumber()
      const flags = readNumber()
      const least = readNumber()
      if (count !== 1 || flags > 1) return bytes
      const body = [1, 1, ...numberBytes(least), ...numberBytes(Math.max(least, pages))]
      const own = Uint8Array.from([5, ...numberBytes(body.length), ...body])
      const bounded = new Uint8Array(start + own.length + bytes.length - end)
      bounded.set(bytes.subarray(0, start))
      bounded.set(own, start)
      bounded.set(bytes.subarray(end), start + own.length)
      return bounded
    }
    at = end
  }
  return bytes
}
