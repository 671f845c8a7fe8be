// Deletes the folder of one owner, with all that programs may have left in it.
//
// Owns:      the only way in which a whole folder is deleted.
// Called by: the disk backend, for the files of an owner; the memory tools, for what they remember of one.
// Must stay true:
//   - It works in directories that it holds, one below the other, and follows no link: nobody can lead it out of the folder.
//   - A file of the runtime that somebody moved there stays: it is not a file of the owner.
//   - However deep folders lie in one another, it holds three of them: folders are moved up before they are emptied.
//   - Whoever ends it in the middle loses nothing: the next call goes on with what is left.

import { chmod, opendir, realpath, rename, rmdir } from 'node:fs/promises'
import path from 'node:path'
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
    const parent = await parentOf(place, way, hasProc)
    return parent === undefined ? 0 : await eraseFrom(parent, way.at(-1) ?? '').finally(() => parent.close())
  } catch (error) {
    if (error instanceof ConflictError || error instanceof StoreError) throw error
    const message = `The folder of an owner could not be deleted: ${codeOf(error) ?? String(error)}.`
    throw new StoreError('store', message, { cause: error })
  }
}

/** The folder that holds the one to delete; undefined where there is none. */
async function parentOf(place: string, way: readonly string[], hasProc: boolean): Promise<HeldDirectory | undefined> {
  try {
    return await HeldDirectory.open(path.join(await realpath(place), ...way.slice(0, -1)), hasProc)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

async function eraseFrom(parent: HeldDirectory, name: string): Promise<number> {
  const tally: Tally = { files: 0, folders: 0 }
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const found = await parent.look(name)
    if (found === undefined) return tally.files
    const { files, folders } = tally
    const remove = found.isDirectory() ? lower : removeFile
    const isAlone = await remove(parent, name, tally).then(() => true, unlessGone)
    if (isAlone && tally.files === files && tally.folders === folders) throw new StoreError('store', LEFT)
  }
  const message =
    'The folder of an owner is full again each time it was emptied. End what writes there, then try again.'
  throw new ConflictError('conflict', message)
}

const LEFT =
  'The folder of an owner could not be deleted: it holds files of the runtime, such as its store. Move them away.'

/** The entries that were deleted or moved up so far. */
interface Tally {
  files: number
  folders: number
}

/** Takes away one level of a folder, and the folder itself if that was the last. */
async function lower(parent: HeldDirectory, name: string, tally: Tally): Promise<void> {
  const top = await opened(parent, name)
  try {
    for await (const entry of entriesOf(top)) {
      const found = await top.look(entry)
      if (found === undefined) continue
      if (found.isDirectory()) await flatten(top, entry, tally)
      else await removeFile(top, entry, tally)
    }
  } finally {
    await top.close()
  }
  await removeFolder(parent, name, tally)
}

/** Empties a folder in `top`: its folders move up into `top`, where the next pass finds them. */
async function flatten(top: HeldDirectory, name: string, tally: Tally): Promise<void> {
  const folder = await opened(top, name)
  try {
    for await (const entry of entriesOf(folder)) {
      const found = await folder.look(entry)
      if (found?.isDirectory() === true) await moveUp(folder, entry, top, tally)
      else if (found !== undefined) await removeFile(folder, entry, tally)
    }
  } finally {
    await folder.close()
  }
  await removeFolder(top, name, tally)
}

async function moveUp(folder: HeldDirectory, entry: string, top: HeldDirectory, tally: Tally): Promise<void> {
  const free = top.at(nodeCrypto().randomBytes(16).toString('hex'))
  try {
    await rename(folder.at(entry), free)
  } catch (error) {
    if (codeOf(error) !== 'EACCES') throw error
    await chmod(folder.at(entry), USABLE)
    await rename(folder.at(entry), free)
  }
  tally.folders++
}

async function removeFile(folder: HeldDirectory, name: string, tally: Tally): Promise<void> {
  await folder.remove(name)
  tally.files++
}

async function removeFolder(parent: HeldDirectory, name: string, tally: Tally): Promise<void> {
  try {
    await rmdir(parent.at(name))
    tally.folders++
  } catch (error) {
    if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'EEXIST') throw error
  }
}

/** Opens a folder to empty it, also one that a program has locked. */
async function opened(parent: HeldDirectory, name: string): Promise<HeldDirectory> {
  const found = await parent.look(name)
  const isLocked = found?.isDirectory() === true && (found.mode & USABLE) !== USABLE
  if (isLocked) await chmod(parent.at(name), USABLE)
  return parent.open(name)
}

const USABLE = 0o700

async function* entriesOf(folder: HeldDirectory): AsyncGenerator<string> {
  for await (const { name } of await opendir(folder.self, { bufferSize: 256 })) yield name
}

/** Others may delete there too: what was found is gone, and the next pass finds the rest. */
function unlessGone(error: unknown): false {
  if (codeOf(error) === 'ENOENT') return false
  throw error
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}
