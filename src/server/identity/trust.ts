import { DefinitionError, type Principal, type Runtime } from '../../index.ts'
import type { Tokens } from './tokens.ts'

/** Whoever logs in: nobody knows yet what he may. */
const ANYBODY: Principal = { id: 'whoever logs in', scopes: ['start'] }

/**
 * Refuses to serve agents that start programs to others than the person at this machine, unless the runtime trusts them. Each start
 * is refused too (`trustPrograms`), also with tokens that are made later: this says it before anybody is let in.
 */
export async function requireTrust(
  runtime: Pick<Runtime, 'as'>,
  tokens: Pick<Tokens, 'principals'>,
  { hasLogin }: { readonly hasLogin: boolean },
): Promise<void> {
  const reached = new Map<string, Set<string>>()
  for (const principal of [...(hasLogin ? [ANYBODY] : []), ...(await tokens.principals())]) {
    for (const agent of await runtime.as(principal).untrustedAgents()) {
      reached.set(agent, (reached.get(agent) ?? new Set()).add(principal.id))
    }
  }
  if (reached.size === 0) return
  const who = [...reached].map(([agent, ids]) => `${agent} (${shown(ids)})`).join(', ')
  throw new DefinitionError('programs_untrusted', `Others than you could start programs here, with ${who}. ${CHOICES}`)
}

const MOST_SHOWN = 5

function shown(ids: ReadonlySet<string>): string {
  const some = [...ids].slice(0, MOST_SHOWN)
  return ids.size > some.length ? `${some.join(', ')} and ${ids.size - some.length} more` : some.join(', ')
}

const CHOICES =
  "Nothing keeps such a program from what your user account can read and write: the token of this machine, the store, the files of all owners. Trust all of them like yourself: --trust-programs, or createRuntime({ trustPrograms: true }). Or keep these agents from their tokens: legate token add --agents. Or deny the programs: --grant-deny 'exec:*' of a token, deny: ['exec:*'] in the grant of the agent or the runtime."
