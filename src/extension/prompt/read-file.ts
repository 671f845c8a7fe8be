import { readTextFile, TextFileTrouble } from '../../files/text-file.ts'
import { fileError } from '../../prompt/file/file-error.ts'
import { MOST_PROMPT_BYTES } from '../../prompt/file/load-text.ts'

/** The text of a prompt file. Whatever else it is gives a RecipeError that names the file. */
export async function readPromptFile(file: string): Promise<string> {
  try {
    return await readTextFile(file, { mostBytes: MOST_PROMPT_BYTES })
  } catch (error) {
    if (!(error instanceof TextFileTrouble)) throw error
    const { message: problem, hint, cause } = error
    throw fileError({ problem, file, hint: [hint, TEXT].filter(Boolean).join(' '), cause })
  }
}

const TEXT = 'For text instead of a path use loadPromptText.'
