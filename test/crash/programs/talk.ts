import { agent, ModelError } from 'legate'
import type { Model } from 'legate/models'
import { countEffect, crashWorker } from 'legate/testing'
import { QUICK, recorded, roundsOf, slowed, steppingModel } from './parts.ts'

/** Several rounds of one conversation: a failing and a streaming model, a queued round, new instructions, nodes by hand. */
const quick = steppingModel({ chunks: ['One', ' two', ' three.'] })
const slow = slowed(quick, 100)

let hasFailed = false

/** Fails once in every process, and streams slowly in the first round. */
const model: Model = {
  id: quick.id,
  async *stream(request, options) {
    if (!hasFailed) {
      hasFailed = true
      await countEffect('model', request.path.join('/'))
      throw Object.assign(new ModelError('model', 'overloaded', { isRetryable: true }), { retryAfterMs: 10 })
    }
    const isFirst = request.messages.every(({ role }) => role !== 'assistant')
    yield* (isFirst ? slow : quick).stream(request, options)
  },
}

const first = agent({ name: 'speaker', instructions: 'Speak.', model })
const second = agent({ name: 'speaker', instructions: 'Speak up.', model: steppingModel() })

await crashWorker({
  options: {
    agents: [first],
    engine: QUICK,
    kinds: { check: { execute: () => 'checked' } },
  },
  drive: async ({ runtime, store }) => {
    const rounds = () => roundsOf(store, 'talk')
    const allEnd = async () => Promise.all((await rounds()).map(async ({ id }) => (await runtime.attach(id)).result))
    if ((await rounds()).length === 0) await recorded(runtime.run(first, 'One.', { title: 'talk' }))
    const conversationId = (await rounds())[0]?.conversationId ?? ''
    if ((await rounds()).length === 1) await recorded(runtime.run(first, 'Two.', { conversationId }))
    await allEnd()
    if ((await rounds()).length === 2) await recorded(runtime.run(second, 'Three.', { conversationId }))
    await allEnd()
    if ((await rounds()).length === 3) {
      const talk = await runtime.conversation(conversationId)
      await talk.mutate((graph) => {
        const asked = graph.createNode({ kind: 'user_message', content: 'Check it.' })
        const check = graph.createNode({ kind: 'check', effect: 'pure' })
        graph.createEdge(asked.id, check.id, 'sequence')
      })
    }
    await allEnd()
  },
})
