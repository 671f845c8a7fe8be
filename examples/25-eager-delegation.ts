// A planner writes a list of tasks. Each task starts its worker as soon as it is complete, while the planner is still writing
// the rest: the work is mostly done when the plan is.

import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { agent, createRuntime } from 'legate'
import type { Model } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { z } from 'zod'

const Task = z.object({ title: z.string(), hours: z.number().positive() })

const worker = agent({
  name: 'worker',
  instructions: 'Do the task you are given.',
  input: Task,
  model: scriptedModel(({ messages }) => `Done: ${JSON.parse(String(messages.at(-1)?.content)).title}.`),
})

const planner = agent({
  name: 'planner',
  instructions: 'Plan the move, task by task, and say at the end what to watch out for.',
  output: z.object({ tasks: z.array(Task), risks: z.string() }),
  eager: { 'tasks[*]': { agent: worker, concurrency: 2 } },
  model: slowly('{"tasks":[{"title":"Pack","hours":3},{"title":"Dri', 've","hours":5}],"risks":"The pi', 'ano."}'),
})

/** A real model goes here: it takes its time too. */
function slowly(...chunks: string[]): Model {
  const model = scriptedModel([{ chunks }])
  return {
    id: model.id,
    async *stream(request, options) {
      for await (const part of model.stream(request, options)) {
        await setTimeout(200)
        yield part
      }
    },
  }
}

const runtime = createRuntime()
const run = runtime.run(planner, 'We move to Bern on Saturday.')
for await (const event of run.events({ fields: true })) {
  if (event.type === 'delegation-start') console.log(`${event.agent} starts`)
  if (event.type === 'delegation-end') console.log(`${event.agent} has ${event.status}`)
  if (event.type === 'field' && event.field === 'risks') console.log('the plan is written')
}
const { output, delegations } = await run.result
await runtime.close()

assert.equal(output?.risks, 'The piano.')
assert.deepEqual(
  delegations.map(({ field, text }) => `${field} ${text}`),
  ['tasks[0] Done: Pack.', 'tasks[1] Done: Drive.'],
)
