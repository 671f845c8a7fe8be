import { agent } from 'legate'
import { countEffect, crashWorker, scriptedModel } from 'legate/testing'
import { call, counted, QUICK, roundsOf, stepping } from './parts.ts'

/** A host that goes on with one session of its expert, in three rounds, several messages at once in the last. */
const expert = agent({
  name: 'expert',
  instructions: 'Know.',
  tools: { look: counted('look', 'pure') },
  model: scriptedModel(stepping({ calls: [call('look')] })),
})

const host = agent({
  name: 'host',
  instructions: 'Ask.',
  subagents: { ask: expert },
  model: scriptedModel(async ({ messages, path }) => {
    await countEffect('model', path.join('/'))
    const usage = { inputTokens: 7, outputTokens: 3 }
    if (messages.at(-1)?.role === 'tool') return { usage, text: 'Asked.' }
    const known = messages.findLast(
      ({ role, content }) => role === 'tool' && String(content).startsWith('session_id: '),
    )
    const session_id = /session_id: (\S+)/.exec(String(known?.content))?.[1] ?? ''
    const asked = messages.at(-1)?.content === 'Three.' ? ['b', 'c', 'd'] : ['a']
    return { usage, calls: asked.map((message) => call('ask', { message, session_id })) }
  }),
})

await crashWorker({
  options: { agents: [host], engine: QUICK },
  drive: async ({ runtime, store }) => {
    for (const [at, text] of ['One.', 'Two.', 'Three.'].entries()) {
      const known = await roundsOf(store, 'sessions')
      const turn = known[at]
      const options = known[0] === undefined ? { title: 'sessions' } : { conversationId: known[0].conversationId }
      await (turn === undefined ? runtime.run(host, text, options) : await runtime.attach(turn.id)).result
    }
  },
})
