import path from 'node:path'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import type { LocalStore } from '../../src/core/store/store.ts'
import { commitOf, conversationRow, nodeRow, turnRow } from '../../src/testing/conformance/store-rows.ts'
import { tempFolder } from './temp-folder.ts'
import { leaveUnaudited } from './unaudited.ts'

/** A store with one conversation of so many turns, a message each. */
export async function longTalk(kind: string, turns: number): Promise<LocalStore> {
  const folder = tempFolder()
  const store = kind === 'memory' ? memoryStore() : sqliteStore(path.join(folder, 'rows.db'))
  leaveUnaudited(store)
  const place = { rootId: 'root-a', conversationId: 'root-a', laneId: 'root-a', turnId: '' }
  await store.commit(commitOf('root-a', { conversations: [conversationRow('root-a', { turnCount: turns })] }))
  for (let from = 0; from < turns; from += 2_000) {
    const ordinals = Array.from({ length: Math.min(2_000, turns - from) }, (_, at) => from + at)
    const ended = { state: 'ended', outcome: null } as const
    await store.commit(
      commitOf('root-a', {
        turns: ordinals.map((ordinal) => turnRow({ ...place, turnId: `turn-${ordinal}` }, { ordinal, ...ended })),
        nodes: ordinals.map((ordinal) =>
          nodeRow({ ...place, turnId: `turn-${ordinal}` }, `node-${ordinal}`, {
            kind: 'user_message',
            state: 'finished',
            input: { content: `${ordinal}` },
          }),
        ),
      }),
    )
  }
  return store
}
