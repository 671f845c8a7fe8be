import type { WhyReason } from '../../index.ts'
import { type Call, EXIT, isSet } from '../command.ts'
import { findDeleted, findIds, findRunOrNode } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { jsonLine, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'

export function why(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    const [ending = ''] = call.words
    const isThere = findIds(runtime.store, ending).length > 0
    const deleted = isThere ? undefined : findDeleted(runtime.store, ending)
    const answer = await runtime.why(deleted ?? findRunOrNode(runtime.store, ending).id)
    if (isSet(call, 'json')) {
      await write(jsonLine(answer))
      return EXIT.completed
    }
    const paint = painter(process.stdout, call.env)
    for (const reason of answer.reasons) await write(lineOf(reason, paint))
    return EXIT.completed
  })
}

function lineOf({ path, text, advice }: WhyReason, paint: Paint): string {
  const who = paint('bold', path.map(oneLine).join(' > '))
  const next = advice === null ? '' : `\n  ${paint('dim', '→')} ${cleanText(advice)}`
  return `${who}: ${cleanText(text)}${next}\n`
}
