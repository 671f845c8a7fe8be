import type { AuditReport, Finding, NodeDiff, RunDiff, RunFigures, WhyReason } from '../../../doors/rows.ts'
import type { Id } from '../../../index.ts'
import { type Call, EXIT, isSet } from '../../command/command.ts'
import { legate, withPlaces } from '../../command/next-command.ts'
import type { DeskRows } from '../../desk/desk.ts'
import { findDeleted, findRunIds, findRunOrNode, shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { count, duration, plural } from '../../terminal/amounts.ts'
import { cleanText, oneLine } from '../../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../../terminal/output.ts'
import { type Paint, painter } from '../../terminal/paint.ts'
import { cut } from '../../terminal/width.ts'
import { runToShow } from '../../watch/recent-runs.ts'

/** Checks the store. Exits with 1 if it finds a problem that it did not repair. */
export function audit(call: Call): Promise<number> {
  const repair = isSet(call, 'repair')
  return withDesk(call, repair ? 'write' : 'read', async (desk) => {
    const [ending] = call.words
    const rootId = ending === undefined ? undefined : (await findRunOrNode(desk.store, ending)).rootId
    const report = await desk.audit({
      repair,
      verify: isSet(call, 'verify'),
      ...(rootId === undefined ? {} : { rootId }),
    })
    const text = isSet(call, 'json') ? asJson(report) : asText(report, painter(process.stdout, call.env))
    await write(text)
    return report.findings.some(({ severity }) => severity === 'error') ? EXIT.other : EXIT.completed
  })
}

function asJson({ findings, repaired }: AuditReport): string {
  const lines = [
    ...repaired.map((one) => ({ ...one, repaired: true })),
    ...findings.map((one) => ({ ...one, repaired: false })),
  ]
  return lines.map(jsonLine).join('')
}

function asText({ findings, repaired, checked, verified }: AuditReport, paint: Paint): string {
  const lines = [
    ...repaired.map((one) => lineOf(one, paint('green', 'repaired'))),
    ...findings.map((one) => lineOf(one, paint(one.severity === 'error' ? 'red' : 'yellow', one.severity))),
  ]
  const { trees, conversations, turns, nodes } = checked
  const looked = `${plural(trees, 'tree')}, ${plural(conversations, 'conversation')}, ${plural(turns, 'run')}, ${plural(nodes, 'node')}`
  const held =
    verified === null
      ? ''
      : `; ${plural(verified.rows, 'row')} and ${plural(verified.commits, 'commit')} checked against their hashes`
  const left = findings.length === 0 ? paint('green', 'no errors') : `${plural(findings.length, 'finding')}`
  const hint =
    findings.some(({ repairable }) => repairable) && repaired.length === 0
      ? `\n${legate('audit --repair')} repairs what it can without losing anything.`
      : ''
  return `${lines.join('')}${looked}${held}: ${left}.${hint}\n`
}

function lineOf({ type, message }: Finding, how: string): string {
  return `${how} ${type}: ${cleanText(message)}\n`
}

/** Compares two runs. Exits with 1 if they differ, as `diff` does. */
export function diff(call: Call): Promise<number> {
  return withDesk(call, 'read', async (desk) => {
    const [first = '', second = ''] = call.words
    const { id: firstId } = await findRunOrNode(desk.store, first)
    const { id: secondId } = await findRunOrNode(desk.store, second)
    const found = await desk.diff(firstId, secondId)
    await write(isSet(call, 'json') ? jsonLine(found) : diffText(found, painter(process.stdout, call.env)))
    return found.changes.length === 0 ? EXIT.completed : EXIT.other
  })
}

function diffText({ first, second, changes, same }: RunDiff, paint: Paint): string {
  const heads = [`${paint('red', '-')} ${figures(first)}\n`, `${paint('green', '+')} ${figures(second)}\n`]
  const foot = `${changes.length} differ, ${same} are equal.\n`
  return [...heads, ...changes.map((one) => changeText(one, paint)), foot].join('')
}

function figures({ runId, status, tokens, modelCalls, toolCalls, children, durationMs }: RunFigures): string {
  const time = durationMs === null ? 'still open' : duration(durationMs)
  return `${shownId(runId)} ${oneLine(status)}, ${count(tokens)} tokens, ${plural(modelCalls, 'model call')}, ${plural(toolCalls, 'tool call')}, ${plural(children, 'subagent')}, ${time}`
}

function changeText({ place, change, first, second, fields }: NodeDiff, paint: Paint): string {
  const name = oneLine((first ?? second)?.name ?? '')
  if (change !== 'changed') {
    const sign = change === 'only_first' ? paint('red', '-') : paint('green', '+')
    return `${sign} ${oneLine(place)} ${name}: ${short(wordsIn(first ?? second))}\n`
  }
  const lines = fields.map((field) => {
    const [was, is] = [String(first?.[field] ?? ''), String(second?.[field] ?? '')]
    return `    ${field}\n    ${paint('red', '-')} ${short(was)}\n    ${paint('green', '+')} ${short(is)}\n`
  })
  return `  ${oneLine(place)} ${name}\n${lines.join('')}`
}

/** A message of a user has words only where others have their input. */
function wordsIn(node: NodeDiff['first']): string {
  return node?.output || node?.input || ''
}

function short(text: string): string {
  return cut(oneLine(cleanText(text)), Math.max(20, outputColumns() - 8))
}

export function why(call: Call): Promise<number> {
  return withDesk(call, 'read', async (desk) => {
    const deleted = await deletedIn(desk.store, call)
    const answer = await desk.why(deleted ?? (await runToShow(desk, call)).id)
    if (isSet(call, 'json')) {
      await write(jsonLine(answer))
      return EXIT.completed
    }
    const paint = painter(process.stdout, call.env)
    for (const reason of answer.reasons) await write(reasonLine(reason, paint))
    return EXIT.completed
  })
}

async function deletedIn(store: DeskRows, { words: [ending] }: Call): Promise<Id | undefined> {
  if (ending === undefined || (await findRunIds(store, ending)).length > 0) return undefined
  return findDeleted(store, ending)
}

function reasonLine({ path, text, advice }: WhyReason, paint: Paint): string {
  const who = paint('bold', path.map(oneLine).join(' > '))
  const next = advice === null ? '' : `\n  ${paint('dim', '→')} ${withPlaces(cleanText(advice))}`
  return `${who}: ${cleanText(text)}${next}\n`
}
