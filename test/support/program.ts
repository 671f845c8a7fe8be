import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { onTestFinished, type TestContext } from 'vitest'
import { tempFolder } from './temp-folder.ts'

export const dist: string = path.resolve(import.meta.dirname, '../../dist')

export function skipUnlessBuilt({ skip }: Pick<TestContext, 'skip'>): void {
  skip(!existsSync(path.join(dist, 'index.js')), 'dist is not built: npm run build')
}

/** Runs it as a user would: with the built package, in a process of its own, which must end by itself. What it printed. */
export async function runProgram(source: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  // Inside the package, so that `legate` means the package itself.
  const folder = tempFolder(onTestFinished, dist)
  const file = path.join(folder, 'program.mjs')
  writeFileSync(file, toJavaScript(source))
  const env = { ...process.env, ...more, TMPDIR: folder }
  const running = promisify(execFile)(process.execPath, [file], { timeout: LONGEST_MS, env })
  const { stdout, stderr } = await running.catch((error: { killed?: boolean; stdout?: string; stderr?: string }) => {
    if (error.killed !== true) throw error
    throw new Error(`It did not end within ${LONGEST_MS / 1_000} s. It printed:\n${error.stdout}${error.stderr}`)
  })
  if (stderr !== '') throw new Error(`It printed to stderr:\n${stderr}`)
  return stdout
}

/** Only a program that hangs takes as long: some wait while a test backs up a database and runs commands, on a machine that is busy. */
const LONGEST_MS = 60_000

export function toJavaScript(source: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true }
  return ts.transpileModule(source, { compilerOptions }).outputText
}
