import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Runtime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { build } from 'tsdown'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { toEvent } from '../../../src/core/graph/event.ts'
import { openRuntime } from '../../support/reading.ts'
import { openStore, remoteStore } from '../../support/remote.ts'
import { type Rows, stores } from '../../support/stores.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { type Listener, listen, speakers } from './random-readers.ts'

const isFull = process.env['LEGATE_FULL'] === '1'
const ROUNDS = isFull ? 40 : 2
const root = path.resolve(import.meta.dirname, '../../..')

describe('readers that stop and go on at any moment end with what the log has', () => {
  describe.each(stores)('on %s rows, in the process that runs the nodes and in another runtime', (_name, create) => {
    test.each(Array.from({ length: ROUNDS }, (_, at) => 100 * at))('round %i', async (seed) => {
      const rows: Rows = create()
      onTestFinished(() => rows.drop())
      const store = rows.open()
      const near = openRuntime({ store: rows.isRemote === true ? remoteStore(store) : store })
      const far = openRuntime({ store: openStore(rows) })
      const runs = [1, 2, 3].map((at) => near.run(speakers(seed + at), 'go' as never))

      const listeners = await Promise.all(
        runs.flatMap((run, at) => [
          listen(near, run, { seed: seed + at, isNear: true }),
          listen(near, run, { seed: seed + at + 10, isNear: true }),
          firstEvent(run).then(async () =>
            listen(far, await far.attach(run.id), { seed: seed + at + 20, isNear: false }),
          ),
        ]),
      )

      expect(listeners.flatMap(({ faults }) => faults)).toEqual([])
      for (const [at, run] of runs.entries()) {
        const log = store.events(run.conversationId, 0, 100_000).map(toEvent)
        for (const listener of listeners.slice(at * 3, at * 3 + 3)) {
          expect(listener.durable).toEqual(log.slice(0, listener.durable.length))
          expect(log.slice(listener.durable.length).some(({ type }) => type === 'run-end')).toBe(false)
        }
      }
      expect(listeners.reduce((sum, { liveSeen }) => sum + liveSeen, 0)).toBeGreaterThan(0)
    })
  })

  describe('in two processes with one SQLite file', () => {
    const cache = path.join(root, 'node_modules/.cache')
    mkdirSync(cache, { recursive: true })
    const folder = tempFolder(afterAll, cache)
    beforeAll(async () => {
      const entry = { speaking: path.join(import.meta.dirname, 'speaking-program.ts') }
      const options = { cwd: root, entry, outDir: folder, config: false, dts: false } as const
      await build({ ...options, format: 'esm', platform: 'node', logLevel: 'silent' })
    }, 60_000)

    test.each(Array.from({ length: ROUNDS }, (_, at) => 1_000 + 100 * at))('round %i', async (seed) => {
      const file = path.join(tempFolder(), 'rows.db')
      const args = [path.join(folder, 'speaking.mjs'), file, `${seed}`, '4']
      const program = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => void program.kill('SIGKILL'))
      const ended = once(program, 'exit')

      const { heard, verdict } = await hearAll(createInterface({ input: program.stdout }), file, seed)
      await ended

      expect(verdict.faults).toEqual([])
      expect(verdict.liveSeen).toBeGreaterThan(0)
      const store = sqliteStore(file)
      onTestFinished(() => store.close())
      for (const { listener, rootId } of heard) {
        expect(listener.faults).toEqual([])
        const log = store.events(rootId, 0, 100_000).map(toEvent)
        expect(listener.durable).toEqual(log.slice(0, listener.durable.length))
      }
      expect(heard.reduce((sum, { listener }) => sum + listener.liveSeen, 0)).toBeGreaterThan(0)
    })
  })
})

interface Heard {
  readonly rootId: string
  readonly listener: Listener
}

/** Reads every run that the program names, while it runs; its last line is what its own readers found. */
async function hearAll(
  lines: AsyncIterable<string>,
  file: string,
  seed: number,
): Promise<{ heard: Heard[]; verdict: { faults: string[]; liveSeen: number } }> {
  const heard: Promise<Heard>[] = []
  let runtime: Runtime | undefined
  let verdict = { faults: ['it said nothing'], liveSeen: 0 }
  for await (const line of lines) {
    runtime ??= openRuntime({ store: sqliteStore(file) })
    if (line.startsWith('{')) verdict = JSON.parse(line)
    else for (const at of [1, 2, 3]) heard.push(hearRun(runtime, line, seed + at))
  }
  return { heard: await Promise.all(heard), verdict }
}

async function hearRun(runtime: Runtime, runId: string, seed: number): Promise<Heard> {
  const run = await runtime.attach(runId)
  return { rootId: run.conversationId, listener: await listen(runtime, run, { seed, isNear: false }) }
}

async function firstEvent(run: AsyncIterable<unknown>): Promise<void> {
  for await (const _event of run) return
}
