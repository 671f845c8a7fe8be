import { agent, createRuntime } from 'legate'
import { expect, test } from 'vitest'
import { scriptedModel } from './scripted-model.ts'

test('a scripted model keeps every request, and says when turns of its script are left', async () => {
  const model = scriptedModel(['one', 'two'])
  const who = agent({ name: 'who', instructions: '', model })
  await using runtime = createRuntime()
  await runtime.run(who, 'first').result

  expect(() => model.assertComplete()).toThrow()
  await runtime.run(who, 'second').result
  expect(() => model.assertComplete()).not.toThrow()
  expect(model.requests.map(({ messages }) => messages.at(-1)?.content)).toEqual(['first', 'second'])
})

test('a script that gives nothing says so', async () => {
  const model = scriptedModel(() => undefined as never)
  await using runtime = createRuntime()

  expect((await runtime.run(agent({ name: 'who', instructions: '', model }), 'go').result).error?.message).toContain(
    'The script of scripted/model gave no answer to call 1: return a text or an object.',
  )
})
