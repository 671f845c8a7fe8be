// node bench/eager.mjs [tasks] [ms per item] [ms per child]: a plan that is written slowly, a summary last. Once its items start
// their children when they are complete (`eager`), once when the plan is. Needs dist (npm run build). Fails unless the last
// child has ended before the other way would have started it.

import { agent, createRuntime } from 'legate'
import { z } from 'zod'

const [tasks = 8, itemMs = 250, childMs = 200] = process.argv.slice(2).map(Number)
const USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

const Task = z.object({ title: z.string() })
const Plan = z.object({ tasks: z.array(Task), summary: z.string() })

const planner = { name: 'planner', instructions: 'Plan.', output: Plan, model: saying(planPieces()) }
const worker = agent({
  name: 'worker',
  instructions: 'Do it.',
  input: Task,
  briefing: 'none',
  model: saying([[childMs, 'Done.']]),
})

// What is loaded once is loaded before.
await measure(
  agent({ ...planner, model: saying([[0, '{"tasks":[{"title":""}],"summary":""}']]), eager: { 'tasks[*]': worker } }),
  async () => undefined,
)

const eager = await measure(agent({ ...planner, eager: { 'tasks[*]': worker } }), async () => undefined)
const after = await measure(agent(planner), (runtime, { output }) =>
  Promise.all(output.tasks.map((task) => runtime.run(worker, task).result)),
)

console.log(`${tasks} tasks: ${itemMs} ms to write each, ${2 * itemMs} ms for the summary, ${childMs} ms to do each`)
console.log(`plan, then delegate: the plan ends after ${after.planned} ms, all is done after ${after.done} ms`)
console.log(`eager: the last child ends after ${eager.lastChild} ms, all is done after ${eager.done} ms`)
if (eager.lastChild >= after.planned) process.exitCode = 1
console.log(
  `the last child ends ${after.planned - eager.lastChild} ms before it would have started; ` +
    `the whole takes ${(eager.done / after.done).toFixed(2)}x of the time`,
)

/** When the plan, its last child and all of it were over, in milliseconds from the start. */
async function measure(agentOfPlan, delegate) {
  const runtime = createRuntime()
  const start = performance.now()
  const now = () => Math.round(performance.now() - start)
  const run = runtime.run(agentOfPlan, 'Plan it.')
  const ends = (async () => {
    let lastChild = 0
    for await (const { type } of run) if (type === 'delegation-end') lastChild = now()
    return lastChild
  })()
  const outcome = await run.result
  const planned = now()
  await delegate(runtime, outcome)
  const done = now()
  const lastChild = await ends
  await runtime.close()
  return { planned, lastChild, done }
}

/** Item by item, each after its time. */
function planPieces() {
  const items = Array.from({ length: tasks }, (_, at) => {
    const item = JSON.stringify({ title: `task ${at}` })
    return [itemMs, `${at === 0 ? '{"tasks":[' : ','}${item}`]
  })
  return [...items, [2 * itemMs, '],"summary":"That is all."}']]
}

function saying(pieces) {
  return {
    id: 'scripted/slow',
    async *stream() {
      for (const [ms, text] of pieces) {
        await new Promise((resolve) => setTimeout(resolve, ms))
        yield { type: 'text-delta', text }
      }
      yield { type: 'finish', reason: 'stop', usage: USAGE }
    },
  }
}
