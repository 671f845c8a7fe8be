import { join } from 'node:path'
import { createRuntime } from '../../index.ts'
import { sqliteStore } from '../../stores/sqlite/index.ts'
import { demoAgents, packageRoot, QUESTION } from './agents.ts'
import { noteIn } from './view.ts'

/**
 * Runs the worker process: the one that gets killed and the one after it run this same code, which continues from the
 * rows.
 */
export async function demoWorker(folder: string): Promise<number> {
  process.once('disconnect', () => process.exit())
  process.on('SIGINT', () => undefined) // Ctrl-C reaches both processes; the parent decides
  const lead = demoAgents(packageRoot(import.meta.dirname), noteIn(join(folder, 'calls.log')))
  const runtime = createRuntime({
    store: sqliteStore(join(folder, 'demo.db')),
    agents: [lead],
    // On Linux a dead process is detected at once. Elsewhere its nodes are free after the lease, which is short for a
    // demo.
    engine: { leaseMs: 3_000 },
  })
  const [open] = await runtime.resume()
  await (open ?? runtime.run(lead, QUESTION)).result
  await runtime.close()
  process.disconnect()
  return 0
}
