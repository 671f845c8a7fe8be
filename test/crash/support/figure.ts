import { appendFileSync } from 'node:fs'

/** Prints a suite's figures, and keeps them where the docs are made from, one line for each name. */
export function figure(name: string, text: string): void {
  const line = `${name}: ${text}`
  console.info(line)
  const file = process.env['LEGATE_FIGURES']
  if (file) appendFileSync(file, `${line}\n`)
}
