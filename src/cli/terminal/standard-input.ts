import { CliError, EXIT } from '../command.ts'

const MOST_BYTES = 4_000_000

/** All of what comes in. */
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
