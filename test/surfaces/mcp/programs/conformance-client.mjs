// Our client, for the conformance suite of MCP: an agent that has the suite's server as a source and calls each tool it is offered,
// once, with the least that the tool's schema asks for. The suite gives the address as the last word.
import { agent, createRuntime } from 'legate'
import { mcpServer } from 'legate/mcp'

const url = process.argv.at(-1)
const least = { string: 'text', number: 1, integer: 1, boolean: true, array: [], object: {}, null: null }

const model = {
  id: 'test/model',
  async *stream({ messages, tools }) {
    const isFirst = messages.at(-1)?.role === 'user'
    const offered = isFirst ? tools : []
    for (const [at, { name, inputSchema }] of offered.entries()) {
      const fields = Object.entries(inputSchema.properties ?? {})
      const input = Object.fromEntries(
        fields.map(([field, { type, enum: words, default: usual }]) => {
          return [field, usual ?? words?.[0] ?? least[[type].flat()[0]] ?? 'text']
        }),
      )
      yield { type: 'tool-call', id: `call_${at}`, name, input }
    }
    if (offered.length === 0) yield { type: 'text-delta', text: 'Done.' }
    yield { type: 'finish', reason: offered.length === 0 ? 'stop' : 'tool-calls', usage: null }
  },
}
const client = agent({
  name: 'client',
  instructions: 'Call every tool.',
  sources: { suite: mcpServer({ url }) },
  grant: { use: ['tool:*', 'net:*'] },
  model,
})
const runtime = createRuntime()
const run = runtime.run(client, 'Go.')
for await (const event of run) if (event.type === 'tool-result') console.log(event.tool, event.content)
const { status, error } = await run.result
await runtime.close()
console.log(status, error?.message ?? '')
process.exitCode = status === 'completed' ? 0 : 1
