// Writing to the outputs of the process: stdout for results, stderr for notes.
//
// Owns:      what happens when a reader closes our output, waiting for slow readers, and the width of a line.
// Called by: every command; the worker calls `continueWithoutReader`.
// Must stay true:
//   - What is written controls no terminal, whoever made it: colours of the command line are all that stays.
//   - stdout carries results only, so that other programs can read it. Notes for people go to stderr.
//   - The process ends after its output is written, and ends quietly when nobody reads it any more.

import { once } from 'node:events'
import { visible } from '../../core/base/text.ts'
import { EXIT } from '../command/command.ts'
import { printable, terminalWidth } from './clean.ts'

/** If the reader of our output closes it (`| head`), a reading command ends; a worker continues. */
let onReaderGone: () => void = () => process.exit(EXIT.completed)

/** Handles a closed output. Call it once, before anything is written. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || error.code === 'EIO') return onReaderGone()
    process.stderr.write(`legate: Cannot write the output: ${error.message}\n`)
    process.exit(EXIT.other)
  })
  process.stderr.on('error', () => undefined)
}

/** Lets a worker continue although nobody reads its output. */
export function continueWithoutReader(): void {
  onReaderGone = () => undefined
}

function isReaderGone(): boolean {
  return process.stdout.destroyed || process.stdout.errored !== null
}

/** Writes a text for people, and waits while the reader is slower than we are. Nothing in it controls the terminal. */
export function write(text: string): Promise<void> {
  return writeExactly(printable(text))
}

/** Writes a text of others as it is, for programs: an answer, an export, a converted file. On a terminal it is cleaned, too. */
export async function writeExactly(exact: string): Promise<void> {
  const text = process.stdout.isTTY ? printable(exact) : exact
  if (isReaderGone()) {
    // The error arrives in the next round of the event loop; without this pause a long loop would never reach it.
    await new Promise((resolve) => setImmediate(resolve))
    return
  }
  if (process.stdout.write(text)) return
  // Whichever event does not come would keep its listener otherwise, once for every text.
  const over = new AbortController()
  const either = { signal: over.signal }
  const heard = [once(process.stdout, 'drain', either), once(process.stdout, 'close', either)]
  await Promise.race(heard).catch(() => undefined)
  over.abort()
}

/** Ends the process once all output is written, even if foreign code holds it open. */
export async function exitNow(code: number): Promise<never> {
  const open = [process.stdout, process.stderr].filter(({ destroyed, errored }) => !destroyed && errored === null)
  await Promise.all(open.map((stream) => new Promise((resolve) => stream.write('', resolve))))
  process.exit(code)
}

/** The longest line to write: the width of the terminal, or infinite without one. */
export function outputColumns(): number {
  return terminalWidth(process.stdout)
}

/** Writes a line for people to stderr, out of the way of programs that read stdout. */
export function note(text: string): void {
  put(process.stderr, `${text}\n`)
}

/** Writes a text for people at once. */
export function put(stream: Pick<NodeJS.WriteStream, 'write'>, text: string): void {
  stream.write(printable(text))
}

/** Writes JSON on one line without control characters. */
export function jsonLine(value: unknown): string {
  return `${visible(JSON.stringify(value))}\n`
}
