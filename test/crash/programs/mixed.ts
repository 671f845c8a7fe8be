import { agent, tool } from 'legate'
import { type CrashWorker, countEffect, crashWorker, workerRole } from 'legate/testing'
import { asker, driveLead, lead } from './lead.ts'
import { ANYTHING, allRounds, call, counted, QUICK, recorded, roundsOf, slowed, steppingModel, until } from './parts.ts'

/**
 * What goes on at the same time in an ordinary process: a tree with an approval, a talk that streams, a run that is
 * stopped. A worker with the role `help` begins nothing and answers nothing: it only works along.
 */
const chunks = Array.from({ length: 20 }, (_, at) => `word ${at} `)

const speaker = agent({ name: 'speaker', instructions: 'Speak.', model: slowed(steppingModel({ chunks }), 4) })

const hand = agent({
  name: 'hand',
  instructions: 'Work.',
  tools: { look: counted('look', 'pure', { lastsMs: 60_000 }), pay: counted('pay', 'effectful', { lastsMs: 10 }) },
  model: steppingModel({ calls: [call('look'), call('pay')] }),
})

const poll = tool({
  description: 'Asks others, and may not be repeated.',
  input: ANYTHING,
  effect: 'effectful',
  execute: async (_, { delegate, idempotencyKey }) => {
    await countEffect('poll', idempotencyKey)
    await delegate(asker, { topic: 'three' })
    return 'poll is done. '.repeat(6_000)
  },
})

const boss = agent({
  name: 'boss',
  instructions: 'Delegate.',
  budget: { wallMs: 100, concurrency: 2 },
  tools: { poll },
  subagents: [hand],
  model: steppingModel({
    calls: [
      call('call_hand', { message: 'a' }),
      call('poll'),
      call('call_hand', { message: 'b' }),
      call('call_hand', { message: 'c' }),
    ],
  }),
})

await crashWorker({
  options: { agents: [lead, asker, speaker, boss], engine: { ...QUICK, workers: 4 } },
  drive: async (worker) => {
    const { runtime, store } = worker
    const everything = () => allRounds(store, 'lead', 'talk', 'boss')
    if (workerRole() === 'help') await until(async () => (await everything()).length === 4 || undefined)
    else await begin(worker)
    await Promise.all((await everything()).map(async ({ id }) => (await runtime.attach(id)).result))
  },
})

async function begin(worker: CrashWorker): Promise<void> {
  const { runtime, store } = worker
  if ((await roundsOf(store, 'talk')).length === 0) await recorded(runtime.run(speaker, 'Hello.', { title: 'talk' }))
  const conversationId = (await roundsOf(store, 'talk'))[0]?.conversationId ?? ''
  if ((await roundsOf(store, 'talk')).length === 1) await recorded(runtime.run(speaker, 'Again.', { conversationId }))
  if ((await roundsOf(store, 'boss')).length === 0) await recorded(runtime.run(boss, 'Go.', { title: 'boss' }))
  await driveLead(worker)
}
