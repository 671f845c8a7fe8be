import type { Runtime } from '../../index.ts'
import { type Call, isSet } from '../command.ts'
import type { View } from '../watch/view.ts'
import type { Asker } from './asker.ts'
import { InlineAsk } from './inline-ask.ts'
import { SayYes } from './say-yes.ts'

/** Whoever can answer here: a person at the terminal, or the one who said yes beforehand. */
export function askersFor(call: Call, runtime: Runtime, view: View): readonly Asker[] {
  const by = call.env['USER'] ?? 'user'
  const isInline = !isSet(call, 'json') && InlineAsk.isPossible(call.env)
  const isAllowed = isSet(call, 'yes')
  return [
    ...(isAllowed ? [new SayYes({ runtime, view, by })] : []),
    ...(isInline ? [new InlineAsk({ runtime, view, by, questionsOnly: isAllowed })] : []),
  ]
}
