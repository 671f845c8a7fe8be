import { look, type Turn } from '../../../doors/rows.ts'
import type { Id, StoreError } from '../../../index.ts'
import { type Call, isSet } from '../../command/command.ts'
import { withPlaces } from '../../command/next-command.ts'
import type { Desk } from '../../desk/desk.ts'
import { shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { age, count, duration, money } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { jsonLine, write } from '../../terminal/output.ts'
import { type Paint, painter } from '../../terminal/paint.ts'
import { type TableColumn, tableText } from '../../terminal/table.ts'
import { activityReader, openStateOf } from '../../watch/activity.ts'
import { treeSoFar } from '../../watch/follow-run.ts'
import { allRuns, recentRuns, reportTampered, undefinedIfTampered } from '../../watch/recent-runs.ts'
import { spendOfTree } from '../../watch/tree-rows.ts'
import { NOTHING, preview } from '../../watch/words.ts'
import { listProcesses } from './processes.ts'

export function ps(call: Call): Promise<number> {
  if (isSet(call, 'processes')) return listProcesses(call)
  return withDesk(call, 'read', async (desk) => {
    const { store } = desk
    const known = await rowsOf(desk, await (isSet(call, 'all') ? allRuns(store) : recentRuns(store)))
    const rows = [...known, ...(store.tampered?.() ?? []).flatMap(tamperedRow)]
    if (isSet(call, 'quiet')) {
      for (const { id } of rows) await write(`${shownId(id)}\n`)
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

async function rowsOf(desk: Desk, turns: readonly Turn[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const turn of turns) {
    const row = await undefinedIfTampered(() => rowOf(desk, turn))
    if (row !== undefined) rows.push(row)
  }
  return rows
}

async function rowOf(desk: Desk, turn: Turn): Promise<Row> {
  const { store } = desk
  const { root } = await treeSoFar(store, turn)
  const { tokens, usd } = root === undefined ? NOTHING : spendOfTree(root)
  const doing = (await activityReader(desk, [turn.id]))(turn.id, root?.hears)
  const row = await look(store, turn.rootId, (tree) => tree.conversation(turn.conversationId))
  return {
    id: turn.id,
    conversationId: turn.conversationId,
    agent: row?.agent.name ?? '?',
    state: turn.outcome?.status ?? (await openStateOf(desk, turn)).state,
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
  return [{ ...unknown, id: rootId, conversationId: rootId, state: 'tampered', doing: withPlaces(message) }]
}

const COLUMNS: readonly TableColumn[] = [
  { title: 'ID' },
  { title: 'STATE' },
  { title: 'AGENT' },
  { title: 'AGE', isNumber: true },
  { title: 'TIME', isNumber: true },
  { title: 'TOKENS', isNumber: true },
  { title: 'COST', isNumber: true },
]

function table(rows: readonly Row[], { env }: Call): string {
  if (rows.length === 0) return 'There are no runs in this store yet.\n'
  const paint = painter(process.stdout, env)
  const { head, lines } = tableText(
    COLUMNS,
    'NOW',
    rows.map((row) => [...cellsOf(row), oneLine(row.doing)]),
  )
  const painted = lines.map((line, at) => coloured(line, rows[at]?.state ?? '', paint))
  return `${[paint('dim', head), ...painted].join('\n')}\n`
}

function cellsOf(row: Row): string[] {
  return [
    shownId(row.id),
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

function coloured(line: string, state: string, paint: Paint): string {
  if (state === 'completed') return line
  if (state === 'running') return paint('cyan', line)
  return paint(['queued', 'parked', 'stopping'].includes(state) ? 'yellow' : 'red', line)
}
