import type { Issue } from '../base/schema.ts'
import { type Frame, pathOf } from './frame.ts'

/** Things about a document that its reader should know and that did not stop it. At most 100 are kept. */
export class Notes {
  readonly list: Issue[] = []

  add(parent: Frame | null, key: string | number, message: string): void {
    if (this.list.length < maxNotes) this.list.push({ path: pathOf(parent, key), message })
  }
}

const maxNotes = 100
