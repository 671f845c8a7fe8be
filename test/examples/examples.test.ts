import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../..')
const examples = readdirSync(path.join(root, 'examples'))
  .filter((file) => file.endsWith('.ts'))
  .sort()

test.each(examples)('%s is short', (file) => {
  expect(readFileSync(path.join(root, 'examples', file), 'utf8').split('\n').length).toBeLessThanOrEqual(60)
})

describe('with the built package, in a process of its own', () => {
  const isBuilt = existsSync(path.join(root, 'dist/index.js'))
  let folder = ''

  // Inside the package, so that `legate` means the package itself.
  beforeAll(() => {
    if (isBuilt) folder = mkdtempSync(path.join(root, 'dist/examples-'))
  })
  afterAll(() => {
    if (isBuilt) rmSync(folder, { recursive: true, force: true })
  })

  test.for(examples)(
    '%s holds what it asserts, prints something, and its process ends by itself',
    async (file, { skip }) => {
      skip(!isBuilt, 'dist is not built: npm run build')
      const script = path.join(folder, file.replace(/\.ts$/, '.mjs'))
      writeFileSync(script, toJavaScript(readFileSync(path.join(root, 'examples', file), 'utf8')))

      const { stdout, stderr } = await promisify(execFile)(process.execPath, [script], { timeout: 20_000 })

      expect(stdout).not.toBe('')
      expect(stderr).toBe('')
    },
  )
})

function toJavaScript(source: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true }
  return ts.transpileModule(source, { compilerOptions }).outputText
}
