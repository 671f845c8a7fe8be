import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { type FileDomain, type FilePolicy, memoryFiles } from 'legate/tools'
import { DiskBackend, resolveAreas } from '../../../src/core/files/disk.ts'
import { FileDomain as Domain } from '../../../src/core/files/files.ts'
import { HAS_PROC } from '../../../src/core/files/held-directory.ts'
import { tempFolder } from '../../support/temp-folder.ts'

/** A new, empty domain with all three areas. */
export type Make = (policy?: FilePolicy) => FileDomain

/** Everything that can be behind the file domain; all must behave alike. */
export const domains: readonly (readonly [string, Make])[] = [
  ['memory', (policy = {}) => memoryFiles({ internal: {}, ...policy })],
  ['disk', (policy = {}) => diskDomain(HAS_PROC, policy)],
  ['disk without /proc', (policy = {}) => diskDomain(false, policy)],
]

function diskDomain(hasProc: boolean, policy: FilePolicy): FileDomain {
  const folder = tempFolder()
  mkdirSync(path.join(folder, 'userinput'))
  const areas = resolveAreas({
    workspace: path.join(folder, 'workspace'),
    userinput: path.join(folder, 'userinput'),
    internal: path.join(folder, 'internal'),
  })
  return new Domain(new DiskBackend(areas, hasProc), policy)
}

export const EVERYTHING = { use: ['file.*:/userinput/**', 'file.*:/workspace/**', 'file.*:/internal/**'] }
