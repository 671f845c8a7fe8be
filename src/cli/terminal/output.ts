import { once } from 'node:events'
import { visible } from '../../base/text.ts'
import { EXIT } from '../command/command.ts'
import { columnsOf } from './clean.ts'

/** When whoever reads our lines has gone (`| head`), a command that only reads is done; a worker goes on without them. */
let onReaderGone: () => void = () => process.exit(EXIT.completed)

/** Set up once, before anything is written. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || error.code === 'EIO') return onReaderGone()
    process.stderr.write(`legate: Cannot write the output: ${error.message}\n`)
    process.exit(EXIT.other)
  })
  process.stderr.on('error', () => undefined)
}

/** For workers: work is not lost because nobody watches. */
export function goOnWithoutReader(): void {
  onReaderGone = () => undefined
}

function isReaderGone(): boolean {
  return process.stdout.destroyed || process.stdout.errored !== null
}

/** Writes, and waits while the reader is slower than we are. */
export async function write(text: string): Promise<void> {
  if (isReaderGone()) {
    // The error is told in the next round of the event loop, which a loop over what is there already never reaches.
    await new Promise((resolve) => setImmediate(resolve))
    return
  }
  if (process.stdout.write(text)) return
  await Promise.race([once(process.stdout, 'drain'), once(process.stdout, 'close')]).catch(() => undefined)
}

/** Ends the process although code of others still holds it, when all that was written is out. */
export async function exitNow(code: number): Promise<never> {
  const open = [process.stdout, process.stderr].filter(({ destroyed, errored }) => !destroyed && errored === null)
  await Promise.all(open.map((stream) => new Promise((resolve) => stream.write('', resolve))))
  process.exit(code)
}

/** How long a line may be that is written: as wide as the terminal, or as long as it is where there is none. */
export function outputColumns(): number {
  return columnsOf(process.stdout)
}

/** A line for people beside the output: it is never in the way of what a program reads. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** JSON on one line in which no character can do anything to a terminal. */
export function jsonLine(value: unknown): string {
  return `${visible(JSON.stringify(value))}\n`
}
