import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'

const TEXT: ReadonlySet<string> = new Set(['.ts', '.js', '.mjs', '.md'])
const MOST_FILES = 5_000

/** The first folders of a package worth looking into: other ones in its repository than where it is installed. */
export function foldersOf(root: string, most: number): string[] {
  return ['src', 'test', 'examples', 'docs', 'dist'].filter((folder) => existsSync(join(root, folder))).slice(0, most)
}

export function textFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => TEXT.has(extname(file)))
    .slice(0, MOST_FILES)
    .map((file) => join(folder, file))
}

/** A file that went away since it was listed has no lines. */
export function lineCount(file: string): number {
  try {
    return readFileSync(file, 'utf8').split('\n').length - 1
  } catch {
    return 0
  }
}

/** The folder of the package a file is in, however deep the build has put it. */
export function packageRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : packageRoot(dirname(folder))
}
