import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { messageOf } from '../../base/error.ts'
import { fileError } from '../../prompt/file/file-error.ts'
import { MOST_PROMPT_BYTES } from '../../prompt/file/load-text.ts'

/** The text of a prompt file: plain, UTF-8, of bounded size. Everything else is a RecipeError that names the file. */
export async function readPromptFile(file: string): Promise<string> {
  const handle = await open(file, FLAGS).catch((cause: unknown) => {
    throw fileError({ problem: `the file cannot be read: ${troubleOf(cause)}`, file, hint: HINT, cause })
  })
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw fileError({ problem: 'this is no plain file', file })
    if (stats.size > MOST_PROMPT_BYTES) {
      throw fileError({ problem: `the file has ${stats.size} bytes; ${MOST_PROMPT_BYTES} is the most`, file })
    }
    return decode(await handle.readFile(), file)
  } finally {
    await handle.close()
  }
}

/** A pipe or a device must not be waited for. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

const HINT = 'Check the path; it is taken from the current folder. For text instead of a path use loadPromptText.'

const TROUBLES: ReadonlyMap<unknown, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['ENOTDIR', 'there is no such file'],
  ['EACCES', 'permission is denied'],
  ['ELOOP', 'its symbolic links lead in a circle'],
  ['ENAMETOOLONG', 'its path is too long'],
  ['ERR_INVALID_ARG_VALUE', 'its name has a character that no path may have'],
])

function troubleOf(error: unknown): string {
  return TROUBLES.get((error as NodeJS.ErrnoException | undefined)?.code) ?? messageOf(error)
}

function decode(bytes: Uint8Array, file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw fileError({ problem: 'the file is not UTF-8 text', file, cause })
  }
}
