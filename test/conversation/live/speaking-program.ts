import { createRuntime } from '../../../src/index.ts'
import { sqliteStore } from '../../../src/stores/sqlite/index.ts'
import { listen, speakers } from './random-readers.ts'

/** Runs agents that speak, says their ids, and reads them itself too. Its last line is what its readers found. */
const [file = '', first = '0', count = '1'] = process.argv.slice(2)
const runtime = createRuntime({ store: sqliteStore(file) })
const runs = Array.from({ length: Number(count) }, (_, at) => runtime.run(speakers(Number(first) + at), 'go' as never))
for (const run of runs) {
  await (await runtime.attach(run.id)).events()[Symbol.asyncIterator]().next()
  process.stdout.write(`${run.id}\n`)
}
const near = await Promise.all(
  runs.flatMap((run, at) =>
    [1, 2].map((reader) => listen(runtime, run, { seed: Number(first) * 100 + at * 10 + reader, isNear: true })),
  ),
)
for (const run of runs) await run.result
const faults = near.flatMap((listener) => listener.faults)
const liveSeen = near.reduce((sum, listener) => sum + listener.liveSeen, 0)
process.stdout.write(`${JSON.stringify({ faults, liveSeen })}\n`)
await runtime.close()
