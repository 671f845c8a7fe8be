import { look, type Turn } from '../../../doors/rows.ts'
import { type Call, EXIT, isSet } from '../../command/command.ts'
import type { Desk } from '../../desk/desk.ts'
import { shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { moment } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../../terminal/output.ts'
import { painter } from '../../terminal/paint.ts'
import { type ActivityOf, activityReader } from '../../watch/activity.ts'
import { EventLines } from '../../watch/event-lines.ts'
import { endOnInterrupt, eventsSoFar, followRun, noteStandstill, treeSoFar } from '../../watch/follow-run.ts'
import { layout } from '../../watch/layout.ts'
import { runToShow } from '../../watch/recent-runs.ts'
import type { WatchedRun, WatchedTree } from '../../watch/run-tree.ts'
import { treeRows } from '../../watch/tree-rows.ts'
import { viewFor } from '../../watch/view.ts'
import { totalSpend } from '../../watch/words.ts'

export function tree(call: Call): Promise<number> {
  return withDesk(call, 'read', async (desk) => {
    const turn = await runToShow(desk, call)
    if (isSet(call, 'follow') && turn.state !== 'ended') return follow(desk, turn, call)
    const grown = await treeSoFar(desk.store, turn)
    const doing = await activityReader(desk, [turn.id])
    await write(isSet(call, 'json') ? jsonLine(asJson(doing, grown.root)) : asText(doing, grown, call))
    return EXIT.completed
  })
}

async function follow(desk: Desk, turn: Turn, call: Call): Promise<number> {
  const view = viewFor(desk, { json: isSet(call, 'json'), env: call.env, hint: 'Ctrl-C leaves it running' })
  endOnInterrupt(() => view.close())
  if (!process.stdout.isTTY) await noteStandstill(desk, turn)
  await followRun(desk, turn, (event) => view.take(event, turn.id))
  view.close()
  return EXIT.completed
}

function asText(doing: ActivityOf, grown: WatchedTree, { env }: Call): string {
  const rows = treeRows([grown], {
    doing: ({ id, hears }) => doing(id, hears),
    now: Date.now(),
    most: Number.POSITIVE_INFINITY,
  })
  return layout(rows, { paint: painter(process.stdout, env), columns: outputColumns() })
    .map(({ text }) => `${text}\n`)
    .join('')
}

function asJson(doing: ActivityOf, run: WatchedRun | undefined): object | null {
  if (run === undefined) return null
  const { tokens, usd } = totalSpend(run.spent)
  return {
    id: run.id,
    agent: run.agent,
    state: run.status ?? run.state,
    doing: doing(run.id, run.hears)?.text ?? null,
    limits: run.limits,
    startedAt: run.startedAt,
    endedAt: run.endedAt,
    tokens,
    usd,
    children: run.children.map((child) => asJson(doing, child)),
  }
}

export function log(call: Call): Promise<number> {
  return withDesk(call, 'read', async (desk) => {
    const { store } = desk
    const turn = await runToShow(desk, call)
    const isJson = isSet(call, 'json')
    const paint = painter(process.stdout, call.env)
    const lines = new EventLines({ paint, deltas: isSet(call, 'follow') })
    if (!isJson) {
      const row = await look(store, turn.rootId, (tree) => tree.conversation(turn.conversationId))
      const { name } = row?.agent ?? { name: '?' }
      await write(paint('dim', `${oneLine(name)} ${shownId(turn.id)}, ${moment(turn.createdAt)}\n`))
    }
    const take = (event: Parameters<EventLines['tell']>[0]) => write(isJson ? jsonLine(event) : lines.tell(event))
    if (!isSet(call, 'follow')) {
      for await (const event of eventsSoFar(store, turn)) await take(event)
      return EXIT.completed
    }
    endOnInterrupt()
    if (turn.state !== 'ended') await noteStandstill(desk, turn)
    await followRun(desk, turn, take)
    return EXIT.completed
  })
}
