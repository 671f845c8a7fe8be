import { appendFileSync } from 'node:fs'

/** Prints a suite's figures, and keeps them where the docs are made from. */
export function figure(line: string): void {
  console.info(line)
  const file = process.env['LEGATE_FIGURES']
  if (file) appendFileSync(file, `${line}\n`)
}
