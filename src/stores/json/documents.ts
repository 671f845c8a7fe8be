import { readdirSync, rmSync } from 'node:fs'
import { basename } from 'node:path'
import type { TreeReader } from '../../core/graph/reader.ts'
import type { Id } from '../../core/graph/rows.ts'
import { endedTurns, sessionDocument } from '../../core/rules/delegation/session-document.ts'
import type { Tombstone } from '../../core/store/archive.ts'
import { storeFileError } from '../../core/store/file-presence.ts'
import { readSessionHead, sessionFile, writeSessionFile } from './session.ts'

/** A document up to this size is written with the commit that ends a turn, a larger one at most every second. */
const LARGE = 256 * 1024
const EVERY_MS = 1_000

export interface DocumentsOptions {
  readonly folder: string
  readonly reader: TreeReader
  /** Called when a document cannot be written: the commit succeeds anyway. */
  readonly report: (error: Error) => void
}

/** One document per conversation beside the journal. They are written from the rows, and the store never reads them. */
export class Documents {
  private readonly options: DocumentsOptions
  private readonly sizes: Map<Id, number> = new Map()
  private readonly late: Set<Id> = new Set()
  private timer: NodeJS.Timeout | undefined

  constructor(options: DocumentsOptions) {
    this.options = options
  }

  /** Records a change of a conversation that its document shows. */
  changed(id: Id): void {
    if ((this.sizes.get(id) ?? 0) <= LARGE) return this.write(id)
    this.late.add(id)
    this.timer ??= setTimeout(() => this.flush(), EVERY_MS).unref()
  }

  /** Writes documents that a crash prevented. */
  repair(ids: Iterable<Id>): void {
    for (const id of ids) {
      const ended = endedTurns(this.options.reader, id).length
      if (ended > 0 && !this.isAt(id, ended)) this.write(id)
    }
  }

  /** Removes documents that a crash left of deleted conversations. */
  removeDeleted(stones: readonly Tombstone[]): void {
    if (stones.length === 0) return
    const { folder, reader } = this.options
    const there = new Set(readdirSync(folder))
    for (const { conversations } of stones) {
      for (const { id } of conversations) {
        if (!there.has(basename(sessionFile(folder, id))) || reader.conversation(id) !== undefined) continue
        this.remove(id)
      }
    }
  }

  flush(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    const late = [...this.late]
    this.late.clear()
    for (const id of late) this.write(id)
  }

  remove(id: Id): void {
    this.late.delete(id)
    this.sizes.delete(id)
    this.attempt(id, (file) => rmSync(file, { force: true }))
  }

  private write(id: Id): void {
    this.attempt(id, (file) => {
      const document = sessionDocument(this.options.reader, id)
      if (document === undefined) return
      const text = `${JSON.stringify(document, null, 2)}\n`
      writeSessionFile(file, text)
      this.sizes.set(id, text.length)
    })
  }

  /** True where the beginning of the document has this number of turns. */
  private isAt(id: Id, turns: number): boolean {
    let head = ''
    this.attempt(id, (file) => {
      head = readSessionHead(file)
    })
    return head.includes(`\n  "turn_count": ${turns},\n`)
  }

  private attempt(id: Id, use: (file: string) => void): void {
    const file = sessionFile(this.options.folder, id)
    try {
      use(file)
    } catch (error) {
      this.options.report(storeFileError(error, file))
    }
  }
}
