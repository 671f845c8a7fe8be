// Starts runs of `agents.mjs` in a store and prints their ids: `node start.mjs STORE AGENT [AGENT...]`. Runs until they
// are over, or as long as it is let.

import { createRuntime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import * as exported from './agents.mjs'

const agents = new Map(Object.entries(exported))
const [path, ...names] = process.argv.slice(2)
const runtime = createRuntime({ store: sqliteStore(path), agents: [...agents.values()] })
const inputOf = ({ input }) => (input === null ? 'What colour is it?' : { place: 'the sky' })
const runs = names.map((name) => runtime.run(agents.get(name), inputOf(agents.get(name))))
for (const run of runs) {
  for await (const event of run) if (event.type === 'message') break
  console.log(run.id)
}
await Promise.all(runs.map(({ result }) => result))
await runtime.close()
console.log('over')
