import { expect, test } from 'vitest'
import { loadPromptText } from '../../../src/core/prompt/file/load-text.ts'
import { testGrowth } from '../../support/growth.ts'
import { watchWork } from '../../support/pace.ts'
import { JSON_TOKENS, YAML } from './tokens.ts'

testGrowth('a prompt file', { read: readPrompt, tokens: YAML, most: 1_000_000 })
testGrowth('a prompt file in JSON', { read: readJsonPrompt, tokens: JSON_TOKENS, most: 1_000_000 })
testGrowth('a list in JSON', {
  read: readJsonPrompt,
  tokens: ['1,', '"a",', '{"a":1},', '[],', ' ', '/* */', '// \n'],
  most: 1_000_000,
  around: (body) => `{ "input": "a", "info": [${body.slice(0, body.lastIndexOf(',') + 1)}] }`,
})
testGrowth('the history of a prompt', {
  read: readJsonPrompt,
  tokens: ['"a",', '{"content":"a"},', '{"role":"x","content":["a"]},', '"\\n[user]: :::",'],
  most: 1_000_000,
  around: (body) => `{ "input": "a", "chat_history": [${body.slice(0, body.lastIndexOf(',') + 1)}] }`,
})
testGrowth('texts of a prompt', {
  read: readJsonPrompt,
  tokens: [': ', ':', '\\n', ' ', '[INPUT]:\\n', '$', '{', '}', '${'.concat('a}'), 'a', '\\t', '"', 'list[', '|'],
  most: 1_000_000,
  around: (body) => JSON.stringify({ input: body, info: { a: body }, output: body, own: body }),
})

test.each(['yaml', 'json'] as const)('60,000 keys in %s give a typed error within a second', async (format) => {
  const keys = Array.from({ length: 60_000 }, (_, index) => `"k${index}": 1`)
  const text = format === 'json' ? `{${keys.join(',')}}` : keys.join('\n')
  const work = watchWork()

  await expect(loadPromptText(text, { format })).rejects.toMatchObject({ code: 'recipe' })
  expect(work()).toBeLessThan(1_000)
})

test('1,000 keys are a prompt', async () => {
  const keys = Array.from({ length: 1_000 }, (_, index) => `k${index}: 1\n`)

  expect((await loadPromptText(keys.join(''))).get('k999')).toBe(1)
  await expect(loadPromptText(`${keys.join('')}more: 1`)).rejects.toThrow(/1001:1: there are more than 1000 keys/)
  await expect(loadPromptText(`.agent:\n  ${keys.join('  ')}  more: 1`)).rejects.toThrow(/more than 1000 keys/)
})

async function readPrompt(text: string): Promise<void> {
  const prompt = await loadPromptText(text, { mappings: { a: 'b' } })
  prompt.toText()
  prompt.toRequest()
  prompt.toYamlPrompt()
}

async function readJsonPrompt(text: string): Promise<void> {
  const prompt = await loadPromptText(text, { format: 'json', mappings: { a: 'b' } })
  prompt.toText()
  prompt.toRequest()
  prompt.toYamlPrompt()
}
