import { CliError, EXIT } from '../command.ts'
import { TypedLine } from './typed-line.ts'

const LONGEST = 16_384
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

/** What a person types and nobody sees; empty when they leave it open. */
export function askSecret(question: string): Promise<string> {
  const line = new TypedLine(LONGEST)
  // First of all: what is typed as soon as the question is seen must not be seen.
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
