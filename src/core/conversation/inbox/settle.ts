import { InputError, NotFoundError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { stackCeilings } from '../../grant/ceiling.ts'
import type { Id, Node } from '../../graph/rows.ts'
import { type CallSettlement, planSettle, type SettledCall } from '../../rules/history/settle-call.ts'
import type { Ledger } from '../../store/ledger.ts'
import { lookWith } from '../../store/look.ts'
import { valueEnd } from '../../tool/result.ts'
import type { HistoryHome } from '../history-handle.ts'

/** A person's word on a call whose effect may or may not have happened. */
export type SettleDecision = (
  | {
      /** It happened. */
      readonly happened: true
      /** The result that the tool would have returned; left out where you do not know it. */
      readonly result?: Json
    }
  | {
      /** It did not happen: the call runs again. */
      readonly happened: false
    }
  | {
      /** Nobody will find out: leave it as it is. */
      readonly leave: true
    }
) & {
  /** Settles only the call that the inbox listed with this `seen`. */
  readonly seen?: string
}

/** A word as plain JSON, before it is known to be one, and who says it. */
export interface SettleRequest {
  readonly word: Json
  readonly by: string
  /** Layers of whoever says it, beside the runtime's: they bind a turn that goes on from there. */
  readonly caller: readonly Json[]
}

/** Settles an uncertain call by a person's word. Needs rows only: any process may do it. */
export async function settleCall(
  { ledger, home }: { readonly ledger: Ledger; readonly home: HistoryHome },
  nodeId: Id,
  { word, by, caller }: SettleRequest,
): Promise<SettledCall> {
  const said = readWord(word)
  const { tree, node, row } = await lookWith(ledger.store, nodeId, (rows) => {
    const found = rows.node(nodeId)
    return { tree: rows, node: found, row: found === undefined ? undefined : rows.conversation(found.laneId) }
  })
  if (node === undefined || row === undefined) {
    throw new NotFoundError('not_found', `There is no node ${nodeId} in this store.`)
  }
  const settlement = {
    how: said.how,
    by,
    ...(said.seen === undefined ? {} : { seen: said.seen }),
    result: resultOf(node, said.result),
    caller: stackCeilings(home.ceiling, caller),
    boundsUnder: (ceiling: readonly Json[]) => home.boundsOf(tree, row, ceiling),
  }
  return ledger.commit({ kind: 'answer', rootId: node.rootId, plan: (draft) => planSettle(draft, nodeId, settlement) })
}

interface ReadSettlement {
  readonly how: CallSettlement['how']
  readonly result: Json | undefined
  readonly seen: string | undefined
}

/** Only `true` and `false` are words: whatever else stands there, by mistake or from a form, settles nothing. */
function readWord(given: Json): ReadSettlement {
  const fields = typeof given === 'object' && given !== null && !Array.isArray(given) ? given : {}
  const { happened, leave, result, seen: shown, ...others } = fields as { readonly [key: string]: Json }
  const seen = shown === undefined ? undefined : String(shown)
  const isOne = (happened === undefined) !== (leave === undefined) && Object.keys(others).length === 0
  if (isOne && leave === true && result === undefined) return { how: 'left', result, seen }
  if (isOne && happened === true) return { how: 'happened', result, seen }
  if (isOne && happened === false && result === undefined) return { how: 'not_happened', result, seen }
  const words = '{ happened: true, result }, { happened: false } or { leave: true }'
  throw new InputError('invalid_input', `settle(nodeId, word): the word is ${words}.`)
}

/** Makes the output of the call as if its tool had returned the result. */
function resultOf({ id }: Node, result: Json | undefined): CallSettlement['result'] {
  if (result === undefined) return null
  const { output = {}, body } = valueEnd(result, id)
  return { output, body }
}
