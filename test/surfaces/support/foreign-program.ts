import { spawn } from 'node:child_process'
import path from 'node:path'

/** The folder with a newer Node and programs of others; empty where `node scripts/protocols.mjs` has not fetched them. */
export const foreignFolder: string = process.env['LEGATE_PROTOCOLS'] ?? ''

/** Runs a program of others on that Node. */
export async function foreignProgram(
  file: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const modules = path.join(foreignFolder, 'node_modules')
  const child = spawn(path.join(modules, '.bin/node'), [path.join(modules, file), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    stdout += part
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    stderr += part
    process.stderr.write(part)
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, stdout, stderr }
}
