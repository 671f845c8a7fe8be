import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type FileDomain, type FilePolicy, memoryFiles } from 'legate'
import { afterAll } from 'vitest'
import { DiskBackend, resolveAreas } from '../../../src/files/disk.ts'
import { FileDomain as Domain } from '../../../src/files/domain.ts'
import { HAS_PROC } from '../../../src/files/held-directory.ts'

/** A new, empty domain with all three areas. */
export type Make = (policy?: FilePolicy) => FileDomain

/** Everything that can be behind the file domain; all must behave alike. */
export const domains: readonly (readonly [string, Make])[] = [
  ['memory', (policy = {}) => memoryFiles({ internal: {}, ...policy })],
  ['disk', (policy = {}) => diskDomain(HAS_PROC, policy)],
  ['disk without /proc', (policy = {}) => diskDomain(false, policy)],
]

/** A folder that is gone when the file's tests are over. */
export function makeFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-files-'))
  folders.push(folder)
  return folder
}

const folders: string[] = []

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function diskDomain(hasProc: boolean, policy: FilePolicy): FileDomain {
  const folder = makeFolder()
  mkdirSync(path.join(folder, 'userinput'))
  const areas = resolveAreas({
    workspace: path.join(folder, 'workspace'),
    userinput: path.join(folder, 'userinput'),
    internal: path.join(folder, 'internal'),
  })
  return new Domain(new DiskBackend(areas, hasProc), policy)
}

export const EVERYTHING = { use: ['file.*:/userinput/**', 'file.*:/workspace/**', 'file.*:/internal/**'] }
