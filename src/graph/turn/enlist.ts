import { keepInBackground } from '../child/background.ts'
import { mayRun, takePlace } from '../child/release.ts'
import { changedAccount } from '../copy.ts'
import type { Draft } from '../draft.ts'
import type { Link, Turn } from '../rows.ts'

export type NewLink = Omit<Link, 'version' | 'ordinal' | 'released' | 'outcome' | 'deliveredTo'>

/** One more delegation of a run: counted and told, it may run or waits its turn. */
export function enlist(draft: Draft, host: Turn, given: NewLink): Link {
  const { account } = host
  const { keyed } = given
  const released = mayRun(draft, host, keyed)
  const link: Link = {
    id: given.id,
    version: 1,
    rootId: given.rootId,
    taskId: given.taskId,
    hostTurnId: given.hostTurnId,
    hostConversationId: given.hostConversationId,
    childConversationId: given.childConversationId,
    ordinal: account.children,
    contract: given.contract,
    agentName: given.agentName,
    hostName: given.hostName,
    toolName: given.toolName,
    depth: given.depth,
    mode: given.mode,
    wake: given.wake,
    onParentClose: given.onParentClose,
    released,
    keyed,
    attempt: given.attempt,
    retry: given.retry,
    delegationContext: given.delegationContext,
    outcome: null,
    deliveredTo: null,
  }
  draft.addLink(link)
  if (link.mode === 'background') keepInBackground(draft, link)
  const isPassed = released || (keyed !== null && account.nextRelease === account.children)
  draft.changeTurn(host, {
    account: changedAccount(account, {
      children: account.children + 1,
      live: released ? account.live + 1 : account.live,
      nextRelease: isPassed ? account.nextRelease + 1 : account.nextRelease,
    }),
  })
  if (keyed !== null || host.tree !== null) takePlace(draft, link)
  draft.event(draft.turn(host.id), link.taskId, {
    type: 'delegation-start',
    agent: link.agentName,
    tool: link.toolName,
    childConversationId: link.childConversationId,
    childRunId: link.id,
  })
  return link
}
