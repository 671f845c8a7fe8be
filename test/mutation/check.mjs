// Runs the mutation tests and judges what survived: `node test/mutation/check.mjs [file,file]`.
// A mutant that no test kills must be in survivors.json with the reason why none can. An entry there is found by file,
// mutator, the text of its line, the place in it and what becomes of it, so lines may move. One that fits no survivor is
// told, and can go: a slow machine alone may have killed it.

import { spawnSync } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')

main()

function main() {
  const [only, report = 'coverage/mutation.json'] = process.argv.slice(2)
  if (only !== '--report' && runStryker(only) !== 0) {
    process.exitCode = 1
    return
  }
  const { files } = JSON.parse(readFileSync(path.join(root, report), 'utf8'))
  const mutants = Object.entries(files).flatMap(([file, { source, mutants }]) =>
    mutants.map((mutant) => described(file, source.split('\n'), mutant)),
  )
  process.exitCode = judge(
    mutants,
    reasons().filter(({ file }) => file in files),
  )
    ? 0
    : 1
}

function runStryker(only) {
  const program = path.join(root, 'node_modules/.bin/stryker')
  const args = ['run', ...(only === undefined ? [] : ['--mutate', only])]
  // What the tests of a mutant measure are no figures.
  const env = { ...process.env, LEGATE_FIGURES: '' }
  return spawnSync(program, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] }).status
}

function reasons() {
  return JSON.parse(readFileSync(path.join(import.meta.dirname, 'survivors.json'), 'utf8'))
}

/** Says what is wrong; is it all as it should be? */
function judge(mutants, known) {
  const alive = mutants.filter(({ status }) => status !== 'Killed' && status !== 'Timeout' && status !== 'Ignored')
  const unknown = alive.filter((mutant) => !known.some((entry) => isAbout(entry, mutant)))
  const stale = known.filter((entry) => !alive.some((mutant) => isAbout(entry, mutant)))
  const unsaid = known.filter(({ reason }) => typeof reason !== 'string' || reason.trim() === '')
  for (const mutant of unknown) console.error(`No test kills this mutant, and no reason is given:\n${show(mutant)}`)
  for (const entry of stale) console.warn(`survivors.json names what did not survive:\n${show(entry)}`)
  for (const entry of unsaid) console.error(`survivors.json gives no reason for:\n${show(entry)}`)
  const excused = alive.length - unknown.length
  const line = `mutation: ${mutants.length} mutants, ${mutants.length - alive.length} killed, ${excused} with a reason`
  console.log(line)
  if (process.env.LEGATE_FIGURES) appendFileSync(process.env.LEGATE_FIGURES, `${line}\n`)
  return mutants.length > 0 && unknown.length + unsaid.length === 0
}

function isAbout(entry, mutant) {
  return ['file', 'mutator', 'line', 'place', 'from', 'to'].every((key) => entry[key] === mutant[key])
}

/** `from` and `to` are in one line each, so that they can be compared and read. */
function described(file, lines, { mutatorName, location: { start, end }, replacement, status }) {
  const inside = lines.slice(start.line - 1, end.line)
  inside.push(inside.pop().slice(0, end.column - 1))
  inside[0] = inside[0].slice(start.column - 1)
  const line = lines[start.line - 1]
  return {
    status,
    at: `${file}:${start.line}`,
    file,
    mutator: mutatorName,
    line: line.trim(),
    place: start.column - 1 - (line.length - line.trimStart().length),
    from: oneLine(inside.join('\n')),
    to: oneLine(replacement ?? ''),
  }
}

function oneLine(text) {
  return text.replace(/\s+/g, ' ').trim()
}

function show({ at = '', status = '', file, mutator, line, place, from, to }) {
  return `  ${at} ${status}\n  ${JSON.stringify({ file, mutator, line, place, from, to, reason: '' })}`
}
