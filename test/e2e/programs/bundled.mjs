// Put into one file with all that it imports, and run alone in a folder: see ../bundle.test.ts.
import { agent, createRuntime } from 'legate'
import { serve } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'

const [file] = process.argv.slice(2)
const store = file === undefined ? {} : { store: sqliteStore(file) }
const clerk = agent({ name: 'clerk', instructions: 'x', model: scriptedModel(() => 'Hello.') })
const runtime = createRuntime({ agents: [clerk], ...store })
console.log((await runtime.run('clerk', 'x').result).text)
const server = await serve(runtime, { port: 0, localTokenFile: 'serve.token' })
for (const path of ['/v1', '/v1/openapi.json', '/']) {
  const answer = await fetch(server.url + path, { headers: { authorization: `Bearer ${server.token}` } })
  console.log(path, answer.status)
}
await server.close()
await runtime.close()
