import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, createRuntime, tool } from 'legate'
import { jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { isFull } from './support/full.ts'
import { programFile } from './support/program.ts'

const TREES = isFull ? 40 : 20

test.each(['sqlite', 'json'] as const)(
  'I3: killed while it prunes a %s store, each tree is whole or a tombstone',
  async (kind) => {
    const program = programFile('prune')
    const folder = tempFolder()
    const hashes = await fill(openStore(kind, path.join(folder, 'first')))
    const left: number[] = []

    for (let round = 0; round < (isFull ? 200 : 3); round++) {
      const place = path.join(folder, `copy-${round}`)
      cpSync(path.join(folder, 'first'), place, { recursive: true })
      const pruner = spawn(process.execPath, [program, kind, place], { stdio: ['ignore', 'pipe', 'inherit'] })
      // It may be done before it is killed.
      const ended = once(pruner, 'exit')
      await once(pruner.stdout, 'data')
      await sleep(round === 0 ? 0 : Math.random() * 90)
      pruner.kill('SIGKILL')
      await ended

      const runtime = createRuntime({ store: openStore(kind, place) })
      const { findings } = await runtime.audit({ verify: true })
      const roots = localStore(runtime)
        .roots({ limit: 999 })
        .map(({ id }) => id)
      const stones = (await runtime.store.archive?.tombstones()) ?? []
      expect(findings).toEqual([])
      expect([...roots, ...stones.map(({ rootId }) => rootId)].toSorted()).toEqual([...hashes.keys()].toSorted())
      for (const { rootId, hash } of stones) expect(hash).toBe(hashes.get(rootId))
      const gone = stones.flatMap(({ conversations }) => conversations.map(({ id }) => path.join(place, `${id}.json`)))
      expect(gone.filter((file) => existsSync(file))).toEqual([])
      for (const id of roots) expect((await runtime.store.archive?.read(id))?.records.at(-1)?.hash).toBe(hashes.get(id))
      await runtime.prune({ keep: 0 })
      expect(await runtime.store.archive?.tombstones()).toHaveLength(TREES)
      await runtime.close()
      left.push(roots.length)
    }

    console.log(`killed while it pruned ${TREES} trees of a ${kind} store: ${left.join(', ')} were left`)
  },
)

/** Gives the last hash of every tree. */
async function fill(store: LocalStore): Promise<Map<string, string>> {
  const runtime = createRuntime({ store })
  for (let n = 0; n < TREES; n++) await runtime.run(host, 'work').result
  const hashes = new Map<string, string>()
  for (const { id } of store.roots({ limit: 999 })) {
    hashes.set(id, (await store.archive?.read(id))?.records.at(-1)?.hash ?? '')
  }
  await runtime.close()
  return hashes
}

function openStore(kind: 'sqlite' | 'json', place: string): LocalStore {
  return kind === 'json' ? jsonStore(place) : sqliteStore(place)
}

const worker = agent({ name: 'worker', instructions: 'Work.', model: scriptedModel(() => 'done') })
const host = agent({
  name: 'host',
  instructions: 'Host.',
  tools: {
    look_up: tool({ description: 'Looks up.', input: { type: 'object' }, execute: () => 'long '.repeat(20_000) }),
  },
  subagents: { ask: worker },
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'Good morning.'
      : {
          calls: [
            { name: 'ask', input: { message: 'work' } },
            { name: 'look_up', input: {} },
          ],
        },
  ),
})
