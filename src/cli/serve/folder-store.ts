import { look } from '../../doors/rows.ts'
import type { Id, Store } from '../../index.ts'
import { SESSION_FOLDER } from '../../server/protocols/acp/index.ts'
import { folderOf, neededCode } from '../watch/words.ts'

/** The number of rows read where some of them belong elsewhere. */
const LOOKED_AT = 10_000

/**
 * Limits the store of a server or worker to runs that may work in this folder. A run of a file belongs to the folder in which
 * it was started, and its rows need no code: in another folder it would read and write other files. A session of an editor
 * belongs to the editor's folder. With names, only runs of files that define these agents are taken.
 */
export function folderStore(store: Store, names?: ReadonlySet<string>): Store {
  const folder = process.cwd()
  const isHere = remembered(async (rootId) => {
    const root = await look(store, rootId, (tree) => tree.conversation(rootId))
    const session = await sessionFolder(store, rootId)
    if (session !== undefined && session !== folder) return false
    const isNamed = names?.has(root?.agent.name ?? '') ?? true
    const own = session ?? folderOf(root) ?? folder
    return root === undefined || neededCode(root) !== '' || (isNamed && own === folder)
  })
  return {
    ...store,
    ...wakesHere(store, isHere),
    runnable: (query) => only(query.limit, isHere, (limit) => store.runnable({ ...query, limit })),
  }
}

/** Limits the store of an editor's folder to the sessions of a person in it: nothing else is claimed, ended or woken there. */
export function sessionStore(store: Store, { folder, owner }: { folder: string; owner: string }): Store {
  const isHere = remembered(async (rootId) => {
    const root = await look(store, rootId, (tree) => tree.conversation(rootId))
    return root?.owner === owner && (await sessionFolder(store, rootId)) === folder
  })
  return {
    ...store,
    ...wakesHere(store, isHere),
    runnable: (query) => only(query.limit, isHere, (limit) => store.runnable({ ...query, limit })),
    claimedBy: (engineId, most) => only(most, isHere, (limit) => store.claimedBy(engineId, limit)),
    overdue: (now, most) => only(most, isHere, (limit) => store.overdue(now, limit)),
    unstopped: (before, most) => only(most, isHere, (limit) => store.unstopped(before, limit)),
    awaiting: (query) => only(query.limit, isHere, (limit) => store.awaiting({ ...query, limit })),
    timed: (query) => only(query.limit, isHere, (limit) => store.timed({ ...query, limit })),
  }
}

/** The folder of the editor in which a conversation began; undefined where it began elsewhere. */
export async function sessionFolder(store: Store, id: Id): Promise<string | undefined> {
  const rootId = (await store.rootOf(id)) ?? id
  const [first] = await look(store, rootId, (tree) => tree.turnsOf(rootId, { last: 0, limit: 1 }))
  const folder = first?.attributes?.[SESSION_FOLDER]
  return typeof folder === 'string' ? folder : undefined
}

type IsHere = (rootId: Id) => Promise<boolean>

/** Limits wakes too: those of other trees are left to others. */
export function wakesHere({ wakes }: Store, isHere: IsHere): Pick<Store, 'wakes'> {
  if (wakes === undefined) return {}
  const listen: typeof wakes.listen = ({ wake, report }) =>
    wakes.listen({ report, wake: async (rootId, at) => (await isHere(rootId)) && wake(rootId, at) })
  return { wakes: { listen } }
}

function remembered(find: IsHere): IsHere {
  const known = new Map<Id, boolean>()
  return async (rootId) => {
    const found = known.get(rootId) ?? (await find(rootId))
    if (known.size > LOOKED_AT) known.clear()
    known.set(rootId, found)
    return found
  }
}

/** Reads more rows where some of the first belong elsewhere. */
async function only<Row extends { readonly rootId: Id }>(
  limit: number,
  isHere: IsHere,
  read: (limit: number) => readonly Row[] | Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const first = await read(limit)
  const kept = await filtered(first, isHere)
  if (kept.length === first.length || first.length < limit) return kept
  return (await filtered(await read(Math.max(limit, LOOKED_AT)), isHere)).slice(0, limit)
}

async function filtered<Row extends { readonly rootId: Id }>(rows: readonly Row[], isHere: IsHere): Promise<Row[]> {
  const kept: Row[] = []
  for (const row of rows) if (await isHere(row.rootId)) kept.push(row)
  return kept
}
