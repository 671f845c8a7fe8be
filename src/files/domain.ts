import { checkGrant, type Grant, type Layer, useLayer } from '../grant/grant.ts'
import type { Request } from '../grant/request.ts'
import type { FilePolicy } from './access.ts'
import type { FileBackend } from './backend.ts'
import { BoundFiles, type FileParts, type Files } from './files.ts'
import { makeInTurn } from './in-turn.ts'

/** The files of a runtime: `createRuntime({ files })`. All agents share them; grants decide who may do what. */
export class FileDomain {
  private readonly parts: FileParts

  constructor(backend: FileBackend, policy: FilePolicy) {
    this.parts = { backend, policy, inTurn: makeInTurn() }
  }

  /** For your own code, with its own grant: `files.open({ use: ['file.*:/workspace/**'] })`. */
  open(grant: Grant): Files {
    checkGrant(grant, 'files.open(grant)')
    return this.bind([useLayer('the app', grant)], () => false)
  }

  /** For an agent: takes all layers that decide for it, and a check for requests that a person allowed. */
  bind(layers: readonly Layer[], isApproved: (request: Request) => boolean): Files {
    return new BoundFiles(this.parts, layers, isApproved)
  }
}
