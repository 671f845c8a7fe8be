// Bundles the simulation into one file: it plays without a test runner, in processes of its own.
import { mkdirSync, mkdtempSync } from 'node:fs'
import path from 'node:path'
import { build } from 'tsdown'

const root = path.resolve(import.meta.dirname, '../..')

/** Gives the path of the built file, in a folder of its own. */
export async function buildSimulation() {
  const cache = path.join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const outDir = mkdtempSync(path.join(cache, 'legate-sim-'))
  await build({
    entry: path.join(root, 'test/sim/main.ts'),
    outDir,
    config: false,
    format: 'esm',
    dts: false,
    clean: false,
    logLevel: 'error',
    alias: { 'node:async_hooks': path.join(root, 'test/sim/async-hooks.ts') },
    outputOptions: { codeSplitting: false },
  })
  return path.join(outDir, 'main.mjs')
}
