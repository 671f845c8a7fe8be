import { agent } from 'legate'
import type { Link } from 'legate/rows'
import { crashWorker, tellTest, workerRole } from 'legate/testing'
import { type TreeReader, treeWith } from '../../../src/core/graph/reader.ts'
import { allowAll, call, counted, recorded, roundsOf, slowed, steppingModel, until } from './parts.ts'

/**
 * One tree for several processes. Roles: `start` begins it, `help` waits for it and joins, `cancel` only cancels it and knows no
 * agents, `wait` resumes and never ends, `answer` says the word that is waited for.
 */
const member = agent({
  name: 'member',
  instructions: 'Work.',
  tools: { look: counted('look', 'pure') },
  model: slowed(steppingModel({ calls: [call('look')], chunks: ['Let', ' me', ' see.'] }), 25),
})

const crew = agent({
  name: 'crew',
  instructions: 'Share.',
  subagents: [member],
  model: steppingModel({ calls: Array.from({ length: 8 }, (_, at) => call('call_member', { message: `part ${at}` })) }),
})

const sleeper = agent({
  name: 'sleeper',
  instructions: 'Work long.',
  tools: { pay: counted('pay', 'effectful', { lastsMs: 60_000 }), look: counted('look', 'pure', { lastsMs: 60_000 }) },
  model: steppingModel({ calls: [call('pay'), call('look')] }),
})

const chief = agent({
  name: 'chief',
  instructions: 'Pass it on.',
  subagents: [sleeper],
  model: steppingModel({
    calls: [call('call_sleeper', { message: 'a' }), call('call_sleeper', { message: 'b' })],
  }),
})

const dormant = agent({
  name: 'dormant',
  instructions: 'Delegate a lot.',
  subagents: [chief],
  model: steppingModel({ calls: [call('call_chief', { message: 'a' }), call('call_chief', { message: 'b' })] }),
})

const careful = agent({
  name: 'careful',
  instructions: 'Ask first.',
  grant: { ask: ['tool:sign'] },
  tools: { sign: counted('sign', 'effectful') },
  model: steppingModel({ calls: [call('sign')] }),
})

const patient = agent({
  name: 'patient',
  instructions: 'Wait.',
  subagents: [careful],
  model: steppingModel({ calls: [call('call_careful', { message: 'Sign it.' })] }),
})

const [title = '', role = ''] = workerRole().split('/')
const first = { crew, dormant, patient }[title] ?? crew

await crashWorker({
  options: { agents: role === 'cancel' ? [] : [first], engine: { sweepMs: 1_000, graceMs: 100, workers: 3 } },
  drive: async ({ runtime, store }) => {
    if (role === 'help') await until(async () => (await roundsOf(store, title))[0])
    if ((await roundsOf(store, title)).length === 0) await recorded(runtime.run(first, 'Go.', { title }))
    for (const { id } of await roundsOf(store, title)) {
      const run = await runtime.attach(id)
      if (role === 'cancel') await runtime.cancel(id, 'Enough.')
      if (role === 'wait') {
        await until(async () => {
          const tree = await treeWith(store, id)
          return tree.linksOf(id).find((link) => isAwaited(tree, link))
        })
        tellTest('waiting')
      }
      if (role === 'answer') await allowAll(runtime, run)
      await run.result
    }
  },
})

function isAwaited(tree: TreeReader, child: Link): boolean {
  return tree.openNodes(child.id).some(({ state }) => state === 'awaiting_approval')
}
