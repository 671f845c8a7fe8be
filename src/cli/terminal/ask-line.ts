import { createInterface } from 'node:readline'
import { CliError, EXIT } from '../command/command.ts'

/** Tells whether a person at the keyboard can see a question. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks the person at the terminal for one line, on stderr, because stdout may be a file. */
export function askLine(question: string): Promise<string> {
  const asker = createInterface({ input: process.stdin, output: process.stderr, terminal: true })
  return new Promise<string>((resolve, reject) => {
    // Only the first of these events counts; the others follow from it.
    asker.once('SIGINT', () => {
      reject(new CliError('Interrupted.', EXIT.interrupted))
      process.stderr.write('\n')
      asker.close()
    })
    asker.once('close', () => reject(new CliError('No answer was given.', EXIT.usage, { namesHelp: false })))
    asker.question(question, (answer) => {
      resolve(answer)
      asker.close()
    })
  })
}

const LONGEST = 16_384
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

/** Reads a line without showing it; empty if the person enters nothing. */
export function askSecret(question: string): Promise<string> {
  const line = new TypedLine(LONGEST)
  // Raw mode comes first, so that nothing typed after the question is ever shown.
  process.stdin.setRawMode(true)
  process.stdin.resume()
  process.stderr.write(question)
  return new Promise<string>((resolve, reject) => {
    const end = (settle: () => void): void => {
      process.stdin.off('data', hear)
      process.stdin.setRawMode(false)
      process.stdin.pause()
      process.stderr.write('\n')
      settle()
    }
    const hear = (keys: Buffer): void => {
      for (const key of keys.toString('utf8')) {
        if (key === CTRL_C) return end(() => reject(new CliError('Interrupted.', EXIT.interrupted)))
        const typed = key === CTRL_D ? line.text : line.take(key)
        if (typed !== undefined) return end(() => resolve(typed))
      }
    }
    process.stdin.on('data', hear)
  })
}

const ENTER = /^[\r\n]$/
const BACKSPACE = /^[\b\u007f]$/

/** A line typed key by key until Enter. */
export class TypedLine {
  text = ''
  /** Input longer than this is not an answer. */
  private readonly longest: number

  constructor(longest: number) {
    this.longest = longest
  }

  /** Takes one key; returns the line if the key ends it. */
  take(key: string): string | undefined {
    if (ENTER.test(key)) {
      const line = this.text
      this.clear()
      return line
    }
    if (BACKSPACE.test(key)) this.text = this.text.slice(0, this.text.length - lastLength(this.text))
    else if (/^\P{Cc}$/u.test(key) && this.text.length < this.longest) this.text += key
    return undefined
  }

  clear(): void {
    this.text = ''
  }
}

/** The length of the last character in code units. */
function lastLength(text: string): number {
  return [...text.slice(-2)].at(-1)?.length ?? 0
}

const MOST_BYTES = 4_000_000

/** Reads all of stdin. */
export async function standardInput(): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > MOST_BYTES) throw new CliError(`The input has more than ${MOST_BYTES} bytes.`, EXIT.usage)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
