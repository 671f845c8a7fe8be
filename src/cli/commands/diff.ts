import type { NodeDiff, RunDiff, RunFigures } from '../../index.ts'
import { type Call, EXIT, isSet } from '../command.ts'
import { findRunOrNode, shortId } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { count, duration, plural } from '../terminal/amounts.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'
import { cut } from '../terminal/width.ts'

/** Exits with 1 where the runs differ, as diff does. */
export function diff(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const [first, second] = call.words.map((ending) => findRunOrNode(runtime.store, ending).id)
    const found = await runtime.diff(first ?? '', second ?? '')
    await write(isSet(call, 'json') ? jsonLine(found) : asText(found, painter(process.stdout, call.env)))
    return found.changes.length === 0 ? EXIT.completed : EXIT.other
  })
}

function asText({ first, second, changes, same }: RunDiff, paint: Paint): string {
  const heads = [`${paint('red', '-')} ${figures(first)}\n`, `${paint('green', '+')} ${figures(second)}\n`]
  const foot = `${changes.length} differ, ${same} are the same.\n`
  return [...heads, ...changes.map((one) => changeText(one, paint)), foot].join('')
}

function figures({ runId, status, tokens, modelCalls, toolCalls, children, durationMs }: RunFigures): string {
  const time = durationMs === null ? 'not over' : duration(durationMs)
  return `${shortId(runId)} ${status}, ${count(tokens)} tokens, ${plural(modelCalls, 'model call')}, ${plural(toolCalls, 'tool call')}, ${plural(children, 'subagent')}, ${time}`
}

function changeText({ place, change, first, second, fields }: NodeDiff, paint: Paint): string {
  const name = oneLine((first ?? second)?.name ?? '')
  if (change !== 'changed') {
    const sign = change === 'only_first' ? paint('red', '-') : paint('green', '+')
    return `${sign} ${oneLine(place)} ${name}: ${short((first ?? second)?.output ?? '')}\n`
  }
  const lines = fields.map((field) => {
    const [was, is] = [String(first?.[field] ?? ''), String(second?.[field] ?? '')]
    return `    ${field}\n    ${paint('red', '-')} ${short(was)}\n    ${paint('green', '+')} ${short(is)}\n`
  })
  return `  ${oneLine(place)} ${name}\n${lines.join('')}`
}

function short(text: string): string {
  return cut(oneLine(cleanText(text)), Math.max(20, outputColumns() - 8))
}
