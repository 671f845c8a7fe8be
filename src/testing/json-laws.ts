import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJson } from '../base/json.ts'
import { readTrees, type TreeRows } from '../graph/audit/tree-rows.ts'
import { endedTurns, type SessionDocument } from '../graph/child/session-document.ts'
import { jsonStore } from '../store/json.ts'
import { isSessionFile, sessionFile } from '../store/session-file.ts'
import type { Store } from '../store/store.ts'

/** Rows of a JSON store, and what is wrong with the folder itself. Opening it is the check of its journal. */
export function withJsonRows<T>(folder: string, use: (trees: readonly TreeRows[], wrong: () => string[]) => T): T {
  const unfinished = brokenDocuments(folder)
  const store = jsonStore(folder)
  try {
    const trees = readTrees(store)
    return use(trees, () => [...unfinished, ...missingDocuments(folder, store, trees)])
  } finally {
    store.close().catch(() => undefined)
  }
}

/** L8: nobody says that he still works on it, and no file is left that was to become another. */
export function leftInFolder(folder: string): string[] {
  const strays = readdirSync(folder).filter((name) => name !== 'store.journal' && !isSessionFile(name))
  return strays.map((name) => `L8 the file ${name} is left`)
}

/** A document is whole at every moment: it is looked at before the store can repair anything. */
function brokenDocuments(folder: string): string[] {
  return readdirSync(folder)
    .filter(isSessionFile)
    .filter((name) => !parseJson(readFileSync(join(folder, name), 'utf8')).ok)
    .map((name) => `the document ${name} is not JSON`)
}

/** With the store open, every conversation in which a turn has ended has a document of all such turns. */
function missingDocuments(folder: string, store: Store, trees: readonly TreeRows[]): string[] {
  return trees.flatMap(({ conversations }) =>
    [...conversations.keys()].flatMap((id) => {
      const ended = endedTurns(store, id).length
      return ended === 0 || turnsIn(sessionFile(folder, id)) === ended ? [] : [`the document of ${id} is behind`]
    }),
  )
}

function turnsIn(file: string): number {
  const read = parseJson(readFileSync(file, 'utf8'))
  return read.ok ? (read.value as unknown as SessionDocument).turns.length : -1
}
