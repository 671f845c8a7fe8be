import type { Runtime, Turn } from '../../../index.ts'
import { type Call, EXIT, isSet } from '../../command/command.ts'
import { shortId } from '../../store/find-run.ts'
import { withRuntime } from '../../store/open-store.ts'
import { moment } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../../terminal/output.ts'
import { painter } from '../../terminal/paint.ts'
import { activityReader } from '../../watch/activity.ts'
import { EventLines } from '../../watch/event-lines.ts'
import { endOnInterrupt, eventsSoFar, followRun, noteStandstill, treeSoFar } from '../../watch/follow-run.ts'
import { layout } from '../../watch/layout.ts'
import { runToShow } from '../../watch/recent-runs.ts'
import type { WatchedRun, WatchedTree } from '../../watch/run-tree.ts'
import { treeRows } from '../../watch/tree-rows.ts'
import { viewFor } from '../../watch/view.ts'
import { sumOf } from '../../watch/words.ts'

export function tree(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const turn = runToShow(runtime, call)
    if (isSet(call, 'follow') && turn.state !== 'ended') return follow(runtime, turn, call)
    const grown = treeSoFar(runtime.store, turn)
    await write(isSet(call, 'json') ? jsonLine(asJson(runtime, grown.root)) : asText(runtime, grown, call))
    return EXIT.completed
  })
}

async function follow(runtime: Runtime, turn: Turn, call: Call): Promise<number> {
  const view = viewFor(runtime, { json: isSet(call, 'json'), env: call.env, hint: 'Ctrl-C leaves it running' })
  endOnInterrupt(() => view.close())
  if (!process.stdout.isTTY) noteStandstill(runtime, turn)
  await followRun(runtime, turn, (event) => view.take(event, turn.id))
  view.close()
  return EXIT.completed
}

function asText(runtime: Runtime, grown: WatchedTree, { env }: Call): string {
  const doing = activityReader(runtime)
  const rows = treeRows([grown], {
    doing: ({ id, hears }) => doing(id, hears),
    now: Date.now(),
    most: Number.POSITIVE_INFINITY,
  })
  return layout(rows, { paint: painter(process.stdout, env), columns: outputColumns() })
    .map(({ text }) => `${text}\n`)
    .join('')
}

function asJson(runtime: Runtime, run: WatchedRun | undefined): object | null {
  if (run === undefined) return null
  const { tokens, usd } = sumOf(run.spent)
  return {
    id: run.id,
    agent: run.agent,
    state: run.status ?? run.state,
    doing: activityReader(runtime)(run.id, run.hears)?.text ?? null,
    startedAt: run.startedAt,
    endedAt: run.endedAt,
    tokens,
    usd,
    children: run.children.map((child) => asJson(runtime, child)),
  }
}

export function log(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const { store } = runtime
    const turn = runToShow(runtime, call)
    const isJson = isSet(call, 'json')
    const paint = painter(process.stdout, call.env)
    const lines = new EventLines({ paint, deltas: isSet(call, 'follow') })
    if (!isJson) {
      const { name } = store.conversation(turn.conversationId)?.agent ?? { name: '?' }
      await write(paint('dim', `${oneLine(name)} ${shortId(turn.id)}, ${moment(turn.createdAt)}\n`))
    }
    const take = (event: Parameters<EventLines['tell']>[0]) => write(isJson ? jsonLine(event) : lines.tell(event))
    if (!isSet(call, 'follow')) {
      for (const event of eventsSoFar(store, turn)) await take(event)
      return EXIT.completed
    }
    endOnInterrupt()
    if (turn.state !== 'ended') noteStandstill(runtime, turn)
    await followRun(runtime, turn, take)
    return EXIT.completed
  })
}
