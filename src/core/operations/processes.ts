// Operations of processes and of the store itself.

import type { AuditOptions, AuditReport } from '../audit/audit.ts'
import type { CopyOptions, CopyReport } from '../audit/copy.ts'
import type { RestoredOptions, RestoredReport } from '../audit/restored.ts'
import { leaseTime } from '../engine/lease.ts'
import type { Store } from '../store/store.ts'
import type { Page } from './form/page.ts'
import type { ProcessesQuery, ProcessInfo } from './look/process-info.ts'
import { operation } from './operation.ts'
import { bodySchema, FLAG, ID } from './schemas.ts'

export const PROCESSES = {
  /** The processes that run nodes of this store. One that is gone stays until another has taken over what it left. */
  processes: operation({
    summary: 'The processes that run nodes of the store. Only for who sees all owners and agents.',
    scope: 'audit',
    needsAll: true,
    http: 'GET /v1/processes',
    query: { running: { type: 'boolean', description: 'Also the nodes that each of them runs.' } },
    gives: ['Processes', 'The processes.'],
    run: async ({ store, ledger }, query: ProcessesQuery = {}): Promise<readonly ProcessInfo[]> => {
      const { processInfos } = await import('./look/process-info.ts')
      return processInfos(store, query, await leaseTime(ledger))
    },
    wire: (processes: readonly ProcessInfo[]): Page<'processes', ProcessInfo> => ({ processes, next: null }),
  }),

  /**
   * Looks for everything that can be wrong with stored rows: in the whole store, or in one tree. With `repair` what can be
   * mended without losing anything is; every repair is an event of its conversation.
   */
  audit: operation({
    summary: 'Looks for everything that can be wrong with stored rows. Changes nothing.',
    scope: 'audit',
    http: 'POST /v1/audit',
    body: bodySchema({ rootId: ID, verify: FLAG }),
    gives: ['Audit', 'The findings.'],
    example: { body: { verify: true } },
    run: async ({ ledger, rules }, options: AuditOptions = {}): Promise<AuditReport> => {
      const { audit } = await import('../audit/audit.ts')
      if (options.repair === true) await rules()
      return audit(ledger, options)
    },
    as: async (who, options: Omit<AuditOptions, 'repair'> = {}): Promise<AuditReport> => {
      if (options.rootId === undefined) who.requireAll()
      else await who.enter('audit', 'conversation', options.rootId)
      const { audit } = await import('../audit/audit.ts')
      return audit(who.on.ledger, options)
    },
    ask: (body: Pick<AuditOptions, 'rootId' | 'verify'>) => body,
  }),

  /**
   * Copies all trees and tombstones of another store into this one, with their hashes, one after the other. Where it was ended, or
   * the other store went on, say it again: it takes what is new. Tokens, webhooks, limits and sums of usage stay where they are.
   * Throws ConflictError where a tree went on in both stores.
   */
  copyFrom: operation({
    scope: 'never',
    run: async ({ ledger }, store: Store, options: CopyOptions = {}): Promise<CopyReport> => {
      const { copyStore } = await import('../audit/copy.ts')
      return copyStore(store, ledger, options)
    },
  }),

  /**
   * Makes a store that came from a backup safe to work on, once, before any process works on it: what was done after the backup is
   * not in it. Takes away all claims of before, and makes each effect that an open run was about to have `uncertain`, so that it
   * is shown and not silently done again. Refused while a process works on the store.
   */
  restored: operation({
    scope: 'never',
    run: async ({ ledger, rules, cancel }, options: RestoredOptions = {}): Promise<RestoredReport> => {
      const { restored } = await import('../audit/restored.ts')
      await rules()
      return restored(ledger, options, cancel)
    },
  }),
} as const
