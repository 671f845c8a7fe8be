import { hasScope, ownersSeenBy, type Principal, SCOPES } from './principal.ts'

/** Does a principal reach all that this other one reaches, with all of its scopes? */
export function isAsWide(principal: Principal, other: Principal): boolean {
  if (SCOPES.some((scope) => hasScope(other, scope) && !hasScope(principal, scope))) return false
  const [seen, others] = [ownersSeenBy(principal), ownersSeenBy(other)]
  if (seen !== 'all' && (others === 'all' || others.some((owner) => !seen.includes(owner)))) return false
  const lists = agentLists(other)
  return agentLists(principal).every((list) => lists.some((names) => names.every((name) => list.includes(name))))
}

/** The agents that it may start and see, once for each principal of its line that names some. */
function agentLists({ agents, within }: Principal): readonly (readonly string[])[] {
  const above = within === undefined ? [] : agentLists(within)
  return agents === undefined ? above : [agents, ...above]
}
