import type { CopyReport } from '../../../doors/rows.ts'
import { createRuntime } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { setNextStore, withPlaces } from '../../command/next-command.ts'
import { makePlace, openPlace, shownPlace, wholePlace } from '../../store/open-store.ts'
import { plural } from '../../terminal/amounts.ts'
import { cleanText } from '../../terminal/clean.ts'
import { jsonLine, note, write } from '../../terminal/output.ts'

/** Copies all trees of one store into another one, and tells what was there already. Exits with 1 where a tree was refused. */
export async function copy(call: Call): Promise<number> {
  const [from, to] = [named(call, 'from'), named(call, 'to')]
  const [source, target] = [wholePlace(from), wholePlace(to)]
  setNextStore(to)
  if (source === target) throw new CliError('--from and --to name the same store: give two.', EXIT.usage)
  const store = openPlace(source, 'read')
  try {
    const runtime = createRuntime({ store: makePlace(target, to), engine: { workers: 0 } })
    try {
      const told = progressLine()
      const report = await runtime.copyFrom(store, { progress: told.say }).finally(told.end)
      await write(isSet(call, 'json') ? jsonLine(report) : asText(report, shownPlace(target)))
      return report.refused.length === 0 ? EXIT.completed : EXIT.other
    } finally {
      await runtime.close()
    }
  } finally {
    await store.close()
  }
}

function named(call: Call, option: 'from' | 'to'): string {
  const place = textOption(call, option) ?? ''
  if (place !== '') return place
  const message = `missing --${option}: legate copy --from STORE --to STORE, each a file, a folder or postgres://...`
  throw new CliError(message, EXIT.usage)
}

/** How often a log without a terminal gets a line. */
const LOG_MS = 10_000
const SCREEN_MS = 200

/** One line that changes, or a line now and then where nobody looks at a terminal. */
function progressLine(): { readonly say: (report: CopyReport) => void; readonly end: () => void } {
  const isScreen = process.stderr.isTTY === true
  let next = Date.now() + (isScreen ? SCREEN_MS : LOG_MS)
  let isShown = false
  return {
    say: (report) => {
      if (Date.now() < next) return
      next = Date.now() + (isScreen ? SCREEN_MS : LOG_MS)
      isShown = isScreen
      if (isScreen) process.stderr.write(`\r${soFar(report)}\x1b[K`)
      else note(soFar(report))
    },
    end: () => {
      if (isShown) process.stderr.write('\r\x1b[K')
    },
  }
}

function soFar({ copied, renewed, there, ahead, nodes, refused }: CopyReport): string {
  const looked = copied + renewed + there + ahead + refused.length
  return `${plural(looked, 'tree')} seen, ${copied + renewed} copied with ${plural(nodes, 'node')} ...`
}

function asText(report: CopyReport, target: string): string {
  const { copied, renewed, there, ahead, tombstones, deleted, nodes, refused } = report
  const parts = [
    `${plural(copied, 'tree')} copied to ${target}`,
    ...(renewed === 0 ? [] : [`${renewed} renewed, which had gone on`]),
    `${plural(nodes, 'node')} in all`,
    `${there} there already`,
    ...(ahead === 0 ? [] : [`${ahead} left alone, which went on or were deleted there`]),
    ...(tombstones === 0 ? [] : [`${plural(tombstones, 'tombstone')} copied`]),
    ...(deleted === 0 ? [] : [`${deleted} deleted, as in the first store`]),
  ]
  const lines = refused.map(({ rootId, message }) => `not copied: ${rootId}: ${withPlaces(cleanText(message))}\n`)
  return `${lines.join('')}${parts.join(', ')}.\n`
}
