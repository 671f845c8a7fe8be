// Legate for the side-by-side benchmark: the same work as the other adapters, on the public API and the Model port.
// LEGATE_STORE says which store is used. Nothing is tuned but the limits that the workloads exceed.
import { join } from 'node:path'
import { memoryStore } from '../dist/core/store/memory/index.js'
import { agent, createRuntime, tool } from '../dist/index.js'

const MANY = 100_000

/** A scripted model asks the shared brain what to say. */
function model(brain, role) {
  return {
    id: `bench/${role}`,
    async *stream(request) {
      const decision = await brain.think(role, view(request.messages))
      if (decision.kind === 'stream') {
        for (let at = 0; at < decision.count; at++) yield { type: 'text-delta', text: delta(at, decision.count) }
      } else if (decision.kind === 'text') yield { type: 'text-delta', text: decision.text }
      else for (const call of callsOf(decision)) yield call
      yield FINISH
    },
  }
}

const FINISH = {
  type: 'finish',
  reason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
}

function view(messages) {
  let at = messages.length - 1
  let results = null
  while (messages[at].role === 'tool') {
    results ??= []
    results.push(messages[at--].content)
  }
  results?.reverse()
  while (messages[at].role !== 'user') at--
  return { user: messages[at].content, results, promptLen: messages.length }
}

function callsOf(decision) {
  if (decision.kind === 'delegate') {
    return decision.tasks.map(({ id, to, task }) => ({
      type: 'tool-call',
      id,
      name: to,
      input: JSON.stringify({ task }),
    }))
  }
  return decision.calls.map(({ id, name, args }) => ({ type: 'tool-call', id, name, input: JSON.stringify(args) }))
}

function delta(at, count) {
  if (at === 0) return 'A<<'
  return at === count - 1 ? '>>' : 'tokn '
}

/** A hand-written Standard Schema: what the other adapters check, without a validation library. */
function record(types) {
  const properties = Object.fromEntries(Object.entries(types).map(([key, type]) => [key, { type }]))
  const schema = { type: 'object', properties, required: Object.keys(types) }
  const wrong = (value) => Object.keys(types).find((key) => typeof value?.[key] !== types[key])
  return {
    '~standard': {
      version: 1,
      vendor: 'bench',
      validate: (value) => {
        const key = wrong(value)
        return key === undefined ? { value } : { issues: [{ message: `must be a ${types[key]}`, path: [key] }] }
      },
      jsonSchema: { input: () => schema, output: () => schema },
    },
  }
}

const TASK = record({ task: 'string' })

/** All but the last few ended trees are dropped, as the other frameworks drop a run that is over. */
async function runtime() {
  return createRuntime({ store: await storeOf(process.env.LEGATE_STORE), engine: { workers: MANY } })
}

async function storeOf(name) {
  if (name === 'sqlite') return sqliteAt(process.env.BENCH_TMP ?? node('os').tmpdir())
  if (name !== 'postgres') return memoryStore({ keep: 8 })
  const { postgresStore } = await import('../dist/stores/postgres/index.js')
  return postgresStore(process.env.BENCH_POSTGRES)
}

/** Only some workloads need them; W7 measures what importing costs. */
function node(module) {
  return process.getBuiltinModule(`node:${module}`)
}

async function sqliteAt(dir, name = `legate-${process.pid}-${counter++}.db`) {
  const { sqliteStore } = await import('../dist/stores/sqlite/index.js')
  return sqliteStore(join(dir, name))
}
let counter = 0

function pair(brain, { subTools = false, contextTurns = 50 }) {
  const add = tool({
    description: 'Adds two numbers',
    input: record({ a: 'number', b: 'number' }),
    effect: 'pure',
    execute: (input) => brain.add(input),
  })
  const sub = agent({
    name: 'sub',
    description: 'A worker',
    instructions: 'You are a worker.',
    model: model(brain, 'sub'),
    input: TASK,
    ...(subTools ? { tools: { add } } : {}),
  })
  return agent({
    name: 'host',
    instructions: 'You delegate.',
    model: model(brain, 'host'),
    // The other frameworks tell a child its task and nothing else.
    subagents: { sub: { agent: sub, briefing: 'none' } },
    budget: { children: MANY, concurrency: MANY, toolCalls: MANY },
    contextTurns,
  })
}

async function answer(run) {
  const { status, text, error } = await run.result
  if (status !== 'completed') throw new Error(`${status}: ${error?.message}`)
  return text
}

export async function delegation({ brain, subTools }) {
  const host = pair(brain, { subTools })
  const legate = await runtime()
  return { run: (input) => answer(legate.run(host, input)) }
}

export async function chain({ brain, depth }) {
  const level = (at, subagents) =>
    agent({
      name: `L${at}`,
      description: 'The next level',
      instructions: 'L',
      model: model(brain, `L${at}`),
      budget: { depth },
      ...(at === 0 ? {} : { input: TASK }),
      ...(subagents ? { subagents } : {}),
    })
  let next = level(depth)
  for (let at = depth - 1; at >= 0; at--) next = level(at, { [`L${at + 1}`]: { agent: next, briefing: 'none' } })
  const legate = await runtime()
  return { run: (input) => answer(legate.run(next, input)) }
}

export async function streaming({ brain }) {
  const host = pair(brain, {})
  const legate = await runtime()
  return {
    async run(input, onDelta) {
      const run = legate.run(host, input)
      for await (const event of run) {
        if (event.type === 'text-delta' && event.path.length === 2) await onDelta(event.text)
      }
      return answer(run)
    },
  }
}

/** One conversation; every turn opens it from the store anew. `-default` shows the model what is shown as shipped. */
export async function session({ brain, store, dir }) {
  const host = pair(brain, { contextTurns: store.endsWith('-default') ? 50 : 1_000 })
  return store.startsWith('sqlite') ? sqliteSession(host, dir) : memorySession(host)
}

function memorySession(host) {
  const legate = createRuntime({ store: memoryStore() })
  let conversationId
  return {
    async turn(input) {
      const run = legate.run(host, input, { conversationId })
      conversationId = run.conversationId
      return answer(run)
    },
    bytes: () => JSON.stringify(rowsOf(legate.store, conversationId)).length,
    messages: () => messagesIn(rowsOf(legate.store, conversationId)),
    close: () => legate.close(),
  }
}

async function sqliteSession(host, dir) {
  let conversationId
  const opened = async (use) => {
    const legate = createRuntime({ store: await sqliteAt(dir, 'session.db') })
    try {
      return await use(legate)
    } finally {
      await legate.close()
    }
  }
  return {
    turn: (input) =>
      opened((legate) => {
        const run = legate.run(host, input, { conversationId })
        conversationId = run.conversationId
        return answer(run)
      }),
    bytes: () => sizeOf(join(dir, 'session.db')) + sizeOf(join(dir, 'session.db-wal')),
    messages: () => opened((legate) => messagesIn(rowsOf(legate.store, conversationId))),
  }
}

/** Every event is made; the value is looked at after each chunk. */
export const parser = {
  async run(chunks, seen) {
    const { fieldParser } = await import('../dist/doors/fields.js')
    const fields = fieldParser()
    for (const chunk of chunks) {
      fields.push(chunk)
      await seen(fields.value)
    }
    fields.end()
    return fields.value
  },
}

function rowsOf(store, conversationId) {
  return store.turnsOf(conversationId, { limit: MANY }).flatMap((turn) => store.nodesOf(turn.id))
}

function messagesIn(nodes) {
  return nodes.length
}

function sizeOf(file) {
  return node('fs').statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
