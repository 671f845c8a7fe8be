import { agent, type Id, type Runtime } from 'legate'
import type { Message } from 'legate/models'
import { countEffect, crashWorker, scriptedModel } from 'legate/testing'
import { treeWith } from '../../../src/core/graph/reader.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { call, counted, QUICK, recorded, roundsOf, steppingModel, until } from './parts.ts'

/** Children that wait for their turn, a session that is gone on with, a call that is denied, a child that stays behind. */
const clerk = agent({ name: 'clerk', instructions: 'Note it.', model: steppingModel() })

const host = agent({
  name: 'host',
  instructions: 'Ask the clerks.',
  budget: { concurrency: 1, tokens: 1_000_000 },
  grant: { ask: ['tool:sign'] },
  tools: { sign: counted('sign', 'effectful') },
  subagents: [clerk],
  model: scriptedModel(async ({ messages, path }) => {
    await countEffect('model', path.join('/'))
    const results = messages.filter(({ role }) => role === 'tool')
    if (results.length === 0) return { calls: [call('sign'), ask('one'), ask('two'), ask('three')] }
    if (results.length > 4) return 'host is done.'
    const session_id = sessionIn(results)
    return { calls: [ask('four', { session_id }), ask('five', { session_id })] }
  }),
})

const keeper = agent({
  name: 'keeper',
  instructions: 'Stay.',
  tools: { look: counted('look', 'pure', { isOver: () => isLeft }) },
  model: steppingModel({ calls: [call('look')] }),
})

/** This process has told the host of the one that stays to leave: however slow the store is, the host does not end before. */
let isLeft = false

const quitter = agent({
  name: 'quitter',
  instructions: 'Leave.',
  subagents: { keep: { agent: keeper, onParentClose: 'abandon' } },
  model: steppingModel({ calls: [call('keep', { message: 'Keep it.' })] }),
})

/** The states of a call before a person is asked. */
const AT_WORK: readonly string[] = ['pending', 'running']

await crashWorker({
  options: { agents: [host, quitter], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'quitter')).length === 0)
      await recorded(runtime.run(quitter, 'Go.', { title: 'quitter' }))
    for (const { id } of await roundsOf(store, 'quitter')) {
      const link = await until(async () => (await treeWith(store, id)).linksOf(id)[0])
      await runtime.cancel(id, 'Leave it.')
      isLeft = true
      await Promise.all([(await runtime.attach(id)).result, (await runtime.attach(link.id)).result])
    }
    if ((await roundsOf(store, 'host')).length === 0) await recorded(runtime.run(host, 'Go.', { title: 'host' }))
    for (const { id } of await roundsOf(store, 'host')) {
      await denyAll(runtime, store, id)
      await (await runtime.attach(id)).result
    }
  },
})

function ask(message: string, more: { readonly session_id?: string } = {}) {
  return call('call_clerk', { message, ...more })
}

/** The session that the first clerk answered in. */
function sessionIn(results: readonly Message[]): string {
  const [text] = results.map(({ content }) => String(content)).filter((content) => content.startsWith('session_id: '))
  return text?.split('\n')[0]?.slice('session_id: '.length) ?? ''
}

/** Denies the call that awaits a person's word, once it does. */
async function denyAll(runtime: Runtime, store: Store, runId: Id): Promise<void> {
  const sign = await until(async () => {
    const nodes = (await treeWith(store, runId)).nodesOf(runId)
    return nodes.find(({ input, state }) => input.call?.name === 'sign' && !AT_WORK.includes(state))
  })
  if (sign.state === 'awaiting_approval') await runtime.answer(sign.id, { allow: false, reason: 'Not today.' })
}
