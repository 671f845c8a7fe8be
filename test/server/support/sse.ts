/** One frame of a stream. */
export interface Frame {
  readonly id?: string
  readonly event: string
  readonly data: { readonly [key: string]: unknown }
}

/** Reads the frames of an answer, and leaves the rest when the loop is left. */
export async function* framesOf(answer: Response): AsyncGenerator<Frame> {
  let parts: string[] = []
  for await (const part of (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    // A frame may be of many parts: whoever looks through all of them each time takes too long.
    const isOpen = !part.includes('\n\n') && !(part.startsWith('\n') && parts.at(-1)?.endsWith('\n') === true)
    parts.push(part)
    if (isOpen) continue
    const blocks = parts.join('').split('\n\n')
    parts = [blocks.pop() ?? '']
    for (const block of blocks) {
      const found = frameOf(block)
      if (found !== undefined) yield found
    }
  }
}

/** All frames of an answer that ends. */
export async function allFrames(answer: Response): Promise<Frame[]> {
  const frames: Frame[] = []
  for await (const frame of framesOf(answer)) frames.push(frame)
  return frames
}

export function frameOf(block: string): Frame | undefined {
  const lines = block.split('\n').map((line) => /^(\w+): (.*)$/s.exec(line))
  const field = (name: string) => lines.find((line) => line?.[1] === name)?.[2]
  const [event, data, id] = [field('event'), field('data'), field('id')]
  if (event === undefined || data === undefined) return undefined
  return { event, data: JSON.parse(data), ...(id === undefined ? {} : { id }) }
}
