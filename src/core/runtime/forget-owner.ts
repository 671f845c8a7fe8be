import { type ForgottenOwner, forgetOwner } from '../audit/archive.ts'
import { type Recordings, type TurnEnds, untilIdle } from '../conversation/ends.ts'
import type { Id } from '../graph/rows.ts'
import type { Ledger } from '../store/ledger.ts'
import type { AgentDirectory } from './resolve-agent.ts'

/** Deletes everything of an owner: see `Runtime.forgetOwner`. Loaded with its first use. */
export async function forgetOwnerWith(
  { ledger, recordings, ends, dropCopies, directory, rules }: OwnerHome,
  { owner, reason, keepsDay, cancel }: OwnerToForget,
): Promise<ForgottenOwner> {
  const { store } = ledger
  await Promise.all([recordings.settled(), directory.allKnown()])
  const { ownerStoresOf } = await rules()
  return forgetOwner(store, owner, {
    removal: { at: ledger.clock.now(), reason },
    keepsDay,
    cancel,
    idle: (rootId) => untilIdle(store, ends, rootId),
    dropCopies,
    stores: () => ownerStoresOf(directory.all(), directory.needs),
  })
}

interface OwnerToForget {
  readonly owner: string
  readonly reason: string
  /** True: the usage of today stays. */
  readonly keepsDay: boolean
  readonly cancel: (runId: Id) => Promise<void>
}

/** Where things of owners are. */
interface OwnerHome {
  readonly ledger: Ledger
  readonly recordings: Recordings
  readonly ends: TurnEnds
  readonly dropCopies: (rootId: Id) => Promise<void>
  readonly directory: Pick<AgentDirectory, 'all' | 'allKnown' | 'needs'>
  readonly rules: () => NodeCode | Promise<NodeCode>
}

type NodeCode = typeof import('./lazy.ts')
