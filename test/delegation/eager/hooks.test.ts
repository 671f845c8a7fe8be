import { agent } from 'legate'
import type { HookedCall } from 'legate/hooks'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime } from '../../support/reading.ts'

const Task = z.object({ title: z.string() })

test('hooks decide on items of a plan as on calls: one is changed, one refused, one answered, one left as it is', async () => {
  const done: string[] = []
  const worker = agent({
    name: 'worker',
    instructions: '',
    input: Task,
    model: scriptedModel(({ messages }) => {
      done.push(String(messages.findLast(({ role }) => role === 'user')?.content))
      return 'done'
    }),
  })
  const seen: HookedCall[] = []
  const titles = ['change', 'refuse', 'answer', 'keep']
  const lead = agent({
    name: 'lead',
    instructions: '',
    output: z.object({ tasks: z.array(Task) }),
    eager: { 'tasks[*]': worker },
    model: scriptedModel([JSON.stringify({ tasks: titles.map((title) => ({ title })) })]),
    hooks: {
      beforeTool: (call) => {
        seen.push(call)
        const { title } = call.input as { title: string }
        if (title === 'refuse') return { refuse: 'not today' }
        if (title === 'answer') return { answer: 'known already' }
        return title === 'change' ? { input: { title: 'changed' } } : undefined
      },
    },
  })
  const outcome = await openRuntime().run(lead, 'go').result

  expect(outcome.delegations.map(({ status, error, text }) => `${status} ${error?.message ?? text}`)).toEqual([
    'completed done',
    'denied Refused: not today',
    'denied known already',
    'completed done',
  ])
  expect(done.toSorted()).toEqual(['{"title":"changed"}', '{"title":"keep"}'])
  expect(seen.map(({ tool }) => tool)).toEqual(Array(4).fill('tasks[*]'))
  expect(outcome.output).toEqual({ tasks: titles.map((title) => ({ title })) })
})
