import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import path from 'node:path'

const start = '<!-- figures:start -->'
const end = '<!-- figures:end -->'

/**
 * Puts the lines `name: text` that the suites appended to `figuresFile` into `page`, between its two marker comments,
 * in place of those with the same name. A page without markers gets them at its end.
 */
export function writeFigures(page, figuresFile) {
  const lines = readText(figuresFile).split('\n').filter(Boolean)
  if (lines.length === 0) return
  mkdirSync(path.dirname(page), { recursive: true })
  const text = readText(page) || '# Reliability\n'
  const date = new Date().toISOString().slice(0, 10)
  const all = new Map([...blockOf(text).matchAll(/^- .*$/gm)].map(([line]) => [nameOf(line), line]))
  for (const line of lines) all.set(nameOf(`- ${line}`), `- ${line} (${date})`)
  const items = [...all.values()].toSorted()
  writeFileSync(page, replaceBlock(text, [start, '', heading(), '', ...items, '', end].join('\n')))
  console.log(`\nWrote ${lines.length} figures to ${page}`)
}

function nameOf(line) {
  return line.slice(2, line.indexOf(': '))
}

function blockOf(text) {
  const from = text.indexOf(start)
  return from < 0 ? '' : text.slice(from, text.indexOf(end, from))
}

function replaceBlock(text, block) {
  const from = text.indexOf(start)
  const to = text.indexOf(end, from)
  if (from < 0 || to < 0) return `${text.trimEnd()}\n\n${block}\n`
  return text.slice(0, from) + block + text.slice(to + end.length)
}

function heading() {
  const processors = cpus()
  return `Measured by \`npm run test:full\`, Node ${process.version}, ${processors.length} x ${processors[0]?.model ?? 'unknown CPU'}.`
}

function readText(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}
