import type { Id, Runtime } from '../index.ts'
import { type Call, textOption } from './command.ts'
import { codeOf } from './watch/code-of.ts'
import { takeUp } from './worker/cancelled-runs.ts'

/** What has to be typed so that a run goes on which no process works on. */
export function goesOn(call: Call, { store }: Runtime, runId: Id): string {
  const rootId = store.turn(runId)?.rootId ?? ''
  const file = codeOf(store.conversation(rootId)) === '' ? undefined : 'FILE'
  return takeUp(file, textOption(call, 'store'))(runId)
}
