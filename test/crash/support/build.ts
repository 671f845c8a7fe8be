import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import { build } from 'tsdown'
import { afterAll } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')
const cache = path.join(root, 'node_modules/.cache')

/** Builds a program of `test/crash/programs`, or another folder, and all it imports into one file that starts fast; removed with the suite. */
export async function buildProgram(name: string, programs = 'test/crash/programs'): Promise<string> {
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(path.join(cache, 'legate-crash-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  await build({
    config: false,
    cwd: root,
    entry: path.join(root, `${programs}/${name}.ts`),
    outDir: folder,
    format: 'esm',
    platform: 'node',
    dts: false,
    fixedExtension: true,
    logLevel: 'error',
    outputOptions: { codeSplitting: false },
  })
  return path.join(folder, `${name}.mjs`)
}
