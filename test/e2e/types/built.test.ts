import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')
const compiler = path.join(root, 'node_modules/.bin/tsc')

/** The types of the package as they are published are whole, and say what the sources say. */
test('a strict program of a user compiles against what is published', { timeout: 60_000 }, async ({ skip }) => {
  skip(!existsSync(path.join(root, 'dist/index.d.ts')), 'dist is not built: npm run build')
  const project = path.join(import.meta.dirname, 'programs')
  const said = await promisify(execFile)(compiler, ['-p', project]).then(
    () => '',
    (error: { readonly stdout: string }) => error.stdout,
  )

  expect(said).toBe('')
})
