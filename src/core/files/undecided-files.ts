import { DefinitionError } from '../base/error.ts'
import type { FileBackend } from './backend.ts'

/** The files of an owner where nobody has said whether owners share them: they have their places, and every operation fails. */
export function undecidedFiles(backend: FileBackend): FileBackend {
  const refuse = async (): Promise<never> => {
    throw undecided('This run')
  }
  const operations = { list: refuse, stat: refuse, read: refuse, write: refuse, delete: refuse, inDirectory: refuse }
  const { areas, isOnDisk } = backend
  const itself = (): FileBackend => files
  const files: FileBackend = {
    ...operations,
    areas,
    isOnDisk,
    nameOf: (place) => backend.nameOf(place),
    within: itself,
    erase: refuse,
  }
  return files
}

/** The error of whoever would work with files of which nobody has said whose they are. */
export function undecided(who: string): DefinitionError {
  return new DefinitionError('files_undecided', `${who} would work with files, and ${CHOICES}`)
}

const CHOICES =
  "nobody has said whose files owners have. diskFiles({ owners: 'own' }) gives each owner files of its own, and diskFiles({ owners: 'shared' }) gives all owners the same ones; on the command line it is --files own or --files shared."
