import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import { discover, findDefinition, noticesOf } from '../../recipe/index.ts'
import { CliError, EXIT } from '../command.ts'
import { oneLine } from '../terminal/clean.ts'
import { isModule } from './module-agent.ts'
import { refusal, refused } from './refused.ts'

/** The file that a word on the command line means: a path, or the name of a definition that is found from here. */
export async function definitionFile(word: string, env: NodeJS.ProcessEnv): Promise<string> {
  if (isPath(word) || existsSync(word)) return readable(word)
  const found = await discover({ env })
  try {
    return findDefinition(word, found).file
  } catch (error) {
    const [notice] = noticesOf(error)
    if (notice?.code !== 'not_found') throw refused(error)
    const broken = found.notices.find(({ level, file }) => level === 'error' && path.parse(file).name === word)
    if (broken !== undefined) throw refusal([broken])
    const near = /Did you mean: .*\?/.exec(notice.message)?.[0] ?? 'legate doctor lists what is found.'
    const message = `There is no file "${oneLine(word)}" here, and no recipe or agent of that name. ${oneLine(near)}`
    throw new CliError(message, EXIT.usage, { namesHelp: false })
  }
}

/** A file whose ending says that it is something else is not read as a recipe. */
function readable(file: string): string {
  if (isModule(file)) {
    throw new CliError(`${oneLine(file)} is a module: legate run and legate chat run its agents.`, EXIT.usage)
  }
  const ending = path.extname(file)
  if (ending === '' || READ.test(file) || !existsSync(file) || statSync(file).isDirectory()) return file
  throw new CliError(
    `${oneLine(file)} is neither a recipe (.yaml, .json), an agent file (.md, .toml) nor a module (.js, .mjs, .ts).`,
    EXIT.usage,
    { namesHelp: false },
  )
}

const READ = /\.(?:ya?ml|json|md|markdown|toml)$/i

function isPath(word: string): boolean {
  return /[/\\]/.test(word) || READ.test(word)
}
