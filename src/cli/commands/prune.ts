import type { Tombstone } from '../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../command.ts'
import { shortId } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { plural } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, write } from '../terminal/output.ts'

/** Deletes what is too much or too old, and says what went. */
export function prune(call: Call): Promise<number> {
  const options = {
    ...given('keep', keepOf(textOption(call, 'keep'))),
    ...given('olderThanMs', timeOf(textOption(call, 'older-than'))),
  }
  if (Object.keys(options).length === 0) {
    throw new CliError(
      'missing --keep or --older-than: legate prune --keep N, or --older-than TIME, or both.',
      EXIT.usage,
    )
  }
  const dryRun = isSet(call, 'dry-run')
  return withRuntime(call, dryRun ? 'read' : 'write', async (runtime) => {
    const stones = await runtime.prune({ ...options, dryRun })
    await write(isSet(call, 'json') ? stones.map(jsonLine).join('') : asText(stones, dryRun))
    return EXIT.completed
  })
}

function given(name: string, value: number | undefined): Record<string, number> {
  return value === undefined ? {} : { [name]: value }
}

function keepOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new CliError('--keep is a whole number, such as 1000.', EXIT.usage)
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, amount = '', unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)([smhdw])$/.exec(text.trim()) ?? []
  const ms = UNITS[unit]
  if (ms !== undefined) return Number(amount) * ms
  throw new CliError('--older-than is a time with its unit: 90s, 15m, 12h, 30d or 8w.', EXIT.usage)
}

function asText(stones: readonly Tombstone[], dryRun: boolean): string {
  const verb = dryRun ? 'would go' : 'deleted'
  const lines = stones.map((stone) => `${verb}: ${lineOf(stone)}\n`)
  if (stones.length === 0) return 'Nothing is too much or too old.\n'
  const runs = stones.reduce((sum, stone) => sum + runsOf(stone).length, 0)
  const all = `${plural(stones.length, 'tree')} with ${plural(runs, 'run')}`
  return `${lines.join('')}${all} ${dryRun ? 'would be deleted' : 'deleted'}.\n`
}

function lineOf(stone: Tombstone): string {
  const { rootId, agent, reason, conversations } = stone
  const last = conversations.find(({ id }) => id === rootId)?.runs.at(-1) ?? rootId
  return `${shortId(last)} ${oneLine(agent)}, ${plural(runsOf(stone).length, 'run')} (${oneLine(reason)})`
}

function runsOf({ conversations }: Tombstone): string[] {
  return conversations.flatMap(({ runs }) => runs)
}
