// node modern.mjs stdio|http: a server of the revision 2026-07-28 and nothing before it. Over HTTP it listens on PORT and
// tells at /seen which headers it was sent.
import { createServer } from 'node:http'
import { createMcpHandler, fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const [how] = process.argv.slice(2)
const text = (words) => ({ content: [{ type: 'text', text: words }] })
const object = (properties = {}) => fromJsonSchema({ type: 'object', properties })
const seen = []
const schema = { type: 'object', properties: {} }
/** Some of them are no tools at all. */
const ODD_TOOLS = [
  { name: 'era', description: 'It is era', inputSchema: schema },
  { name: 'no_schema', description: 'It has none' },
  { name: 'words', description: 'Its schema is a text', inputSchema: 'an object' },
  { name: 5, inputSchema: schema },
  null,
  { name: 'echo', description: 7, inputSchema: { type: 'object', properties: { message: { type: 'string' } } } },
]
let stopped = 0
let isMore = false
let lists = 0
let made = 0

function make({ era }) {
  const capabilities = { tools: { listChanged: true }, resources: {}, prompts: {} }
  const cacheHints = { 'tools/list': { ttlMs: Number(process.env.TTL_MS ?? 0), cacheScope: 'private' } }
  const server = new McpServer({ name: 'modern', version: '1' }, { capabilities, instructions: 'Say era.', cacheHints })
  const fickle = process.env.FICKLE === '1' ? `, version ${++made}` : ''
  const tool = (name, execute, properties) =>
    server.registerTool(name, { description: `It is ${name}${fickle}`, inputSchema: object(properties) }, execute)
  tool('era', () => text(`${era}, listed ${lists} times`))
  tool('echo', ({ message }) => text(`Echo: ${message}`), { message: { type: 'string' } })
  tool('region', ({ region }) => text(`In ${region}`), { region: { type: 'string', 'x-mcp-header': 'Region' } })
  tool('ask', () =>
    inputRequired({
      inputRequests: {
        name: inputRequired.elicit({
          message: 'Who?',
          requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
        }),
      },
    }),
  )
  tool('state', () => inputRequired({ requestState: 'opaque' }))
  tool('grow', async () => {
    isMore = true
    if (handler === undefined) more()
    else handler.notify.toolsChanged()
    await new Promise((resolve) => setTimeout(resolve, 100))
    return text('grown')
  })
  tool('work', async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken
    for (let progress = 1; progress <= 3; progress++) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } })
    }
    return text('worked')
  })
  tool('wait', async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken
    await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
    await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve, { once: true }))
    stopped++
    return text('stopped')
  })
  tool('stopped', () => text(String(stopped)))
  tool('dies', () => process.exit(3))
  const more = () => tool('more', () => text('more'))
  if (isMore) more()
  server.registerResource('note', 'note://one', { description: 'A note' }, (uri) => ({
    contents: [{ uri: uri.href, text: 'The note.' }],
  }))
  server.registerPrompt('greet', { description: 'Greets' }, () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'Hello.' } }],
  }))
  if (process.env.ODD === '1') server.server.setRequestHandler('tools/list', () => ({ tools: ODD_TOOLS }))
  return server
}

const handler = how === 'http' ? createMcpHandler(make, { legacy: 'reject' }) : undefined
if (handler === undefined) serveStdio(make, { legacy: 'reject' })
else createServer(serve).listen(Number(process.env.PORT), '127.0.0.1')

async function serve(request, response) {
  if (request.url === '/seen') return response.end(JSON.stringify(seen))
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  seen.push(request.headers)
  if (request.headers['mcp-method'] === 'tools/list') lists++
  const controller = new AbortController()
  response.on('close', () => controller.abort())
  const { method, headers } = request
  const init = { method, headers, signal: controller.signal, ...(body.length === 0 ? {} : { body }) }
  const answer = await handler.fetch(new Request(`http://127.0.0.1${request.url}`, init))
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body !== null) {
    try {
      for await (const chunk of answer.body) response.write(chunk)
    } catch {
      // The client has gone.
    }
  }
  response.end()
}
