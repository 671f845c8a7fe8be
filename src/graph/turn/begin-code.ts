import type { Draft } from '../draft.ts'
import type { Effect, Node } from '../rows.ts'
import { type Claim, heldNode } from './claim.ts'

/** From here on the code of a message may have had its effect (I4). Undefined when the claim was lost. */
export function planBeginCode(draft: Draft, claim: Claim, effect: Effect): Node | undefined {
  const node = heldNode(draft, claim)
  return node === undefined ? undefined : draft.changeNode(node, { effect })
}
