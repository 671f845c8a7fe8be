import { existsSync } from 'node:fs'
import { discover, findDefinition, noticesOf } from '../../recipe/index.ts'
import { CliError, EXIT } from '../command.ts'
import { oneLine } from '../terminal/clean.ts'
import { refused } from './refused.ts'

/** The file that a word on the command line means: a path, or the name of a definition that is found from here. */
export async function definitionFile(word: string, env: NodeJS.ProcessEnv): Promise<string> {
  if (isPath(word) || existsSync(word)) return word
  const found = await discover({ env })
  try {
    return findDefinition(word, found).file
  } catch (error) {
    const [notice] = noticesOf(error)
    if (notice?.code !== 'not_found') throw refused(error)
    const near = /Did you mean: .*\?/.exec(notice.message)?.[0] ?? 'legate doctor lists what is found.'
    const message = `There is no file "${oneLine(word)}" here, and no recipe or agent of that name. ${oneLine(near)}`
    throw new CliError(message, EXIT.usage, { namesHelp: false })
  }
}

function isPath(word: string): boolean {
  return /[/\\]|\.(?:ya?ml|json|md|markdown|toml)$/i.test(word)
}
