import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, type Id } from 'legate'
import { crashWorker } from 'legate/testing'
import { type TreeReader, treeWith } from '../../../src/core/graph/reader.ts'
import { allRounds, call, counted, QUICK, recorded, roundsOf, slowed, steppingModel, until } from './parts.ts'

/** Runs that are stopped: by a deadline, by a person with a tree of children at work, and by force. */
const LONG = { lastsMs: 60_000 }

const late = agent({
  name: 'late',
  instructions: 'Take your time.',
  budget: { wallMs: 80 },
  model: slowed(steppingModel({ chunks: ['Well', 'then'] }), 60_000),
})

const hand = agent({
  name: 'hand',
  instructions: 'Work.',
  tools: { look: counted('look', 'pure', LONG), pay: counted('pay', 'effectful', LONG) },
  model: steppingModel({ calls: [call('look'), call('pay')] }),
})

const boss = agent({
  name: 'boss',
  instructions: 'Delegate.',
  tools: { book: counted('book', 'idempotent', LONG) },
  subagents: [hand],
  model: steppingModel({
    calls: [call('call_hand', { message: 'a' }), call('call_hand', { message: 'b' }), call('book')],
  }),
})

const speaker = agent({ name: 'speaker', instructions: 'Speak.', model: steppingModel() })

await crashWorker({
  options: {
    agents: [late, boss, speaker],
    engine: QUICK,
    kinds: { stubborn: { execute: (_, { signal }) => answerLate(signal) } },
  },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'late')).length === 0) await recorded(runtime.run(late, 'Go.', { title: 'late' }))
    if ((await roundsOf(store, 'boss')).length === 0) await recorded(runtime.run(boss, 'Go.', { title: 'boss' }))
    for (const { id } of await roundsOf(store, 'boss')) {
      await until(async () => isAtWork(await treeWith(store, id), id) || undefined)
      await runtime.cancel(id, 'Enough.')
    }
    if ((await roundsOf(store, 'talk')).length === 0) await recorded(runtime.run(speaker, 'Hello.', { title: 'talk' }))
    for (const { id } of (await roundsOf(store, 'talk')).slice(0, 1)) await (await runtime.attach(id)).result
    if ((await roundsOf(store, 'talk')).length === 1) {
      const talk = await runtime.conversation((await roundsOf(store, 'talk'))[0]?.conversationId ?? '')
      await talk.mutate((graph) => graph.createNode({ kind: 'stubborn', effect: 'pure' }))
    }
    for (const { id } of await roundsOf(store, 'talk')) await runtime.cancel(id)
    const all = await allRounds(store, 'late', 'boss', 'talk')
    await Promise.all(all.map(async ({ id }) => (await runtime.attach(id)).result))
  },
})

/** Does not stop when it is asked to. However slow the store is, it cannot end before. */
async function answerLate(signal: AbortSignal): Promise<string> {
  if (!signal.aborted) await once(signal, 'abort')
  return sleep(500, 'too late')
}

/** Has every child of the run begun to use its tools, or is the run already over? */
function isAtWork(tree: TreeReader, runId: Id): boolean {
  if (tree.turn(runId)?.state === 'ended') return true
  const links = tree.linksOf(runId)
  return links.length === 2 && links.every(({ id }) => tree.nodesOf(id).some(({ kind }) => kind === 'task'))
}
