import type { Id, Runtime, Store, Turn } from '../../index.ts'
import { type Call, EXIT, isSet } from '../command.ts'
import { shortId } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { age, count, duration, money } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'
import { cut, pad, padLeft, widthOf } from '../terminal/width.ts'
import { doingIn } from '../watch/doing.ts'
import { treeSoFar } from '../watch/events-so-far.ts'
import { NOTHING } from '../watch/spend.ts'
import { standingOf } from '../watch/standing.ts'
import { spendOfTree } from '../watch/tree-rows.ts'
import { preview } from '../watch/words.ts'

/** How many that have ended are shown, and among how many of the newest conversations they are looked for. */
const SHOWN = 10
const LOOKED_AT = 200
const PAGE = 500

export function ps(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const turns = isSet(call, 'all') ? allRoots(runtime.store) : recentRoots(runtime.store)
    if (isSet(call, 'quiet')) {
      for (const { id } of turns) await write(`${shortId(id)}\n`)
      return EXIT.completed
    }
    const rows = turns.map((turn) => rowOf(runtime, turn))
    if (isSet(call, 'json')) for (const row of rows) await write(jsonLine(row))
    else await write(table(rows, call))
    return EXIT.completed
  })
}

interface Row {
  readonly id: Id
  readonly conversationId: Id
  readonly agent: string
  readonly state: string
  readonly createdAt: number
  readonly elapsedMs: number | null
  readonly tokens: number
  readonly usd: number | null
  readonly doing: string
}

/** All that are not over, and the newest of those that are. */
function recentRoots(store: Store): Turn[] {
  const open = store.openRoots(Number.MAX_SAFE_INTEGER)
  const ended = store
    .roots({ limit: LOOKED_AT })
    .flatMap(({ id }) => store.turnsOf(id, { limit: SHOWN }))
    .filter(({ state }) => state === 'ended')
    .sort((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0))
    .slice(0, SHOWN)
  return [...open].sort(newestFirst).concat(ended)
}

function allRoots(store: Store): Turn[] {
  const turns: Turn[] = []
  for (let before: Id | undefined; ; ) {
    const page = store.roots({ limit: PAGE, ...(before === undefined ? {} : { before }) })
    for (const { id, turnCount } of page) turns.push(...store.turnsOf(id, { limit: turnCount }))
    before = page.at(-1)?.id
    if (before === undefined) return turns.sort(newestFirst)
  }
}

function newestFirst(a: Turn, b: Turn): number {
  return b.createdAt - a.createdAt
}

function rowOf(runtime: Runtime, turn: Turn): Row {
  const { store } = runtime
  const { root } = treeSoFar(store, turn)
  const { tokens, usd } = root === undefined ? NOTHING : spendOfTree(root)
  const doing = doingIn(runtime)(turn.id, root?.hears)
  return {
    id: turn.id,
    conversationId: turn.conversationId,
    agent: store.conversation(turn.conversationId)?.agent.name ?? '?',
    state: turn.outcome?.status ?? standingOf(runtime, turn).state,
    createdAt: turn.createdAt,
    elapsedMs: turn.startedAt === null ? null : (turn.endedAt ?? Date.now()) - turn.startedAt,
    tokens,
    usd,
    doing: doing?.text ?? turn.outcome?.error?.message ?? preview(turn.input, 200),
  }
}

const COLUMNS = ['ID', 'STATE', 'AGENT', 'AGE', 'TIME', 'TOKENS', 'COST'] as const
const FROM_THE_RIGHT: readonly string[] = ['AGE', 'TIME', 'TOKENS', 'COST']
const LONGEST = 24
const LEAST_NOW = 3
/** Where nothing is cut by a terminal. */
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

/** Where there is no room, columns are left out from the right, and what a run does now with the first of them. */
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
    age(Date.now() - row.createdAt),
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
