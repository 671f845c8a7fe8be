import { agent, type Id, tool } from 'legate'
import { countEffect, crashWorker, passPoint } from 'legate/testing'
import { runProcess } from 'legate/tools'
import { type TreeReader, treeWith } from '../../../src/core/graph/reader.ts'
import { ANYTHING, call, counted, QUICK, recorded, roundsOf, steppingModel, until } from './parts.ts'

/** A tree that is cancelled at work: children that run programs, wait, are queued, and one that goes on all the same. */
const LONG = { lastsMs: 60_000 }

/** A program and its child, with the folder of the case in their command lines: none may be left. */
const shell = tool({
  description: 'Runs a program.',
  input: ANYTHING,
  effect: 'idempotent',
  execute: async (_, { idempotencyKey, signal }) => {
    passPoint('shell:before')
    await countEffect('shell', idempotencyKey)
    const mark = process.argv[2] ?? ''
    await runProcess('sh', ['-c', 'trap "" TERM; sleep 60 & wait; : "$1"', 'sh', mark], { signal, killAfterMs: 50 })
  },
})

const hand = agent({
  name: 'hand',
  instructions: 'Work.',
  tools: { shell, look: counted('look', 'pure', LONG) },
  model: steppingModel({ text: 'Begun.', calls: [call('shell'), call('look')] }),
})

const mid = agent({
  name: 'mid',
  instructions: 'Delegate.',
  subagents: [hand],
  model: steppingModel({ calls: [call('call_hand', { message: 'a' })] }),
})

const loner = agent({
  name: 'loner',
  instructions: 'Go on.',
  tools: { book: counted('book', 'idempotent', { lastsMs: 30 }) },
  model: steppingModel({ calls: [call('book')] }),
})

const boss = agent({
  name: 'boss',
  instructions: 'Delegate.',
  subagents: {
    call_mid: { agent: mid, concurrency: 1 },
    call_loner: { agent: loner, onParentClose: 'abandon' },
  },
  budget: { treeConcurrency: 3 },
  model: steppingModel({
    calls: [
      call('call_mid', { message: 'a' }),
      call('call_mid', { message: 'b' }),
      call('call_loner', { message: 'c' }),
    ],
  }),
})

await crashWorker({
  options: { agents: [boss], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'boss')).length === 0) await recorded(runtime.run(boss, 'Go.', { title: 'boss' }))
    for (const { id } of await roundsOf(store, 'boss')) {
      await until(async () => isAtWork(await treeWith(store, id), id) || undefined)
      await runtime.cancel(id, 'Enough.')
      await (await runtime.attach(id)).result
      const tree = await treeWith(store, id)
      await Promise.all(tree.linksOf(id).map(async (link) => (await runtime.attach(link.id)).result))
    }
  },
})

/** Runs the leaf its tools, or is the run already over? */
function isAtWork(tree: TreeReader, runId: Id): boolean {
  if (tree.turn(runId)?.state === 'ended') return true
  const links = tree.linksOf(runId)
  if (links.length < 3) return false
  const leaves = links.flatMap(({ id }) => tree.linksOf(id))
  return leaves.some(({ id }) => tree.nodesOf(id).filter(({ kind }) => kind === 'task').length === 2)
}
