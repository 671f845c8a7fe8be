import { InputError, type StoreError } from '../base/error.ts'
import { flag, int, listOf, number, type OptionRules, readOptions, text } from '../base/options.ts'
import type { Archive, Removal, SurplusQuery, SurplusTree, Tombstone } from '../store/archive.ts'
import { look } from '../store/look.ts'
import type { Store } from '../store/store.ts'
import { archiveOf, attemptRemoval, damaged } from './archive.ts'

export interface PruneOptions {
  /** Deletes only trees of this owner. */
  readonly owner?: string
  /** Deletes no tree of these owners. */
  readonly notOwners?: readonly string[]
  /** How many trees without an open run stay: the most recent ones. */
  readonly keep?: number
  /** Deletes trees without an open run that were inactive for this long. */
  readonly olderThanMs?: number
  /** Deletes nothing, and gives the tombstones that would remain. */
  readonly dryRun?: boolean
}

/**
 * Deletes surplus and old trees, the oldest first. A tree that became active meanwhile stays. A damaged tree does
 * not hold up the others; an error reports it at the end.
 */
export async function prune(store: Store, options: PruneOptions, { now, maySee }: Pruning): Promise<Tombstone[]> {
  checkOptions(options)
  const archive = archiveOf(store)
  const { dryRun = false } = options
  const query = queryOf(options, { now, maySee })
  const stones: Tombstone[] = []
  const failures: StoreError[] = []
  for await (const page of archive.surplus?.(query) ?? surplusOf(store, query, now)) {
    for await (const gone of removed(archive, page, { at: now, dryRun })) {
      if (gone instanceof Error) failures.push(gone)
      else if (gone !== undefined) stones.push(gone)
    }
  }
  if (stones.length > 0 && !dryRun) await archive.compact?.()
  if (failures.length > 0) throw damaged(failures, stones)
  return stones
}

interface Pruning {
  readonly now: number
  /** The agents whose trees may go: others do not even count. Left out: all. */
  readonly maySee?: ((agent: string) => boolean) | undefined
}

function queryOf({ owner, notOwners, keep, olderThanMs }: PruneOptions, { now, maySee }: Pruning): SurplusQuery {
  return {
    ...(owner === undefined ? {} : { owner }),
    ...(notOwners === undefined ? {} : { notOwners }),
    ...(keep === undefined ? {} : { keep }),
    ...(olderThanMs === undefined ? {} : { until: now - olderThanMs }),
    maySee,
  }
}

type Gone = Tombstone | StoreError | undefined

async function* removed(
  archive: Archive,
  trees: readonly SurplusTree[],
  removal: Pick<Removal, 'at' | 'dryRun'>,
): AsyncGenerator<Gone> {
  if (archive.removeAll !== undefined) return yield* await archive.removeAll(trees, removal)
  for (const { rootId, seq, reason } of trees) {
    yield await attemptRemoval(() => archive.remove(rootId, { ...removal, reason, seq }))
    // A store may answer at once, so other work gets its turn between two trees.
    await new Promise(setImmediate)
  }
}

interface IdleTree extends Omit<SurplusTree, 'reason'> {
  /** The time of the last activity. */
  readonly at: number
}

/** Looks at all trees, for stores that cannot ask for those that may go. */
async function* surplusOf(store: Store, query: SurplusQuery, now: number): AsyncGenerator<readonly SurplusTree[]> {
  const { keep = Number.POSITIVE_INFINITY, until = Number.NEGATIVE_INFINITY } = query
  const trees = await idleTrees(store, query, keep === Number.POSITIVE_INFINITY ? until : now)
  trees.sort((a, b) => b.at - a.at)
  yield trees
    .flatMap(({ at, ...tree }, place): SurplusTree[] => {
      if (place >= keep) return [{ ...tree, reason: 'maximum' }]
      return at <= until ? [{ ...tree, reason: 'ttl' }] : []
    })
    .reverse()
}

const MANY = Number.MAX_SAFE_INTEGER

/** The newest first. A tree that was made after a moment was active after it: it is not even looked at. */
async function idleTrees(store: Store, { owner, notOwners, maySee }: SurplusQuery, until: number): Promise<IdleTree[]> {
  const open = new Set((await store.openTurns(MANY)).map(({ rootId }) => rootId))
  const others = new Set(notOwners)
  const trees: IdleTree[] = []
  for (const root of await store.roots({ limit: MANY, ...(owner === undefined ? {} : { owner }) })) {
    const { id, createdAt, agent } = root
    if (maySee?.(agent.name) === false) continue
    if (open.has(id) || createdAt > until || (root.owner !== null && others.has(root.owner))) continue
    const seq = await look(store, id, (tree) => tree.lastSeq(id))
    const [last] = await store.events(id, seq - 1, 1)
    trees.push({ rootId: id, seq, at: last?.at ?? createdAt })
  }
  return trees
}

const OPTIONS: OptionRules<PruneOptions> = {
  owner: text,
  notOwners: listOf(text, 'owners'),
  keep: int(0),
  olderThanMs: number(0),
  dryRun: flag,
}

function checkOptions(options: PruneOptions | undefined): void {
  const { keep, olderThanMs } = readOptions('prune()', options ?? {}, OPTIONS)
  if (keep === undefined && olderThanMs === undefined) {
    const message = 'prune() needs to be told what may go: { keep: 1000 }, { olderThanMs: 30 * 86_400_000 }, or both.'
    throw new InputError('invalid_input', message)
  }
}
