// A chat service: a Hono app with your login, and the chats of `useChat` behind it. Kill it in the middle of an answer and start
// it again: the run goes on, and the page resumes.

import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { agent, createRuntime } from 'legate'
import type { Model } from 'legate/models'
import { handler } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'

// A real model goes here. This one counts, slowly.
const counting: Model = {
  id: 'example/counting',
  async *stream(_, { signal }) {
    for (let at = 1; at <= 50; at++) {
      await new Promise((resolve) => setTimeout(resolve, 40))
      signal.throwIfAborted()
      yield { type: 'text-delta', text: `${at} ` }
    }
    const usage = { inputTokens: 1, outputTokens: 50, cacheReadTokens: 0, cacheWriteTokens: 0 }
    yield { type: 'finish', reason: 'stop', usage }
  },
}

const clerk = agent({ name: 'clerk', instructions: 'You count.', model: counting })
const runtime = createRuntime({ store: sqliteStore(process.env['CHATS'] ?? 'chats.db'), agents: [clerk] })
await runtime.resume() // goes on with what a process before this one left

// Your login: who asks, and what he may do. Here the name itself is the token.
const legate = handler(runtime, {
  authenticate: ({ headers }) => {
    const id = headers.get('x-user')
    return id === null ? null : { id, scopes: ['start', 'read', 'cancel', 'approve', 'history'], agents: ['clerk'] }
  },
})

const app = new Hono()
app.get('/', (context) => context.text('Hello.'))
app.all('/ai-sdk/*', (context) => legate(context.req.raw))

const server = serve({ fetch: app.fetch, port: Number(process.env['PORT'] ?? 3000), hostname: '127.0.0.1' }, (info) => {
  console.log(`http://127.0.0.1:${info.port}`)
})
process.on('SIGTERM', () => server.close(() => runtime.close()))
