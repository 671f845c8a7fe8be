import { type Call, EXIT } from '../command.ts'
import { helpText } from '../help-text.ts'

export async function help({ words, commands }: Call): Promise<number> {
  process.stdout.write(helpText(commands, words[0]))
  return EXIT.completed
}
