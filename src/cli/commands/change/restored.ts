import type { RestoredReport } from '../../../doors/rows.ts'
import { createRuntime } from '../../../index.ts'
import { type Call, EXIT, isSet } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import { noteIfSlow, openStore } from '../../store/open-store.ts'
import { plural } from '../../terminal/amounts.ts'
import { jsonLine, write } from '../../terminal/output.ts'

/** Makes a store that came from a backup safe to work on, and tells what was in doubt. */
export async function restored(call: Call): Promise<number> {
  const runtime = createRuntime({ store: openStore(call, 'write'), engine: { workers: 0 } })
  try {
    const report = await noteIfSlow(call, runtime.restored({ cancel: isSet(call, 'cancel') }))
    await write(isSet(call, 'json') ? jsonLine(report) : asText(report))
    return EXIT.completed
  } finally {
    await runtime.close()
  }
}

function asText({ lastWrittenAt, trees, claims, uncertain, asked, cancelled, processes }: RestoredReport): string {
  if (lastWrittenAt === null) return `No run is open: nothing is in doubt. ${gone(processes)}\n`
  const lines = [
    `${plural(trees, 'tree')} with an open run, last written at ${new Date(lastWrittenAt).toISOString()}.`,
    `${plural(claims, 'claim')} taken away. ${gone(processes)}`,
    uncertain.length === 0
      ? 'No call is in doubt.'
      : `${plural(uncertain.length, 'call')} may have taken effect after the backup. No process runs that again by itself: see ${legate('inbox')}.`,
    ...(asked.length === 0
      ? []
      : [
          `${plural(asked.length, 'request')} for a person: somebody may have allowed that after the backup. Look before you do: see ${legate('approvals')}.`,
        ]),
    ...(cancelled === 0 ? [] : [`${plural(cancelled, 'open run')} cancelled: ${legate('retry ID')} goes on with one.`]),
  ]
  return `${lines.join('\n')}\n`
}

function gone(processes: number): string {
  return `${processes === 1 ? '1 process' : `${processes} processes`} of before taken off the list.`
}
