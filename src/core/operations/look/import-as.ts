// Imports as a principal asks for them.
//
// Owns:      who may bring in what: history for admins of some owners and agents, all of a tree for an operator.
// Called by: the operation `import` of a principal. Loaded with the first import.
// Must stay true:
//   - Nobody brings in a tree that he would not see, nor rows that decide about later runs, unless he looks after the whole store.
//   - Imported runs go on for nobody but an operator who is trusted with programs (I12).

import type { DayRequest } from '../../agent/step/within-day.ts'
import type { Importing } from '../../audit/archive.ts'
import { DeniedError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { byteOwnersIn } from '../../grant/ceiling.ts'
import { isOperator, maySee, mayStart, type Principal } from '../../grant/principal.ts'
import type { Conversation, Id } from '../../graph/rows.ts'

export interface ImportOptions {
  /** Lets open runs of the tree go on here at once, with all that their rows allow them. Default: they are stopped. */
  readonly goOn?: boolean
}

/** Who imports, and with whose help. */
export interface Importer {
  readonly principal: Principal
  /** The principal's layers, frozen. */
  readonly layers: readonly Json[]
  readonly parts: {
    readonly importOf: (lines: Iterable<string> | AsyncIterable<string>, how: Importing) => Promise<Id>
    /** May what the principal starts start programs? */
    readonly trusted: () => boolean
    /** Throws where the day of somebody whose limit is among the layers is used up. */
    readonly requireDay: (owner: string | null, request?: DayRequest) => Promise<void>
  }
}

export async function importAs(
  { principal, layers, parts }: Importer,
  lines: Iterable<string> | AsyncIterable<string>,
  { goOn = false }: ImportOptions,
): Promise<Id> {
  const isOfAll = isOperator(principal)
  if (goOn && !(isOfAll && parts.trusted())) throw cannotGoOn(principal)
  await parts.requireDay(principal.id, 'message')
  return parts.importOf(lines, {
    goOn,
    check: ({ rootId, conversations }) => {
      const root = conversations.find(({ id }) => id === rootId)
      if (root !== undefined) requireSight(principal, root)
    },
    ...(isOfAll ? {} : { historyFor: [principal.id] }),
    countedFor: byteOwnersIn(layers),
  })
}

function requireSight(principal: Principal, { owner, agent }: Conversation): void {
  if (maySee(principal, owner) && mayStart(principal, agent.name)) return
  const message = `${principal.id} would not see the tree: it is of the agent "${agent.name}", and ${owner ?? 'nobody'} owns it.`
  throw new DeniedError('denied', message)
}

function cannotGoOn({ id }: Principal): DeniedError {
  const message = `${id} cannot let imported runs go on: only who looks after the whole store and is trusted with programs can. Import without it: open runs are stopped then.`
  return new DeniedError('denied', message)
}
