import { setTimeout as sleep } from 'node:timers/promises'
import { agent, type Outcome } from 'legate'
import { crashWorker, tellTest, workerRole } from 'legate/testing'
import { QUICK, steppingModel } from './parts.ts'

/** Starts the same requests under the same keys as every other worker, from the same moment on: `<milliseconds>/<how many>`. */
const clerk = agent({ name: 'clerk', instructions: 'Sell.', model: steppingModel() })
const [at = '', count = ''] = workerRole().split('/')

await crashWorker({
  options: { agents: [clerk], engine: QUICK },
  drive: async ({ runtime }) => {
    await sleep(Math.max(0, Number(at) - Date.now()))
    const outcomes: Outcome[] = []
    for (let n = 0; n < Number(count); n++) {
      const start = { key: `order ${n}`, owner: 'ann', ...(n % 2 === 0 ? {} : { conversationKey: 'chat' }) }
      outcomes.push(await runtime.run(clerk, `order ${n}`, start).result)
    }
    tellTest(JSON.stringify(outcomes.map(({ runId, text }) => [runId, text])))
  },
})
