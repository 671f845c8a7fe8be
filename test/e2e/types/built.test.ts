import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')
const programs = path.join(import.meta.dirname, 'programs')
const COMPILERS = ['@typescript/old', '@typescript/native']

/** The types of the package as they are published are whole, and say what the sources say. */
test('a strict program of a user compiles against what is published', { timeout: 60_000 }, async ({ skip }) => {
  skip(!existsSync(path.join(root, 'dist/index.d.ts')), 'dist is not built: npm run build')

  expect(await compile('@typescript/old', 'tsconfig.json')).toBe('')
})

test.for(COMPILERS)(
  'every door compiles with %s where there are no types of Node and none of a browser',
  { timeout: 60_000 },
  async (compiler, { skip }) => {
    skip(!existsSync(path.join(root, 'dist/index.d.ts')), 'dist is not built: npm run build')

    expect(await compile(compiler, 'tsconfig.bare.json')).toBe('')
  },
)

async function compile(compiler: string, project: string): Promise<string> {
  const program = path.join(root, 'node_modules', compiler, 'bin/tsc')
  const done = promisify(execFile)(process.execPath, [program, '-p', path.join(programs, project)])
  return done.then(
    () => '',
    (error: { readonly stdout: string }) => error.stdout,
  )
}
