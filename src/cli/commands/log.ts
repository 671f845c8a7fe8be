import { type Call, EXIT, isSet } from '../command.ts'
import { shortId } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { lookedAt } from '../recent-runs.ts'
import { moment } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, write } from '../terminal/output.ts'
import { painter } from '../terminal/paint.ts'
import { EventLines } from '../watch/event-lines.ts'
import { eventsSoFar } from '../watch/events-so-far.ts'
import { endOnInterrupt, followRun, noteStandstill } from '../watch/follow-run.ts'

export function log(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const { store } = runtime
    const turn = lookedAt(runtime, call)
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
