// Operations of owners: what is kept of them, and what is deleted.

import type { ForgottenOwner } from '../audit/archive.ts'
import type { PruneOptions } from '../audit/prune.ts'
import { DeniedError } from '../base/error.ts'
import { untilIdle } from '../conversation/ends.ts'
import { isOperator, looksAfter, maySee, mayStart, ownersSeenBy, type Principal } from '../grant/principal.ts'
import type { Tombstone } from '../store/archive.ts'
import type { Page } from './form/page.ts'
import type { KeptOwner } from './form/server-port.ts'
import { operation, serverOperation } from './operation.ts'
import type { Operating } from './port.ts'
import { bodySchema, FLAG, SHORT } from './schemas.ts'

/** Operations of the settings of an owner, which a server keeps. */
export const OWNER_SETTINGS = {
  /** How long trees of an owner are kept; null: as the server says for all. */
  owner: serverOperation({
    summary: 'What is set for an owner.',
    scope: 'admin',
    of: 'owner',
    http: 'GET /v1/owners/{owner}',
    gives: ['Owner', 'The settings.'],
    serve: async ({ principal, owners }, owner: string): Promise<KeptOwner> => owners.get(seen(principal, owner)),
  }),

  /** Sets how long trees of an owner are kept. */
  keepOwner: serverOperation({
    summary: 'Sets how long trees of an owner are kept. Older ones without an open run are deleted, within an hour.',
    scope: 'admin',
    of: 'owner',
    http: 'PUT /v1/owners/{owner}',
    body: bodySchema(
      {
        keepDays: {
          type: ['integer', 'null'],
          minimum: 1,
          maximum: 36_500,
          description: 'Days after the last activity of a tree; null: as the options of the server say.',
        },
      },
      ['keepDays'],
    ),
    plain: ['keepDays'],
    gives: ['Owner', 'The settings.'],
    example: { body: { keepDays: 30 } },
    serve: async ({ principal, owners }, owner: string, keepDays: number | null): Promise<KeptOwner> => {
      if (looksAfter(principal, seen(principal, owner))) return owners.set({ owner, keepDays })
      throw new DeniedError('denied', `${principal.id} does not see all agents.`)
    },
  }),
} as const

export const OWNERS = {
  /**
   * Cancels all runs of an owner, waits for their end, and deletes all of the owner's trees with copies of their sessions, and
   * what else the store keeps of the owner: tokens, webhooks, usage, changes. The tombstones keep ids only, so that an old `key`
   * starts nothing again. Then it deletes the files and memories on this machine that are the owner's own: those of the runtime's
   * `files`, and of the tools of all agents that this process knows. If it is ended in the middle, call it again.
   */
  forgetOwner: operation({
    summary:
      'Cancels and erases everything of an owner: trees, copies of sessions, tokens, webhooks, counters. Needs the scope delete too.',
    scope: ['admin', 'delete'],
    of: 'owner',
    http: 'DELETE /v1/owners/{owner}',
    query: { reason: { type: 'string', description: 'The reason that open runs are cancelled for.' } },
    plain: ['reason'],
    gives: ['ForgottenOwner', 'What is gone.'],
    run: (on, owner: string, reason: string = 'forgotten') => forgetOwner(on, owner, { reason, keepsDay: false }),
    as: async ({ on, principal }, owner: string, reason: string = 'forgotten') => {
      if (!looksAfter(principal, seen(principal, owner))) {
        throw new DeniedError('denied', `${principal.id} does not see all agents, so it cannot forget ${owner}.`)
      }
      return forgetOwner(on, owner, { reason, keepsDay: !isOperator(principal) })
    },
  }),

  /**
   * Deletes trees without an open run: all but the newest (`keep`), those in which nothing happened for long (`olderThanMs`),
   * or either; of one `owner`, or of all. Gives the tombstones they leave.
   */
  prune: operation({
    summary: 'Deletes trees without an open run: all but the newest, or those in which nothing happened for long.',
    scope: 'delete',
    of: 'none',
    http: 'POST /v1/prune',
    body: bodySchema({
      keep: { type: 'integer', minimum: 0, description: 'How many trees stay.' },
      olderThanMs: { type: 'integer', minimum: 0, description: 'Only trees that were inactive for this long.' },
      owner: { ...SHORT, description: 'Only trees of this owner.' },
      dryRun: { ...FLAG, description: 'Deletes nothing, and says what it would delete.' },
    }),
    gives: ['Tombstones', 'The tombstones that the trees leave.'],
    example: { body: { keep: 1000, dryRun: true } },
    run: (on, options: PruneOptions) => prune(on, options),
    as: async ({ on, principal }, options: PruneOptions): Promise<Tombstone[]> => {
      const ofItsAgents = (agent: string) => mayStart(principal, agent)
      const seen = ownersSeenBy(principal)
      if (options.owner === undefined && seen === 'all') return prune(on, options, ofItsAgents)
      const owners = options.owner === undefined ? seen : [options.owner]
      const stones: Tombstone[] = []
      for (const owner of owners) {
        if (maySee(principal, owner)) stones.push(...(await prune(on, { ...options, owner }, ofItsAgents)))
      }
      return stones
    },
    wire: (tombstones: readonly Tombstone[]): Page<'tombstones', Tombstone> => ({ tombstones, next: null }),
  }),
} as const

/** Somebody who does not see an owner changes nothing of him. */
function seen(principal: Principal, owner: string): string {
  if (maySee(principal, owner)) return owner
  throw new DeniedError('denied', `${principal.id} does not see ${owner}.`)
}

async function forgetOwner(
  on: Operating,
  owner: string,
  {
    reason,
    keepsDay,
  }: {
    readonly reason: string
    /** True: the usage of today stays. */
    readonly keepsDay: boolean
  },
): Promise<ForgottenOwner> {
  const { ledger, recordings, ends, dropCopies, directory, rules, cancel } = on
  const { store, clock } = ledger
  on.watch()
  const { forgetOwner: forget } = await import('../audit/archive.ts')
  await Promise.all([recordings.settled(), directory.allKnown()])
  const { ownerStoresOf } = await rules()
  return forget(store, owner, {
    removal: { at: clock.now(), reason },
    keepsDay,
    cancel: (runId) => cancel(runId, reason),
    idle: (rootId) => untilIdle(store, ends, rootId),
    dropCopies,
    stores: () => ownerStoresOf(directory.all(), directory.needs),
  })
}

async function prune(
  { store, ledger, feeds }: Operating,
  options: PruneOptions,
  maySeeAgent?: (agent: string) => boolean,
): Promise<Tombstone[]> {
  const { prune: pruned } = await import('../audit/prune.ts')
  const stones = await pruned(store, options, { now: ledger.clock.now(), maySee: maySeeAgent })
  for (const { rootId } of stones) feeds.closeTree(rootId)
  return stones
}
