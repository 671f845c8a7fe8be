import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { LegateError } from 'legate'
import type { Files } from 'legate/tools'
import { expect } from 'vitest'
import { DiskBackend, resolveAreas } from '../../../src/core/files/disk.ts'
import { FileDomain } from '../../../src/core/files/files.ts'
import { HAS_PROC } from '../../../src/core/files/held-directory.ts'
import { tempFolder } from '../../support/temp-folder.ts'

export const CANARY = 'canary: nobody may read or change this'
/** Whatever grants allow: only the domain stands between a name and the disk. */
export const GRANT = { use: ['file.*:**'] }

export interface World {
  readonly folder: string
  readonly workspace: string
  /** Beside the workspace, with a canary in each file. */
  readonly outside: string
  readonly files: Files
}

export function makeWorld(hasProc: boolean = HAS_PROC): World {
  const folder = tempFolder()
  const workspace = path.join(folder, 'workspace')
  const outside = path.join(folder, 'outside')
  mkdirSync(path.join(outside, 'deep'), { recursive: true })
  for (const name of ['secret', 'deep/secret', 'a', 'deep/a']) writeFileSync(path.join(outside, name), CANARY)
  const areas = resolveAreas({ workspace })
  return { folder, workspace, outside, files: new FileDomain(new DiskBackend(areas, hasProc), {}).open(GRANT) }
}

/** Every operation with one name. Gives what was read, as text; a failure must be one of ours. */
export async function tryAll(files: Files, name: string): Promise<string> {
  const calls = [
    () => files.stat(name),
    async () => Buffer.from(await files.readBytes(name, { length: 10_000 })).toString(),
    () => files.list(name),
    () => files.write(name, 'written'),
    () => files.edit(name, [{ oldText: 'written', newText: 'edited' }]),
    () => files.write(`${name}/below`, 'written'),
    () => files.readText(`${name}/secret`),
    () => files.delete(name),
  ]
  const seen: unknown[] = []
  for (const call of calls) {
    try {
      seen.push(await call())
    } catch (error) {
      if (!LegateError.isInstance(error) || error.code === 'tool') throw error
    }
  }
  return JSON.stringify(seen)
}

/** Everything outside is as it was. */
export function checkOutside({ folder, outside }: World): void {
  expect(readdirSync(folder).sort()).toEqual(['outside', 'workspace'])
  expect(readdirSync(outside, { recursive: true, encoding: 'utf8' }).sort()).toEqual([
    'a',
    'deep',
    path.join('deep', 'a'),
    path.join('deep', 'secret'),
    'secret',
  ])
  for (const name of ['secret', 'deep/secret', 'a', 'deep/a']) {
    expect(readFileSync(path.join(outside, name), 'utf8')).toBe(CANARY)
  }
}
