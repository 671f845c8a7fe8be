import type { Turn } from '../../../doors/rows.ts'
import type { Id, Runtime, StoreError } from '../../../index.ts'
import { type Call, isSet } from '../../command/command.ts'
import { shortId } from '../../store/find-run.ts'
import { withRuntime } from '../../store/open-store.ts'
import { age, count, duration, money } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../../terminal/output.ts'
import { type Paint, painter } from '../../terminal/paint.ts'
import { cut, pad, padLeft, widthOf } from '../../terminal/width.ts'
import { activityReader, openStateOf } from '../../watch/activity.ts'
import { treeSoFar } from '../../watch/follow-run.ts'
import { allRuns, recentRuns, reportTampered, unlessTampered } from '../../watch/recent-runs.ts'
import { spendOfTree } from '../../watch/tree-rows.ts'
import { NOTHING, preview } from '../../watch/words.ts'

export function ps(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const { store } = runtime
    const known = await rowsOf(runtime, await (isSet(call, 'all') ? allRuns(store) : recentRuns(store)))
    const rows = [...known, ...(store.tampered?.() ?? []).flatMap(tamperedRow)]
    if (isSet(call, 'quiet')) {
      for (const { id } of rows) await write(`${shortId(id)}\n`)
      return reportTampered(store)
    }
    if (isSet(call, 'json')) for (const row of rows) await write(jsonLine(row))
    else await write(table(rows, call))
    return reportTampered(store)
  })
}

interface Row {
  readonly id: Id
  readonly conversationId: Id
  readonly agent: string
  readonly state: string
  readonly createdAt: number | null
  readonly elapsedMs: number | null
  readonly tokens: number
  readonly usd: number | null
  readonly doing: string
}

async function rowsOf(runtime: Runtime, turns: readonly Turn[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const turn of turns) {
    const row = await unlessTampered(() => rowOf(runtime, turn))
    if (row !== undefined) rows.push(row)
  }
  return rows
}

async function rowOf(runtime: Runtime, turn: Turn): Promise<Row> {
  const { store } = runtime
  const { root } = await treeSoFar(store, turn)
  const { tokens, usd } = root === undefined ? NOTHING : spendOfTree(root)
  const doing = (await activityReader(runtime, [turn.id]))(turn.id, root?.hears)
  const tree = await store.tree(turn.rootId)
  return {
    id: turn.id,
    conversationId: turn.conversationId,
    agent: tree.conversation(turn.conversationId)?.agent.name ?? '?',
    state: turn.outcome?.status ?? (await openStateOf(runtime, turn)).state,
    createdAt: turn.createdAt,
    elapsedMs: turn.startedAt === null ? null : (turn.endedAt ?? Date.now()) - turn.startedAt,
    tokens,
    usd,
    doing: doing?.text ?? turn.outcome?.error?.message ?? preview(saidIn(turn), 200),
  }
}

/** The input of a turn; in words where no person but the end of children in the background began it. */
function saidIn({ input, wokenBy }: Turn): Turn['input'] {
  return wokenBy !== null ? 'hears of subagents in the background' : input
}

/** Shows a tree that was changed outside the runtime: only its existence is certain. */
function tamperedRow({ details: { rootId }, message }: StoreError): Row[] {
  if (typeof rootId !== 'string') return []
  const unknown = { agent: '?', createdAt: null, elapsedMs: null, tokens: 0, usd: null }
  return [{ ...unknown, id: rootId, conversationId: rootId, state: 'tampered', doing: message }]
}

const COLUMNS = ['ID', 'STATE', 'AGENT', 'AGE', 'TIME', 'TOKENS', 'COST'] as const
const FROM_THE_RIGHT: readonly string[] = ['AGE', 'TIME', 'TOKENS', 'COST']
const LONGEST = 24
const LEAST_NOW = 3
/** The widest line where no terminal cuts it. */
const WIDEST = 280

function table(rows: readonly Row[], { env }: Call): string {
  if (rows.length === 0) return 'There are no runs in this store yet.\n'
  const paint = painter(process.stdout, env)
  const room = Math.min(outputColumns() - 1, WIDEST)
  const cells = rows.map((row) => [...cellsOf(row), oneLine(row.doing)])
  const widths = fitting(
    COLUMNS.map((title, at) =>
      Math.min(LONGEST, Math.max(title.length, ...cells.map((row) => widthOf(row[at] ?? '')))),
    ),
    room,
  )
  const line = (row: readonly string[]): string => lineOf(row, widths, room)
  const lines = rows.map((row, at) => coloured(line(cells[at] ?? []), row.state, paint))
  return `${[paint('dim', line([...COLUMNS, 'NOW'])), ...lines].join('\n')}\n`
}

/** Drops columns from the right if there is no room; the current activity goes first. */
function fitting(widths: readonly number[], room: number): readonly number[] {
  const shown = widths.filter((_, at) => widths.slice(0, at + 1).reduce((sum, width) => sum + width + 2, -2) <= room)
  return shown.length > 0 ? shown : widths.slice(0, 1)
}

function lineOf(row: readonly string[], widths: readonly number[], room: number): string {
  const table = widths.map((width, at) => aligned(row[at] ?? '', at, width)).join('  ')
  const left = room - widthOf(table) - 2
  const isWhole = widths.length === COLUMNS.length && left >= LEAST_NOW
  return isWhole ? `${table}  ${cut(row.at(-1) ?? '', left)}`.trimEnd() : table.trimEnd()
}

function cellsOf(row: Row): string[] {
  return [
    shortId(row.id),
    row.state,
    oneLine(row.agent),
    row.createdAt === null ? '-' : age(Date.now() - row.createdAt),
    row.elapsedMs === null ? '-' : duration(row.elapsedMs),
    count(row.tokens),
    costOf(row),
  ]
}

function costOf({ tokens, usd }: Row): string {
  if (tokens === 0) return '-'
  return usd === null ? 'unknown' : money(usd)
}

function aligned(cell: string, at: number, width: number): string {
  return FROM_THE_RIGHT.includes(COLUMNS[at] ?? '') ? padLeft(cell, width) : pad(cell, width)
}

function coloured(line: string, state: string, paint: Paint): string {
  if (state === 'completed') return line
  if (state === 'running') return paint('cyan', line)
  return paint(['queued', 'parked', 'stopping'].includes(state) ? 'yellow' : 'red', line)
}
