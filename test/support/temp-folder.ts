import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { onTestFinished } from 'vitest'

/** A new folder, empty, that is gone after the test. */
export function tempFolder(atEnd: (clear: () => void) => void = onTestFinished, parent: string = tmpdir()): string {
  const folder = mkdtempSync(path.join(parent, 'legate-'))
  atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}
