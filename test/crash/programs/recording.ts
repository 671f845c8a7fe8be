import { appendFileSync } from 'node:fs'
import { agent, createRuntime, tool } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { record, scriptedModel } from 'legate/testing'
import { z } from 'zod'
import { recordedTree } from './recorded-tree.ts'

// node recording.mjs STORE FILE EFFECTS [KILL]: a tree that is recorded; killed where KILL says, gone on with without.
const [, , store = '', file = '', effects = '', kill = ''] = process.argv

const die = (at: string) => {
  if (kill === at) process.kill(process.pid, 'SIGKILL')
}
const host = recordedTree({
  agent,
  tool,
  z,
  scriptedModel,
  die,
  effect: (line) => appendFileSync(effects, `${line}\n`),
})

const runtime = record(createRuntime({ store: sqliteStore(store), agents: [host] }), file)
const [open] = await runtime.resume()
const run = open ?? runtime.run(host, 'go')
const { status, text, uncertain } = await run.result
await runtime.close()
process.stdout.write(JSON.stringify({ status, text, uncertain: uncertain.length }))
