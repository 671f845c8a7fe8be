// LangGraph with its PostgresSaver: a graph that calls a compiled graph with checkpoints of its own, written before it goes on.

import { peer } from '../peers.mjs'

export async function open({ url, schema }) {
  const { StateGraph, Annotation, Send, START, END } = await peer('langgraph', '@langchain/langgraph')
  const { PostgresSaver } = await peer('langgraph', '@langchain/langgraph-checkpoint-postgres')
  const checkpointer = PostgresSaver.fromConnString(url, { schema })
  await checkpointer.setup()
  const State = Annotation.Root({
    messages: Annotation({ reducer: (before, added) => before.concat(added), default: () => [] }),
  })
  const sub = new StateGraph(State)
    .addNode('think', () => ({ messages: [{ role: 'assistant', content: 'done' }] }))
    .addEdge(START, 'think')
    .addEdge('think', END)
    .compile({ checkpointer: true })
  const host = new StateGraph(State)
    .addNode('host', ({ messages }) => {
      const isTold = messages.some(({ role }) => role === 'tool')
      return {
        messages: [
          { role: 'assistant', content: isTold ? 'finished' : '', calls: isTold ? 0 : Number(messages[0].content) },
        ],
      }
    })
    .addNode('sub', async (_, config) => {
      const { messages } = await sub.invoke({ messages: [{ role: 'user', content: 'work' }] }, config)
      return { messages: [{ role: 'tool', content: messages.at(-1).content }] }
    })
    .addEdge(START, 'host')
    .addConditionalEdges('host', ({ messages }) => {
      const { calls } = messages.at(-1)
      return calls === 0 ? END : Array.from({ length: calls }, () => new Send('sub', { messages: [] }))
    })
    .addEdge('sub', 'host')
    .compile({ checkpointer })
  let threads = 0
  const run = async (count) => {
    const config = { configurable: { thread_id: `${process.pid}-${threads++}` }, durability: 'sync' }
    const { messages } = await host.invoke({ messages: [{ role: 'user', content: count }] }, config)
    if (messages.at(-1).content !== 'finished') throw new Error('LangGraph gave another answer.')
  }
  return { delegate: () => run('1'), fanOut: () => run('100') }
}
