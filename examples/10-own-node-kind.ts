// A node kind of your own: work that is neither a model's answer nor a tool call, put into the graph by your code. It is
// claimed, recorded and recovered like every other node, and may start agents as its children.

import assert from 'node:assert/strict'
import { agent, createRuntime, type RunOutcome } from 'legate'
import { scriptedModel } from 'legate/testing'

const critic = agent({
  name: 'critic',
  instructions: 'You judge a text in one word.',
  // A real model goes here.
  model: scriptedModel(({ messages }) => (String(messages.at(-1)?.content).length > 20 ? 'long' : 'short')),
})

const author = agent({ name: 'author', instructions: 'You write.', model: scriptedModel(['A few words.']) })

const runtime = createRuntime({
  agents: [author],
  kinds: {
    review: {
      leaf: true, // may be the last node of its turn; else the agent would be asked for a closing answer
      execute: async (node, { delegate }) => {
        const { text } = (await delegate(critic, String(node.input.value))) as RunOutcome
        return { verdict: text }
      },
    },
    archive: { leaf: true, execute: (node, { graph }) => `filed after ${graph.edgesTo(node.id).length} review` },
  },
})

const { conversationId, text } = await runtime.run(author, 'Write something.').result
const conversation = await runtime.conversation(conversationId)

// One turn more in the author's conversation: a review, and an archive that runs only when the review has finished.
const runId = await conversation.mutate((graph) => {
  const review = graph.createNode({ kind: 'review', input: { value: text }, effect: 'idempotent' })
  const archive = graph.createNode({ kind: 'archive', effect: 'pure' })
  graph.createEdge(review.id, archive.id, 'dependency')
  return graph.runId
})

const run = await runtime.attach(runId)
const outcome = await run.result
const tree = await runtime.store.tree(conversationId)
const [review, archive] = tree.nodesOf(runId)
await runtime.close()

console.log(`review: ${JSON.stringify(review?.output.value)}, archive: ${archive?.output.content}`)
assert.equal(outcome.status, 'completed')
assert.equal(outcome.children, 1)
assert.deepEqual(review?.output.value, { verdict: 'short' })
