// Deletes the folder of one owner, with all that programs may have left in it.
//
// Owns:      the only way in which a whole folder is deleted.
// Called by: the disk backend, for the files of an owner; the memory tools, for what they remember of one.
// Must stay true:
//   - It works in directories that it holds, one below the other, and follows no link: nobody can lead it out of the folder.
//   - However deep folders lie in one another, it holds three of them: folders are moved up before they are emptied.
//   - Whoever ends it in the middle loses nothing: the next call goes on with what is left.

import { chmod, opendir, realpath, rename, rmdir, unlink } from 'node:fs/promises'
import { ConflictError, StoreError } from '../base/error.ts'
import { nodeCrypto } from '../base/hash.ts'
import { HAS_PROC, HeldDirectory } from './held-directory.ts'

/** Each pass takes away one level of folders. */
const MOST_PASSES = 10_000

/**
 * Deletes the folder at the end of `way`, which begins in `place`, with all that is in it. Gives how many files there were; none
 * where there is no such folder.
 */
export async function eraseFolder(place: string, way: readonly string[], hasProc: boolean = HAS_PROC): Promise<number> {
  try {
    return await eraseIn(await realpath(place), way, hasProc)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 0
    if (error instanceof ConflictError) throw error
    const message = `The folder of an owner could not be deleted: ${codeOf(error) ?? String(error)}.`
    throw new StoreError('store', message, { cause: error })
  }
}

async function eraseIn(place: string, way: readonly string[], hasProc: boolean): Promise<number> {
  let parent = await HeldDirectory.open(place, hasProc)
  for (const name of way.slice(0, -1)) parent = await parent.enter(name, { make: false })
  try {
    return await eraseFrom(parent, way.at(-1) ?? '')
  } finally {
    await parent.close()
  }
}

async function eraseFrom(parent: HeldDirectory, name: string): Promise<number> {
  const tally: Tally = { files: 0 }
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const found = await parent.find(name)
    if (found === undefined) return tally.files
    if (!found.isDirectory()) await removeFile(parent, name, tally)
    else await lower(parent, name, tally)
  }
  const message =
    'The folder of an owner is full again each time it was emptied. End what writes there, then try again.'
  throw new ConflictError('conflict', message)
}

interface Tally {
  files: number
}

/** Takes away one level of a folder, and the folder itself if that was the last. */
async function lower(parent: HeldDirectory, name: string, tally: Tally): Promise<void> {
  const top = await opened(parent, name)
  try {
    for await (const entry of entriesOf(top)) {
      const found = await top.find(entry)
      if (found === undefined) continue
      if (found.isDirectory()) await flatten(top, entry, tally)
      else await removeFile(top, entry, tally)
    }
  } finally {
    await top.close()
  }
  await rmdir(parent.at(name)).catch(unlessCode('ENOTEMPTY', 'EEXIST'))
}

/** Empties a folder in `top`: its folders move up into `top`, where the next pass finds them. */
async function flatten(top: HeldDirectory, name: string, tally: Tally): Promise<void> {
  const folder = await opened(top, name)
  try {
    for await (const entry of entriesOf(folder)) {
      const found = await folder.find(entry)
      if (found?.isDirectory() === true) await moveUp(folder, entry, top)
      else if (found !== undefined) await removeFile(folder, entry, tally)
    }
  } finally {
    await folder.close()
  }
  await rmdir(top.at(name)).catch(unlessCode('ENOTEMPTY', 'EEXIST'))
}

async function moveUp(folder: HeldDirectory, entry: string, top: HeldDirectory): Promise<void> {
  const free = top.at(nodeCrypto().randomBytes(16).toString('hex'))
  try {
    await rename(folder.at(entry), free)
  } catch (error) {
    if (codeOf(error) !== 'EACCES') throw error
    await chmod(folder.at(entry), USABLE)
    await rename(folder.at(entry), free)
  }
}

async function removeFile(folder: HeldDirectory, name: string, tally: Tally): Promise<void> {
  await unlink(folder.at(name))
  tally.files++
}

/** Opens a folder to empty it, also one that a program has locked. */
async function opened(parent: HeldDirectory, name: string): Promise<HeldDirectory> {
  const found = await parent.find(name)
  const isLocked = found?.isDirectory() === true && (found.mode & USABLE) !== USABLE
  if (isLocked) await chmod(parent.at(name), USABLE)
  return parent.open(name)
}

const USABLE = 0o700

async function* entriesOf(folder: HeldDirectory): AsyncGenerator<string> {
  for await (const { name } of await opendir(folder.self, { bufferSize: 256 })) yield name
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

function unlessCode(...codes: readonly string[]): (error: unknown) => void {
  return (error) => {
    if (!codes.includes(codeOf(error) ?? '')) throw error
  }
}
