import { join } from 'node:path'
import { createRuntime } from '../../index.ts'
import { sqliteStore } from '../../store/sqlite/index.ts'
import { demoAgents, packageRoot, QUESTION } from './agents.ts'
import { noteIn } from './view.ts'

/** The process that is killed, and the one after it: the same code, which goes on where the rows say. */
export async function demoWorker(folder: string): Promise<number> {
  process.once('disconnect', () => process.exit())
  process.on('SIGINT', () => undefined) // Ctrl-C reaches both processes; the first one decides
  const lead = demoAgents(packageRoot(import.meta.dirname), noteIn(join(folder, 'calls.log')))
  const runtime = createRuntime({
    store: sqliteStore(join(folder, 'demo.db')),
    agents: [lead],
    // Linux proves a dead process dead. Elsewhere its nodes are free when its lease is over: seconds, for a demo.
    engine: { leaseMs: 3_000 },
  })
  const [open] = await runtime.resume()
  await (open ?? runtime.run(lead, QUESTION)).result
  await runtime.close()
  process.disconnect()
  return 0
}
