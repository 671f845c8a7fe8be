import { agent } from 'legate'
import { countEffect, crashWorker, passPoint, scriptedModel, workerRole } from 'legate/testing'
import { call, QUICK, recorded, roundsOf, steppingModel } from './parts.ts'

// Many children at once. In the role `together` all of their models answer in one turn of the event loop.
const CHILDREN = 24
let asked = 0
let answer: () => void = () => undefined
const together = new Promise<void>((resolve) => {
  answer = resolve
})
if (workerRole() !== 'together') answer()

const member = agent({
  name: 'member',
  instructions: 'Work.',
  model: scriptedModel(async ({ path }) => {
    await countEffect('model', path.join('/'))
    passPoint('member:asked')
    if (++asked === CHILDREN) answer()
    await together
    return 'Done.'
  }),
})

const crew = agent({
  name: 'crew',
  instructions: 'Share.',
  subagents: [member],
  budget: { concurrency: CHILDREN },
  model: steppingModel({
    calls: Array.from({ length: CHILDREN }, (_, at) => call('call_member', { message: `part ${at}` })),
  }),
})

await crashWorker({
  options: { agents: [crew], engine: { ...QUICK, workers: 100 } },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'wide')).length === 0) await recorded(runtime.run(crew, 'Go.', { title: 'wide' }))
    for (const { id } of await roundsOf(store, 'wide')) await (await runtime.attach(id)).result
  },
})
