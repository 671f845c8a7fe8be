import { type AnyAgent, agent } from 'legate'
import { generalWorker } from 'legate/background'
import { checkSubagentContract, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

const nested = z.object({
  topic: z.string().min(3),
  kind: z.enum(['short', 'long']),
  range: z.object({ from: z.number().min(5), to: z.number().optional() }),
  tags: z.array(z.string()).min(2),
  either: z.union([z.literal('a'), z.number()]),
  note: z.string().nullable(),
  depth: z.int().default(3),
})

describe('checkSubagentContract', () => {
  test.each<[string, AnyAgent]>([
    ['the general worker', generalWorker()],
    ['a typed agent', agent({ name: 'typed', instructions: '', input: nested })],
    [
      'one with an output',
      agent({ name: 'out', instructions: '', input: nested, output: z.object({ n: z.number() }) }),
    ],
    ['one without input', agent({ name: 'plain', instructions: '' })],
    ['a JSON Schema', agent({ name: 'raw', instructions: '', input: { type: 'object', properties: { a: {} } } })],
    [
      'one that may use only its own model',
      agent({
        name: 'bound',
        instructions: '',
        model: scriptedModel([], 'own/model'),
        grant: { use: ['model:own/*'] },
        input: nested,
      }),
    ],
  ])('holds for %s', async (_name, given) => {
    await expect(checkSubagentContract(given)).resolves.toBeUndefined()
  })

  test('calls neither the agent’s model nor its tools', async () => {
    const model = scriptedModel(() => {
      throw new Error('the model was called')
    })
    const own = agent({ name: 'own', instructions: '', model, input: nested })

    await checkSubagentContract(own)

    expect(model.requests).toEqual([])
  })

  test('asks for an input where none can be made up, and takes it', async () => {
    const dated = agent({ name: 'dated', instructions: '', input: z.object({ at: z.iso.date() }) })

    await expect(checkSubagentContract(dated)).rejects.toThrow(/give one, checkSubagentContract\(agent, \{ input \}\)/)
    await expect(checkSubagentContract(dated, { input: { at: '2030-01-02' } })).resolves.toBeUndefined()
  })

  test('says all that is wrong: an agent that takes nothing cannot be called', async () => {
    const closed = agent({
      name: 'closed',
      instructions: '',
      input: z.object({ a: z.string() }).refine(() => false, 'never'),
    })

    await expect(checkSubagentContract(closed)).rejects.toThrow(
      /"closed" breaks the contract of a subagent:\n- a good call made 0 children/,
    )
  })

  test('says what is wrong: one that is not allowed to use its model', async () => {
    const denied = agent({ name: 'denied', instructions: '', input: nested, grant: { deny: ['model:*'] } })

    await expect(checkSubagentContract(denied)).rejects.toThrow(/- a good call: it ended denied, not completed/)
  })
})
