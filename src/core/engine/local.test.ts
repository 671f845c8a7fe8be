import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { sqliteStore } from '../../stores/sqlite/index.ts'
import { engineConformance } from '../../testing/conformance/engine-conformance.ts'
import type { EngineFactory } from './engine.ts'
import { localEngine } from './local.ts'

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

engineConformance({ name: 'local engine', create: localEngine, test })
engineConformance({
  name: 'local engine on SQLite',
  create: localEngine,
  open: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'legate-engine-'))
    folders.push(folder)
    return sqliteStore(join(folder, 'legate.db'))
  },
  test,
})

test.each<[string, EngineFactory, string]>([
  [
    'takes more workers than it has',
    (ledger, options) => localEngine(ledger, { ...options, workers: 20 }),
    'no more nodes run at once than there are workers, and all of them run',
  ],
  [
    'runs code that it does not have',
    (ledger, options) => localEngine(ledger, { ...options, agents: new Set([...options.agents, 'stranger']) }),
    'nothing runs whose code is not here',
  ],
  [
    'runs what is left to others',
    (ledger, options) => localEngine(ledger, { ...options, mayRun: () => true }),
    'nothing runs that is left to others, and it runs when that is over',
  ],
  [
    'keeps its claims',
    (ledger, options) => {
      const engine = localEngine(ledger, options)
      const stop = async () => engine.halt()
      return new Proxy(engine, { get: (target, name) => (name === 'stop' ? stop : bound(target, name)) })
    },
    'stopping gives claims back, so that others continue',
  ],
])('an engine that %s breaks a law', async (_, create, sentence) => {
  const laws = new Map<string, () => Promise<void>>()
  engineConformance({ name: 'broken', create, test: (name, run) => laws.set(name, run) })

  await expect(laws.get(`broken: ${sentence}`)?.()).rejects.toThrow()
})

function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name)
  return typeof value === 'function' ? value.bind(target) : value
}
