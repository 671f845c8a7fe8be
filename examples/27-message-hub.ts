// Agents that hear one another: each has a conversation of its own, and what one of them says is put into those of all
// others with `observe`. Nobody is called by it: an agent answers when your code asks.

import assert from 'node:assert/strict'
import { type AnyAgent, agent, createRuntime, type Runtime } from 'legate'
import { scriptedModel } from 'legate/testing'

/** Opens a hub: everybody has heard the announcement, and `say` asks one of them, whom all others hear. */
async function hub(runtime: Runtime, announcement: string, members: readonly AnyAgent[]) {
  const begun = members.map(async (one) => {
    const { conversationId } = await runtime.run(one, announcement).result
    return [one.name, { one, conversationId }] as const
  })
  const rooms = new Map(await Promise.all(begun))
  return async (name: string, question: string) => {
    const room = rooms.get(name)
    if (room === undefined) throw new Error(`Nobody here is called ${name}.`)
    const { text } = await runtime.run(room.one, question, { conversationId: room.conversationId }).result
    for (const other of rooms.values()) {
      if (other === room) continue
      await (await runtime.conversation(other.conversationId)).observe(`${name}: ${text}`)
    }
    return text
  }
}

/** Stands in for a model: it says how many messages it has heard. */
const listener = (name: string) =>
  agent({
    name,
    instructions: 'You play with the others.',
    model: scriptedModel(({ messages }) => `I heard ${messages.filter(({ role }) => role === 'user').length}.`),
  })

const runtime = createRuntime()
const say = await hub(runtime, 'The game begins.', [listener('ann'), listener('bob'), listener('cid')])

const answers = [
  await say('ann', 'Ann?'),
  await say('bob', 'Bob?'),
  await say('cid', 'Cid?'),
  await say('ann', 'And now?'),
]
console.log(answers)
assert.deepEqual(answers, ['I heard 2.', 'I heard 3.', 'I heard 4.', 'I heard 5.'])
await runtime.close()
