import { agent } from 'legate'
import { askTools, backgroundSubagents } from 'legate/background'
import type { ModelRequest } from 'legate/models'
import { countEffect, crashWorker, type Script, scriptedModel } from 'legate/testing'
import { call, counted, QUICK, recorded, roundsOf, steppingModel } from './parts.ts'

/** Children beside their host: one that it waits for, one that asks it, and a call that becomes one of them. */
const worker = agent({
  name: 'worker',
  instructions: 'Work.',
  tools: { ...askTools(), pay: counted('pay', 'effectful') },
  model: counting((request) => {
    const [prompt] = saidTo(request)
    const results = request.messages.filter(({ role }) => role === 'tool').length
    if (prompt === 'ask' && results === 0) return { calls: [call('ask_host', { question: 'Which one?' })] }
    if (prompt === 'pay' && results === 0) return { calls: [call('pay')] }
    return `${prompt} is done.`
  }),
})

const sleeper = agent({
  name: 'sleeper',
  instructions: 'Take your time.',
  tools: { look: counted('look', 'pure', { lastsMs: 60 }) },
  model: steppingModel({ calls: [call('look')] }),
})

const spawn = (name: string) => call('subagent_spawn', { name, prompt: name })

const host = agent({
  name: 'host',
  instructions: 'Lead.',
  tools: { ...backgroundSubagents({ agent: worker }) },
  subagents: { late: { agent: sleeper, promoteAfterMs: 5 } },
  model: counting((request) => {
    const said = saidTo(request).at(-1) ?? ''
    if (said.startsWith('[background]')) return hear(said, request)
    const results = request.messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
    if (results.length === 0) {
      return { calls: [spawn('pay'), spawn('ask'), call('late', { message: 'Sleep.' })] }
    }
    if (results.length > 3) return 'host is done.'
    return { calls: [{ name: 'subagent_wait', input: { ids: [idIn(results[0] ?? '')] } }] }
  }),
})

await crashWorker({
  options: { agents: [host], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'background')).length === 0)
      await recorded(runtime.run(host, 'Go.', { title: 'background' }))
    await runtime.idle()
  },
})

function counting(script: Script) {
  return scriptedModel(async (request, at) => {
    await countEffect('model', request.path.join('/'))
    return script(request, at)
  })
}

/** Answers every question once. */
function hear(said: string, { messages }: ModelRequest) {
  if (messages.at(-1)?.role === 'tool') return 'host has answered.'
  const lines = said
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line) as { question?: string })
  const asked = lines.filter(({ question }) => question !== undefined)
  if (asked.length === 0) return 'host has heard.'
  return {
    calls: asked.map((line) =>
      call('subagent_send', { child_conversation_id: idIn(JSON.stringify(line)), message: 'This.' }),
    ),
  }
}

function saidTo({ messages }: ModelRequest): string[] {
  return messages.flatMap(({ role, content }) => (role === 'user' ? [String(content)] : []))
}

function idIn(result: string): string {
  return (JSON.parse(result) as { child_conversation_id: string }).child_conversation_id
}
