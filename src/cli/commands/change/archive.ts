import { createReadStream, existsSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Tombstone } from '../../../doors/rows.ts'
import { createRuntime } from '../../../index.ts'
import { sqliteStore } from '../../../store/sqlite/index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { findIds, findRunOrNode, onlyMatch, refuseDeleted, removalText, shortId } from '../../store/find-run.ts'
import { storePath, withRuntime } from '../../store/open-store.ts'
import { plural } from '../../terminal/amounts.ts'
import { cleanText, oneLine } from '../../terminal/clean.ts'
import { jsonLine, write } from '../../terminal/output.ts'

/** The length of an id with its dashes. */
const WHOLE_ID = 36

/** Deletes one tree and reports what was deleted. */
export function forget(call: Call): Promise<number> {
  const [ending = ''] = call.words
  return withRuntime(call, 'write', async (runtime) => {
    const found = (await findIds(runtime.store, ending)).filter(({ type }) => type !== 'node')
    if (found.length === 0) await refuseDeleted(runtime.store, ending)
    // The rows that lead to a tree may be missing; the full id still names it.
    const isWhole = found.length === 0 && ending.length === WHOLE_ID
    const id = isWhole ? ending : onlyMatch(found, ending, (one) => `${one.id}  ${one.type}`).id
    const stone = await runtime.forget(id, textOption(call, 'reason') ?? 'Forgotten from the command line.')
    await write(isSet(call, 'json') ? jsonLine(stone) : `deleted: ${lineOf(stone)}\n`)
    return EXIT.completed
  })
}

/** Deletes trees beyond the limits of number or age and reports what was deleted. */
export function prune(call: Call): Promise<number> {
  const options = {
    ...optionalNumber('keep', keepOf(textOption(call, 'keep'))),
    ...optionalNumber('olderThanMs', timeOf(textOption(call, 'older-than'))),
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

function optionalNumber(name: string, value: number | undefined): Record<string, number> {
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
  const verb = dryRun ? 'would be deleted' : 'deleted'
  const lines = stones.map((stone) => `${verb}: ${lineOf(stone)}\n`)
  if (stones.length === 0) return 'Nothing to delete: no run is beyond these limits.\n'
  const runs = stones.reduce((sum, stone) => sum + runsOf(stone).length, 0)
  const all = `${plural(stones.length, 'tree')} with ${plural(runs, 'run')}`
  return `${lines.join('')}${all} ${dryRun ? 'would be deleted' : 'deleted'}.\n`
}

function lineOf(stone: Tombstone): string {
  const { rootId, agent, reason, conversations } = stone
  const last = conversations.find(({ id }) => id === rootId)?.runs.at(-1) ?? rootId
  return `${shortId(last)} ${oneLine(agent)}, ${plural(runsOf(stone).length, 'run')} (${removalText(reason)})`
}

function runsOf({ conversations }: Tombstone): string[] {
  return conversations.flatMap(({ runs }) => runs)
}

/** Writes the whole tree of a run to stdout. */
export function exportRun(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const { rootId } = await findRunOrNode(runtime.store, call.words[0] ?? '')
    // Escapes in JSON change no value, so a line that was copied from a terminal is the same line.
    const shown = process.stdout.isTTY ? cleanText : (line: string) => line
    for await (const line of runtime.export(rootId)) await write(`${shown(line)}\n`)
    return EXIT.completed
  })
}

/** Imports a tree from a file or from stdin; creates the store if there is none. */
export async function importRun(call: Call): Promise<number> {
  const [file = '-'] = call.words
  const store = storePath(call)
  const isNew = !existsSync(store)
  const runtime = createRuntime({ store: sqliteStore(store) })
  let isImported = false
  try {
    const rootId = await runtime.import(linesOf(file))
    isImported = true
    const [turn] = (await runtime.store.tree(rootId)).turnsOf(rootId, { limit: 1 })
    await write(
      isSet(call, 'json')
        ? jsonLine({ rootId, runId: turn?.id ?? null })
        : `Imported: ${shortId(turn?.id ?? rootId)}. legate show ${shortId(turn?.id ?? rootId)}\n`,
    )
    return EXIT.completed
  } finally {
    await runtime.close()
    // A store that was made for this import alone is not left behind empty.
    if (isNew && !isImported) for (const ending of ['', '-wal', '-shm']) rmSync(store + ending, { force: true })
  }
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const input = file === '-' ? process.stdin : createReadStream(file, 'utf8')
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new CliError(`There is no file ${file}.`, EXIT.usage)
    throw new CliError(`Cannot read ${file}: ${message}`, EXIT.usage)
  }
}
