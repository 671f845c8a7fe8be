import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, tool } from 'legate'
import { recipeAgent } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime } from '../support/reading.ts'
import { tempFolder } from '../support/temp-folder.ts'

const look = tool({ description: 'Look', input: { type: 'object' }, execute: () => 'seen' })

function expert() {
  return agent({
    name: 'expert',
    description: 'Knows protocols.',
    instructions: 'Secret words.',
    model: scriptedModel(() => '{"facts":[]}', 'own/expert'),
    input: z.object({ topic: z.string() }),
    output: z.object({ facts: z.array(z.string()) }),
    budget: { modelCalls: 7, usd: 2 },
  })
}

test('agents() lists the agents that a runtime was given, by name, with their schemas and limits', async () => {
  const one = expert()
  const host = agent({
    name: 'aaa',
    instructions: '',
    model: scriptedModel(() => 'x'),
    tools: { look },
    subagents: { ask: one, made: () => expert() },
  })
  const runtime = openRuntime({ agents: [one, host], budget: { usd: 5, toolCalls: 3 } })

  const [first, second, ...others] = await runtime.agents()

  expect(others).toEqual([])
  expect(first).toMatchObject({
    name: 'aaa',
    input: null,
    output: null,
    tools: ['look'],
    subagents: ['expert', 'made'],
  })
  expect(second).toMatchObject({ name: 'expert', description: 'Knows protocols.', source: 'code', tools: [] })
  expect(second?.input).toMatchObject({ type: 'object', required: ['topic'] })
  expect(second?.output).toMatchObject({ type: 'object', required: ['facts'] })
  expect(second?.model).toBe('own/expert')
  expect(second?.budget).toMatchObject({ modelCalls: 7, usd: 2, tokens: null, toolCalls: 3, children: 100 })
  expect(JSON.stringify([first, second])).not.toContain('Secret words')
})

test('agents() has those that were started, and findAgent gives the one that runs', async () => {
  const runtime = openRuntime()
  expect(await runtime.agents()).toEqual([])
  const greeter = agent({ name: 'greeter', instructions: '', model: scriptedModel(() => 'hello') })
  await runtime.run(greeter, 'go').result

  expect((await runtime.agents()).map(({ name }) => name)).toEqual(['greeter'])
  const found = runtime.findAgent('greeter')
  expect(found).toBe(greeter)
  expect(runtime.findAgent('nobody')).toBeUndefined()
  expect(runtime.findAgent('__proto__')).toBeUndefined()
  const newer = agent({ name: 'greeter', instructions: 'New.', model: scriptedModel(() => 'hi') })
  await runtime.run(newer, 'go').result
  expect(runtime.findAgent('greeter')).toBe(newer)
  expect(await runtime.agents()).toHaveLength(1)
})

test('a run with tools of its own does not replace the agent of that name', async () => {
  const runtime = openRuntime()
  const greeter = agent({ name: 'greeter', instructions: '', model: scriptedModel(() => 'hello') })
  await runtime.run(greeter, 'go', { tools: { look } }).result

  expect(runtime.findAgent('greeter')).toBe(greeter)
  expect((await runtime.agents())[0]?.tools).toEqual([])
})

test('an agent of a file says so, and can be started by its name', async () => {
  const folder = tempFolder()
  mkdirSync(folder, { recursive: true })
  const file = path.join(folder, 'reviewer.md')
  writeFileSync(file, '---\nname: reviewer\ndescription: Reviews.\n---\nReview it.\n')
  const reviewer = await recipeAgent(file)
  const runtime = openRuntime({ agents: [reviewer], model: scriptedModel(() => 'fine') })

  expect(await runtime.agents()).toMatchObject([{ name: 'reviewer', description: 'Reviews.', source: 'file' }])
  const found = runtime.findAgent('reviewer')
  expect(found).toBe(reviewer)
  if (found === undefined) throw new Error('not found')
  expect(await runtime.run(found, 'go' as never).result).toMatchObject({ status: 'completed', text: 'fine' })
})
