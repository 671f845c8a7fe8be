import { createInterface } from 'node:readline'

/** Lines that come so close together were pasted: they are one message. */
const PASTED_MS = 30

export interface Prompt {
  readonly text: string
  /** What was said before: the arrow up brings it back. */
  readonly history: readonly string[]
}

/** What a person types next; null when they leave: Ctrl-D, or Ctrl-C twice. */
export function readMessage({ text, history }: Prompt): Promise<string | null> {
  const reader = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: text,
    history: history.toReversed(),
    terminal: true,
  })
  const lines: string[] = []
  let soon: ReturnType<typeof setTimeout> | undefined
  let isAsked = false
  return new Promise((resolve) => {
    // What is first said to be the end is it: closing says it once more.
    const end = (message: string | null): void => {
      clearTimeout(soon)
      resolve(message)
      reader.close()
    }
    reader.on('line', (line) => {
      isAsked = false
      lines.push(line)
      clearTimeout(soon)
      soon = setTimeout(() => end(lines.join('\n')), PASTED_MS)
    })
    reader.on('SIGINT', () => {
      if (isAsked) return end(null)
      isAsked = true
      process.stdout.write('\n(Ctrl-C again leaves.)\n')
      reader.write(null, { ctrl: true, name: 'u' })
      reader.prompt()
    })
    reader.once('close', () => {
      if (lines.length === 0) process.stdout.write('\n')
      resolve(lines.length === 0 ? null : lines.join('\n'))
    })
    reader.prompt()
  })
}
