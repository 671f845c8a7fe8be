import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { validateDefinition } from 'legate/recipe'
import { expect, test } from 'vitest'
import { readSource } from '../../../src/recipes/recipe/recipe-source.ts'
import { NoticeReport } from '../../../src/recipes/text/notice.ts'
import { testGrowth } from '../../support/growth.ts'
import { watchWork } from '../../support/pace.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEMPLATE, YAML } from './tokens.ts'

const MOST = 500_000

testGrowth('a recipe', { read, tokens: [...YAML, '{{ a }}', '{% if a %}', '{'], most: MOST })
testGrowth('a template in a recipe', { read, tokens: TEMPLATE, most: MOST, around: inPrompt })
testGrowth('a template around keys', {
  read,
  tokens: TEMPLATE,
  most: MOST,
  around: (body) => `{% if a %}\na: 1\n{% endif %}\n${inPrompt(body)}`,
})
testGrowth('many templates in a recipe', {
  read,
  tokens: ['- "{{ a }}"\n', '- "{% set b = 1 %}"\n', '- "{% set b = 1 %}{{ a.c }}"\n', '- "{{ a b }}"\n'],
  most: MOST,
  around: (body) => body.slice(0, body.lastIndexOf('\n') + 1),
})

test.each([
  ['500 KB of {', '{'.repeat(499_000)],
  ['32 KB of {', '{'.repeat(32_000)],
  ['200 KB of a:a:', 'a:'.repeat(100_000)],
  ['500 KB of {{', `x: ${'{{ '.repeat(160_000)}`],
  ['500 KB of unclosed tags and comments', `x: |\n  ${'{% {# '.repeat(80_000)}`],
])('%s in a file are refused within a second', async (_, text) => {
  const file = path.join(tempFolder(), 'recipe.yaml')
  await writeFile(file, text)
  const work = watchWork()

  const { notices } = await validateDefinition(file)

  expect(notices[0]).toMatchObject({ level: 'error' })
  expect(work()).toBeLessThan(1_000)
})

test('4,000 values for each of 10,000 texts are rendered in the thread with the limit', async () => {
  const text = `x:\n${'- "{{ v1 }}"\n'.repeat(10_000)}`
  const values = Object.fromEntries(Array.from({ length: 4_000 }, (_, index) => [`v${index}`, 'a']))
  const source = await readSource(text, { file: '/nowhere/recipe.yaml' }, new NoticeReport('recipe.yaml', false))

  await expect(source.render(values)).rejects.toThrow(/did not end within 400 ms/)
})

test('a recipe has at most 20,000 marks, and 1 MB of included files', async () => {
  const folder = tempFolder()
  const read = (text: string) =>
    readSource(text, { file: path.join(folder, 'recipe.yaml') }, new NoticeReport('recipe.yaml', false))
  for (const name of ['a', 'b', 'c']) await writeFile(path.join(folder, name), 'a'.repeat(400_000))
  const marks = `x: "${'{{ a }}'.repeat(20_000)}"\n`

  await expect(read(marks)).resolves.toBeDefined()
  await expect(read(`${marks}y: "{{ a }}"`)).rejects.toThrow(/recipe.yaml:2: more than 20000 template marks/)
  await expect(read('x: \'{% include "a" %}{% include "b" %}\'')).resolves.toBeDefined()
  await expect(read('x: \'{% include "a" %}{% include "b" %}{% include "c" %}\'')).rejects.toThrow(
    /recipe.yaml:1: the included files have more than 1 MB together/,
  )
})

test.each([
  ['minus signs', '-'],
  ['words', 'not '],
])('31,000 %s in an expression do not break the engine for the next recipe', async (_, sign) => {
  await read(`x: "{{ ${sign.repeat(31_000)}a }}"`).catch((error) => expect(error).toMatchObject({ code: 'recipe' }))

  await expect(read('x: "{% if a == 1 %}{{ a | upper }}{% endif %}"')).resolves.toBeUndefined()
})

async function read(text: string): Promise<void> {
  await readSource(text, { file: '/nowhere/recipe.yaml' }, new NoticeReport('recipe.yaml', false))
}

function inPrompt(body: string): string {
  return `title: x\ndescription: y\nprompt: |\n  ${body.replaceAll('\n', '\n  ')}`
}
