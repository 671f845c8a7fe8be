import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

const root = path.resolve(import.meta.dirname, '../..')
const examples = readdirSync(path.join(root, 'examples'))
  .filter((file) => file.endsWith('.ts'))
  .sort()

test.each(examples)('%s is short, prints something and holds what it asserts', async (file) => {
  const source = path.join(root, 'examples', file)
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)

  await import(pathToFileURL(source).href)

  expect(log).toHaveBeenCalled()
  expect(readFileSync(source, 'utf8').split('\n').length).toBeLessThanOrEqual(60)
  log.mockRestore()
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

  test.for(examples)('%s runs and its process ends by itself', async (file, { skip }) => {
    skip(!isBuilt, 'dist is not built: npm run build')
    const script = path.join(folder, file.replace(/\.ts$/, '.mjs'))
    writeFileSync(script, toJavaScript(readFileSync(path.join(root, 'examples', file), 'utf8')))

    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script], { timeout: 20_000 })

    expect(stdout).not.toBe('')
    expect(stderr).toBe('')
  })
})

function toJavaScript(source: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true }
  return ts.transpileModule(source, { compilerOptions }).outputText
}
