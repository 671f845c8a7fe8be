import { createInterface } from 'node:readline'

/** Lines that come so close together were pasted, also where the terminal does not say so: they are one message. */
const PASTED_MS = 30
/** Asks the terminal to say where a paste begins and ends. */
const MARKS = { on: '\u001b[?2004h', off: '\u001b[?2004l' } as const
/** Before each further line of a message. */
const MORE = '  '

export interface Prompt {
  readonly text: string
  /** What was said before: the arrow up brings it back. */
  readonly history: readonly string[]
}

/**
 * What a person types next; null when they leave: Ctrl-D, or Ctrl-C twice. Pasted lines are one message, which Enter sends: a
 * paste that ends in the middle of a line can be written on.
 */
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
  let isPasting = false
  const onKey = (_: unknown, key: { readonly name?: string } | undefined): void => {
    if (key?.name === 'paste-start') isPasting = true
    if (key?.name === 'paste-end') isPasting = false
  }
  const show = (prompt: string): void => {
    reader.setPrompt(prompt)
    reader.prompt(true)
  }
  process.stdin.on('keypress', onKey)
  process.stdout.write(MARKS.on)
  return new Promise((resolve) => {
    // What is first said to be the end is it: closing says it once more.
    const end = (message: string | null): void => {
      clearTimeout(soon)
      resolve(message)
      reader.close()
    }
    const sendUnlessWritten = (): void => {
      // The rest of a paste stands in the line: Enter sends all of it.
      if (reader.line === '') end(lines.join('\n').trimEnd())
      else show(MORE)
    }
    reader.on('line', (line) => {
      isAsked = false
      lines.push(line)
      clearTimeout(soon)
      if (isPasting) show(MORE)
      else soon = setTimeout(sendUnlessWritten, PASTED_MS)
    })
    reader.on('SIGINT', () => {
      if (isAsked) return end(null)
      isAsked = true
      isPasting = false
      clearTimeout(soon)
      lines.length = 0
      process.stdout.write('\n(Ctrl-C again leaves.)\n')
      reader.write(null, { ctrl: true, name: 'u' })
      show(text)
    })
    reader.once('close', () => {
      process.stdin.off('keypress', onKey)
      process.stdout.write(MARKS.off)
      if (lines.length === 0) process.stdout.write('\n')
      resolve(lines.length === 0 ? null : lines.join('\n').trimEnd())
    })
    show(text)
  })
}
