import { createInterface } from 'node:readline'
import { CliError, EXIT } from '../command.ts'

/** Is there somebody at the keyboard who sees what is asked? */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** One line of the person at the terminal. Asked beside the output, which may be a file. */
export function askLine(question: string): Promise<string> {
  const asker = createInterface({ input: process.stdin, output: process.stderr, terminal: true })
  return new Promise<string>((resolve, reject) => {
    const end = (why: Error): void => {
      asker.removeAllListeners()
      asker.close()
      process.stderr.write('\n')
      reject(why)
    }
    asker.once('SIGINT', () => end(new CliError('Interrupted.', EXIT.interrupted)))
    asker.once('close', () => end(new CliError('Nothing was answered.', EXIT.usage, { namesHelp: false })))
    asker.question(question, (answer) => {
      asker.removeAllListeners()
      asker.close()
      resolve(answer)
    })
  })
}
