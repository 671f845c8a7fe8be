import { sep } from 'node:path'
import { DATABASE_ENDINGS } from '../../core/base/system/own-files.ts'
import type { FileDomain } from '../../doors/tools.ts'
import { relativePath } from '../definition/notices.ts'
import { oneLine } from '../terminal/clean.ts'

/** A file of the runtime that lies where agents work, in words. */
export interface ExposedFile {
  readonly place: string
  readonly message: string
  readonly hint: string
}

/** Finds what programs of agents could read or change, although no file tool finds it: each folder and store once. */
export async function exposedFiles(files: FileDomain): Promise<readonly ExposedFile[]> {
  const all = await files.runtimeFiles()
  const isPart = (place: string) =>
    DATABASE_ENDINGS.some((ending) => place.endsWith(ending)) ||
    all.some((other) => place.startsWith(`${other.place}${sep}`))
  return all
    .filter(({ place }) => !isPart(place))
    .map(({ place, path, what }) => ({
      place,
      message: `${what}, ${oneLine(relativePath(place))}, lies where agents work (${oneLine(path)})`,
      hint: HINT,
    }))
}

const HINT =
  'Their file tools do not find it, but a program that they start can read and change it. Keep it in another folder.'
