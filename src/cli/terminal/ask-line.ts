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
    // The first of these counts: whichever it is, the others follow of it.
    asker.once('SIGINT', () => {
      reject(new CliError('Interrupted.', EXIT.interrupted))
      process.stderr.write('\n')
      asker.close()
    })
    asker.once('close', () => reject(new CliError('Nothing was answered.', EXIT.usage, { namesHelp: false })))
    asker.question(question, (answer) => {
      resolve(answer)
      asker.close()
    })
  })
}
