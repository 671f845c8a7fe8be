import type { AuditReport, Finding } from '../../index.ts'
import { type Call, EXIT, isSet } from '../command.ts'
import { findRunOrNode } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { plural } from '../terminal/amounts.ts'
import { cleanText } from '../terminal/clean.ts'
import { jsonLine, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'

/** Exits with 1 if anything is wrong that was not mended. */
export function audit(call: Call): Promise<number> {
  const repair = isSet(call, 'repair')
  return withRuntime(call, repair ? 'write' : 'read', async (runtime) => {
    const [ending] = call.words
    const rootId = ending === undefined ? undefined : findRunOrNode(runtime.store, ending).rootId
    const report = await runtime.audit({
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
      : `; ${plural(verified.rows, 'row')} and ${plural(verified.commits, 'commit')} held against their hashes`
  const left = findings.length === 0 ? paint('green', 'nothing is wrong') : `${plural(findings.length, 'finding')}`
  const hint =
    findings.some(({ repairable }) => repairable) && repaired.length === 0
      ? '\nlegate audit --repair mends what can be mended without losing anything.'
      : ''
  return `${lines.join('')}${looked}${held}: ${left}.${hint}\n`
}

function lineOf({ type, message }: Finding, how: string): string {
  return `${how} ${type}: ${cleanText(message)}\n`
}
