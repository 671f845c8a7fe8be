import type { Id, Store, WhyReason } from '../../index.ts'
import { type Call, EXIT, isSet } from '../command.ts'
import { findDeleted, findIds } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { lookedAt } from '../recent-runs.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { jsonLine, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'

export function why(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const answer = await runtime.why(deletedIn(runtime.store, call) ?? lookedAt(runtime, call).id)
    if (isSet(call, 'json')) {
      await write(jsonLine(answer))
      return EXIT.completed
    }
    const paint = painter(process.stdout, call.env)
    for (const reason of answer.reasons) await write(lineOf(reason, paint))
    return EXIT.completed
  })
}

function deletedIn(store: Store, { words: [ending] }: Call): Id | undefined {
  return ending === undefined || findIds(store, ending).length > 0 ? undefined : findDeleted(store, ending)
}

function lineOf({ path, text, advice }: WhyReason, paint: Paint): string {
  const who = paint('bold', path.map(oneLine).join(' > '))
  const next = advice === null ? '' : `\n  ${paint('dim', '→')} ${cleanText(advice)}`
  return `${who}: ${cleanText(text)}${next}\n`
}
