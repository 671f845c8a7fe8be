import { DefinitionError } from '../base/error.ts'
import type { FileBackend } from './backend.ts'
import type { Area, LogicalPath } from './path.ts'

/** The files of an owner where nobody has said whether owners share them: no operation is possible. */
export class UndecidedFiles implements FileBackend {
  readonly areas: readonly Area[]
  readonly isOnDisk: boolean
  private readonly backend: FileBackend

  constructor(backend: FileBackend) {
    this.areas = backend.areas
    this.isOnDisk = backend.isOnDisk
    this.backend = backend
  }

  list(): Promise<never> {
    return refused()
  }

  stat(): Promise<never> {
    return refused()
  }

  read(): Promise<never> {
    return refused()
  }

  write(): Promise<never> {
    return refused()
  }

  delete(): Promise<never> {
    return refused()
  }

  inDirectory(): Promise<never> {
    return refused()
  }

  nameOf(place: string): LogicalPath | undefined {
    return this.backend.nameOf(place)
  }

  within(): this {
    return this
  }

  async erase(): Promise<number> {
    return 0
  }
}

async function refused(): Promise<never> {
  throw undecided('This run')
}

/** The error of whoever would work with files of which nobody has said whose they are. */
export function undecided(who: string): DefinitionError {
  return new DefinitionError('files_undecided', `${who} would work with files, and ${CHOICES}`)
}

const CHOICES =
  "nobody has said whose files owners have. diskFiles({ owners: 'own' }) gives each owner files of its own, and diskFiles({ owners: 'shared' }) gives all owners the same ones; on the command line it is --files own or --files shared."
