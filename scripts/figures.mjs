import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import path from 'node:path'

const start = '<!-- figures:start -->'
const end = '<!-- figures:end -->'

/**
 * Puts the lines that the suites appended to `figuresFile` into `page`, between its two marker comments.
 * A page without markers gets them at its end; without any figure the page stays as it is.
 */
export function writeFigures(page, figuresFile) {
  const lines = readText(figuresFile).split('\n').filter(Boolean)
  if (lines.length === 0) return
  mkdirSync(path.dirname(page), { recursive: true })
  const text = readText(page) || '# Reliability\n'
  writeFileSync(page, replaceBlock(text, [start, '', ...heading(), '', ...lines.map(item), '', end].join('\n')))
  console.log(`\nWrote ${lines.length} figures to ${page}`)
}

function replaceBlock(text, block) {
  const from = text.indexOf(start)
  const to = text.indexOf(end, from)
  if (from < 0 || to < 0) return `${text.trimEnd()}\n\n${block}\n`
  return text.slice(0, from) + block + text.slice(to + end.length)
}

function heading() {
  const processors = cpus()
  const date = new Date().toISOString().slice(0, 10)
  return [
    `Measured ${date} by \`npm run test:full\`, Node ${process.version}, ${processors.length} x ${processors[0]?.model ?? 'unknown CPU'}.`,
  ]
}

/** A line that is a row of a table already stays one. */
function item(line) {
  return line.startsWith('|') ? line : `- ${line}`
}

function readText(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}
