// Fills a store with many trees. One tree is really run; the others are its rows under other ids and owners, a commit each: to
// run a million nodes would take an hour.

import { agent, createRuntime, tool } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { scriptedModel } from 'legate/testing'

const CALLS = 7
/** A message, an answer with its calls, their results, and the last answer. */
export const NODES_OF_TREE = CALLS + 3

const PLAIN = { type: 'object', properties: {} }
const look = tool({ description: 'Looks.', input: PLAIN, effect: 'pure', execute: () => 'seen' })

export const clerk = agent({
  name: 'clerk',
  instructions: 'Help.',
  tools: { look },
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'All of it was seen.'
      : { calls: Array.from({ length: CALLS }, () => ({ name: 'look', input: {} })) },
  ),
})

/** Puts trees into the store, in turns for each owner. Gives a conversation of `owner-1`. */
export async function fillStore(store, { trees, owners }) {
  const text = JSON.stringify(await oneTree())
  let conversationId = ''
  for (let number = 0; number < trees; number++) {
    const owner = `owner-${number % owners}`
    const commit = JSON.parse(text.replaceAll(ID, (_, rest) => `${timeOf(number)}${rest}`).replaceAll('OWNER', owner))
    await store.commit(commit)
    if (owner === 'owner-1') conversationId = commit.rootId
  }
  return conversationId
}

/** The time of an id is all that tells one tree from another. */
const ID = /[0-9a-f]{8}-[0-9a-f]{4}(-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})/g

function timeOf(number) {
  const hex = (0x18900000000 + number).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}

/** All commits of a run as one. */
async function oneTree() {
  const store = memoryStore()
  const commits = []
  const commit = (one) => {
    commits.push(one)
    return store.commit(one)
  }
  const runtime = createRuntime({ store: { ...store, commit }, agents: [clerk] })
  const { status } = await runtime.run(clerk, 'Look at everything.', { owner: 'OWNER' }).result
  await runtime.close()
  if (status !== 'completed') throw new Error(`The tree to copy ended as ${status}.`)
  const ofTree = commits.filter(({ rootId }) => rootId !== null)
  const rows = (table) => {
    const newest = new Map(ofTree.flatMap((one) => one[table]).map((row) => [row.id, { ...row, version: 1 }]))
    return [...newest.values()]
  }
  const { plannedOn: _, ...first } = ofTree[0]
  return {
    ...first,
    conversations: rows('conversations'),
    turns: rows('turns'),
    nodes: rows('nodes'),
    links: rows('links'),
    edges: ofTree.flatMap(({ edges }) => edges),
    events: ofTree.flatMap(({ events }) => events),
    spent: ofTree.flatMap(({ spent }) => spent),
    wakes: [],
  }
}
