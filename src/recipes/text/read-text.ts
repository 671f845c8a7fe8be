import type { Keeper } from '../../core/files/files.ts'
import { readTextFile, readTextFileNow, TextFileTrouble } from '../../core/files/text-file.ts'
import { refuseFile } from './notice.ts'

/** Larger definitions are refused: nobody writes them by hand. */
const MOST_BYTES = 500_000

export interface ReadOptions {
  readonly mostBytes?: number
  /** The folder that must contain the file, with links resolved. */
  readonly inside?: string | undefined
  /** Tells which files rules withhold from the reader; they count as missing. */
  readonly isKept?: Keeper | undefined
  /** Refuses a file with a second name (a hard link). */
  readonly hasOneName?: boolean
}

/** Reads a text file. Throws a RecipeError that names the file if it is not one. */
export async function readText(
  file: string,
  { mostBytes = MOST_BYTES, ...options }: ReadOptions = {},
): Promise<string> {
  try {
    return await readTextFile(file, { mostBytes, ...options })
  } catch (error) {
    throw refusalOf(error, file)
  }
}

/** Reads a text file synchronously, for many small files. */
export function readTextNow(
  file: string,
  { mostBytes = MOST_BYTES, inside }: Pick<ReadOptions, 'mostBytes' | 'inside'> = {},
): string {
  try {
    return readTextFileNow(file, { mostBytes, inside })
  } catch (error) {
    throw refusalOf(error, file)
  }
}

function refusalOf(error: unknown, file: string): unknown {
  if (!(error instanceof TextFileTrouble)) return error
  const { kind, message, hint } = error
  if (kind !== 'outside') return refuseFile({ code: kind, message, ...(hint === undefined ? {} : { hint }) }, file)
  const only = 'Only files in the folder of the recipe and below it may be included.'
  return refuseFile({ code: 'include', message: 'the file is outside the folder of the recipe', hint: only }, file)
}
