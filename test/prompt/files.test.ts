// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of prompts are written like this

import { execFileSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent } from 'legate'
import { loadJsonPrompt, loadYamlPrompt } from 'legate/compat'
import { field, loadPromptFile, loadPromptText, type Prompt, type PromptAliases, prompt } from 'legate/prompt'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { RecipeError } from '../../src/core/base/error.ts'
import { tempFolder } from '../support/temp-folder.ts'

const folder = tempFolder(afterAll)

describe('what a file says', () => {
  test('every key lands in its layer', async () => {
    const made = await loadYamlPrompt(`
.agent:
  system: You are brief.
  own: kept
.request:
  instruct: Reply.
$info: { today: Monday }
input: Hello
extra: more
`)

    expect(layer(made, 'agent')).toEqual({ system: 'You are brief.', own: 'kept', info: { today: 'Monday' } })
    expect(layer(made, 'request')).toEqual({ instruct: 'Reply.', input: 'Hello', extra: 'more' })
  })

  test('a text for .agent is its system, one for .request its input', async () => {
    const made = await loadJsonPrompt('{ ".agent": "You are brief.", ".request": ["a", 1] }')

    expect(made.get('system', 'agent')).toBe('You are brief.')
    expect(made.get('input', 'request')).toEqual(['a', 1])
  })

  test('a file is said on top of what a prompt says already', async () => {
    const made = await loadYamlPrompt('info:\n  b: 2\n', { onto: prompt({ system: 'S' }).info({ a: 1 }) })

    expect(made.get('system')).toBe('S')
    expect(made.get('info')).toEqual({ a: 1, b: 2 })
  })

  test('a heading with nothing under it says nothing', async () => {
    const made = await loadYamlPrompt('.agent:\n.request:\n.alias:\ninput: x\n', { promptKeyPath: '' })

    expect([layer(made, 'agent'), layer(made, 'request')]).toEqual([{}, { input: 'x' }])
  })

  test('every way to describe an output gives the schema that code gives', async () => {
    const code = prompt().output({
      n: field('int', 'how many'),
      tags: field([field('str', 'one tag')], 'all tags'),
      deep: { ok: 'bool', why: field(null, 'reason') },
      both: field({ a: 'str' }, 'an object'),
    })
    const dollars = await loadYamlPrompt(`
output:
  n: { $type: int, $desc: how many }
  tags:
    $type:
      - { $type: str, $desc: one tag }
    $desc: all tags
  deep:
    ok: bool
    why: { $desc: reason }
  both:
    $type: { a: str }
    $desc: an object
`)
    const dots = await loadJsonPrompt(`{ output: {
      n: { ".type": "int", ".desc": "how many", $type: "str", $desc: "not this" },
      tags: { ".type": [{ ".type": "str", ".desc": "one tag" }], ".desc": "all tags" },
      deep: { ok: { $type: "bool" }, why: { ".desc": "reason" } },
      both: { $type: { a: "str" }, ".desc": "an object" },
    } }`)

    for (const made of [dollars, dots]) {
      expect(made.get('output')).toEqual(code.get('output'))
      expect(made.toText()).toBe(code.toText())
      expect(made.toRequest().outputSchema).toEqual(code.toRequest().outputSchema)
    }
  })

  test('mappings fill keys, texts and arguments, and keep types', async () => {
    const text = `
$\${slot}: \${value}
\${slot}_2: say \${value}
.alias:
  rule:
    prompt: \${rule}
    always: \${flag}
`
    const mappings = { slot: 'note', value: [1, 2], rule: { be: 'kind' }, flag: true }
    const made = await loadYamlPrompt(text, { mappings })

    expect(made.get('note', 'agent')).toEqual([1, 2])
    expect(made.get('note_2', 'request')).toBe('say [1,2]')
    expect(made.get('system', 'agent')).toEqual({ rule: { be: 'kind' } })
  })

  test('a mapping cannot make a call or an agent’s word of a key', async () => {
    const mappings = { key: '.alias', other: '$system', whole: '.agent' }
    const made = await loadYamlPrompt('${key}: { rule: x }\n"${other}": y\n"${whole}": z\n', { mappings })

    expect(layer(made, 'request')).toEqual({ '.alias': { rule: 'x' }, $system: 'y', '.agent': 'z' })
    expect(layer(made, 'agent')).toEqual({})
  })

  test('a path chooses a part of the file; a missing one is named', async () => {
    const text = 'prompts:\n  en:\n    input: Hello\n  de.at:\n    input: Servus\n  list:\n    - input: First\n'

    expect((await loadYamlPrompt(text, { promptKeyPath: 'prompts.en' })).get('input')).toBe('Hello')
    expect((await loadYamlPrompt(text, { promptKeyPath: ['prompts', 'de.at'] })).get('input')).toBe('Servus')
    expect((await loadYamlPrompt(text, { promptKeyPath: 'prompts.list.0' })).get('input')).toBe('First')
    await expectError(loadYamlPrompt(text, { promptKeyPath: 'prompts.fr.x' }), {
      line: 2,
      message: /there is nothing at "prompts\.fr"\. There are: en, de\.at, list\./,
    })
    await expectError(loadYamlPrompt(text, { promptKeyPath: 'prompts.en.input' }), { message: /is a mapping/ })
  })

  test('.alias calls what is offered: by name, in order, or with nothing', async () => {
    const called: unknown[] = []
    const aliases: PromptAliases = {
      greet: {
        params: ['name', 'times'],
        run: (made, args) => {
          called.push(args)
          return made.input(`Hello ${String(args[0])}`)
        },
      },
    }
    const text = '.alias:\n  greet: { .args: [Ann], times: 2 }\n  user_info: { prompt: { age: 3 }, always: true }\n'
    const made = await loadYamlPrompt(text, { aliases })
    await loadYamlPrompt('.alias:\n  greet:\n', { aliases })

    expect(called).toEqual([
      ['Ann', 2],
      [undefined, undefined],
    ])
    expect(made.get('input')).toBe('Hello Ann')
    expect(made.get('system', 'agent')).toEqual({ user_info: { age: 3 } })
  })

  test('a bare function is offered as an alias: it gets the prompt and its parameters', async () => {
    const greet = (made: Prompt, name: string, times = 1) => made.input(`Hello ${name}, ${times} times`)
    const text = (args: string) => `.alias:\n  greet: ${args}\n`
    const load = (args: string) => loadYamlPrompt(text(args), { aliases: { greet } })

    expect((await load('{ name: Ann, times: 2 }')).get('input')).toBe('Hello Ann, 2 times')
    expect((await load('{ .args: [Bob] }')).get('input')).toBe('Hello Bob, 1 times')
    await expectError(load('{ nme: Ann }'), { line: 2, message: /there is no argument "nme"\. There are: name, times/ })
    await expect(loadYamlPrompt('input: x\n', { aliases: { max: Math.max as never } })).rejects.toThrow(
      /aliases\.max: its parameters cannot be told from its source\. Name them: \{ params, run \}/,
    )
    await expect(loadYamlPrompt('input: x\n', { aliases: { one: 5 as never } })).rejects.toThrow(
      /aliases\.one: it is a function, or \{ params, run \}/,
    )
  })

  test.each([
    ['.alias:\n  toRequest:\n', 2, 3, /"toRequest" is not offered to prompt files\. These are: system, /],
    ['.alias:\n  constructor: {}\n', 2, 3, /"constructor" is not offered/],
    ['.alias:\n  __proto__: {}\n', 2, 3, /"__proto__" is not offered/],
    ['.alias:\n  withLayers: {}\n', 2, 3, /"withLayers" is not offered/],
    ['input: x\n.alias:\n  rul: { prompt: x }\n', 3, 3, /Did you mean rule\?/],
    ['.alias:\n  rule: text\n', 2, 9, /the arguments are \{ name: value \} or nothing/],
    ['.alias:\n  rule:\n    promt: x\n', 3, 5, /there is no argument "promt"\. There are: prompt, always/],
    ['.alias:\n  rule: { .args: x }\n', 2, 18, /\.args is a list/],
    ['.alias:\n  rule: { .args: [a, true, c] }\n', 2, 28, /there are only 2 arguments/],
    ['.alias:\n  rule: { .args: [a], prompt: b }\n', 2, 23, /"prompt" is given twice/],
    ['.alias:\n  rule: { prompt: a, always: yes }\n', 2, 3, /"always" is true or false/],
    ['.alias: [rule]\n', 1, 9, /\.alias is a mapping/],
    ['.alias:\n  output_format: { prompt: 5 }\n', 2, 3, /output_format is a text/],
  ])('%j is refused at its place', async (text, line, column, message) => {
    await expectError(loadYamlPrompt(text), { line, column, message })
  })

  test('JSON may have comments, commas at the end, single quotes and bare keys', async () => {
    const made = await loadJsonPrompt(`\uFEFF{
      // one
      input: 'it\\'s "fine" \\u0041\\
', /* two
      lines */ "info": [1, -2.5e1, .5, true, null,],
      'raw': "a\tb",
    }`)

    expect(layer(made, 'request')).toEqual({ input: 'it\'s "fine" A', info: [1, -25, 0.5, true, null], raw: 'a\tb' })
  })

  test.each([
    ['{ "a": 1,\n  "b" 2 }', 2, 7, /a colon is missing/],
    ['{ "a": [1\n  2] }', 2, 3, /a comma or \] is missing/],
    ['{ "a": ', 1, 8, /a value is missing/],
    ['{ "a": 1', 1, 9, /a comma or \} is missing/],
    ['{ "a": "x', 1, 8, /the text is not closed/],
    ['{ /* a', 1, 3, /the comment is not closed/],
    ['{ "a": 1 } x', 1, 12, /something behind the end/],
    ['{ "a": nope }', 1, 8, /a value is missing/],
    ['{ "a": NaN }', 1, 8, /a value is missing/],
    ['{ "a": 1e999 }', 1, 13, /too large/],
    ['{ "a": "\\q" }', 1, 12, /unknown escape/],
    ['{ "a": 1,\n "a": 2 }', 2, 2, /the key "a" is there twice/],
    ['{ , }', 1, 3, /a key is missing/],
    ['{', 1, 2, /the text ends before \}/],
  ])('the JSON %j is refused at its place', async (text, line, column, message) => {
    await expectError(loadJsonPrompt(text), { line, column, message })
  })

  test.each([
    ['input: "x\n', 2, /not valid YAML/],
    ['a: 1\nb: c: d\n', 2, /not valid YAML.*Quote a text/],
    ['a: 1\na: 2\n', 2, /the key "a" is there twice/],
    ['a: 1\n---\nb: 2\n', 2, /more than one document/],
    ['a: *x\n', 1, /nothing before it is named &x/],
    ['a: &x [*x]\n', 1, /inside of what it stands for/],
    ['? [a]\n: 1\n', 1, /a key is a text/],
    ['a: .inf\n', 1, /is not a number that can be kept/],
    ['- a\n- b\n', 1, /a prompt file is a mapping/],
    ['\n\n', 1, /a prompt file is a mapping/],
  ])('the YAML %j is refused at its place', async (text, line, message) => {
    await expectError(loadYamlPrompt(text), { line, message })
  })

  test('a path is a path and a text is a text', async () => {
    const file = path.join(folder, 'hello.yaml')
    writeFileSync(file, '# a comment\ninput: Hello\n')
    writeFileSync(path.join(folder, 'hello.json5'), '{ input: "Hi", } // end')

    expect((await loadYamlPrompt(file)).get('input')).toBe('Hello')
    expect((await loadPromptFile(file)).get('input')).toBe('Hello')
    expect((await loadPromptFile(path.join(folder, 'hello.json5'))).get('input')).toBe('Hi')
    expect((await loadPromptText('input: one line')).get('input')).toBe('one line')
    expect((await loadPromptText('{ "input": 1 }', { format: 'json' })).get('input')).toBe(1)
    await expectError(loadYamlPrompt('input: one line'), {
      file: 'input: one line',
      message: /there is no such file\. .*use loadPromptText/,
    })
    await expectError(loadYamlPrompt('x'.repeat(5_000)), { message: /its path is too long/ })
    await expectError(loadYamlPrompt('a\0b'), { message: /character that no path may have/ })
  })

  test('an error names the file, its line and its column', async () => {
    const file = path.join(folder, 'wrong.yaml')
    writeFileSync(file, 'input: x\n.agnet:\n  system: y\n')

    await expectError(loadPromptFile(file), {
      file,
      line: 2,
      column: 1,
      message: /wrong\.yaml:2:1: there is no "\.agnet"/,
    })
  })

  test('a key beside $type and a misspelled dot-key are reported where they are', async () => {
    const beside = 'output:\n  n:\n    $type: int\n    $desc: many\n    unit: kg\n'

    await expectError(loadYamlPrompt(beside), { line: 5, column: 5, message: /the key "unit" does not belong here/ })
    await expectError(loadYamlPrompt('output:\n  n: { $tpye: int }\n'), { line: 2, message: /Did you mean \$type\?/ })
    await expectError(loadYamlPrompt('output:\n  - .decs: x\n'), { line: 2, message: /Did you mean \$desc\?/ })
    await expectError(loadYamlPrompt('.requst:\n  input: x\n'), { line: 1, message: /Did you mean \.request\?/ })
    await expectError(loadYamlPrompt('.foo: x\ninput: y\n'), { message: /There are \.agent, \.request and \.alias/ })
    await expectError(loadYamlPrompt('$: x\ninput: y\n'), { message: /needs a name behind the \$/ })
    await expectError(loadYamlPrompt('output:\n  a: { b: 5 }\n'), { line: 2, column: 8, message: /5 is no type/ })
    await expectError(loadYamlPrompt('tools:\n  - name: t\n    kwargs: { q: 1 }\n'), {
      line: 3,
      message: /1 is no type/,
    })
    await expectError(loadYamlPrompt('output:\n  $schema: x\n'), { message: /\$schema is a JSON Schema object/ })
    await expectError(loadYamlPrompt('output:\n  $type: int\n  $desc: [a]\n'), {
      line: 3,
      message: /a description is a text/,
    })
    await expectError(loadYamlPrompt('options: fast\ninput: x\n'), { line: 1, message: /options are an object/ })
  })

  test('a key that is nearly a slot is kept, with a warning that says where', async () => {
    const warnings: unknown[] = []
    const made = await loadYamlPrompt('input: x\ninstuct: y\n.agent: { chatHistory: [] }\n', {
      onWarning: ({ subject, line, column, file }) => warnings.push([subject, line, column, file]),
    })

    expect(made.get('instuct')).toBe('y')
    expect(warnings).toEqual([
      ['instuct', 2, 1, '<text>'],
      ['chatHistory', 3, 11, '<text>'],
    ])
  })
})

describe('what is exported and loaded again', () => {
  const corpus: readonly Prompt[] = [
    prompt({ system: 'S', own: { a: [1, null, 'x: y'] } })
      .input('Hello\n\nworld')
      .instruct(['a', 'b']),
    prompt().output({ n: field('int', 'n'), l: field([field('str', 'item')], 'list'), o: field({ a: 'a|b' }, 'obj') }),
    prompt().output([{ deep: [['int']], any: null }]),
    prompt().output(field([field({ x: field('list[str]', 'xs', []) }, 'inner')], 'outer')),
    prompt().output(z.object({ a: z.string().min(2), b: z.array(z.number()).optional() })),
    prompt().output('One word.').input(0),
    prompt().output('float'),
    prompt({ info: { a: 1 }, tools: { name: 't', kwargs: { q: field('str', 'q') } } })
      .remove('info')
      .input('x'),
    prompt({ input: 'x' }).chatHistory(['hi', { role: 'bot', content: [{ type: 'image', image: null }] }]),
    prompt()
      .attachment([{ type: 'file', mediaType: 'a/b', data: 'AAAA' }, 'text'])
      .options({ temperature: 1 }),
    prompt().set('${x}', '${y}').set('$z', 1).set('.agent', 2).set('__proto__', { constructor: 1 }),
    prompt({ input: 'x' }).rule('R', { always: true }).role('me').outputFormat('text'),
  ]

  test.each(corpus)('renders the same in every form (%#)', async (made) => {
    for (const again of [await loadYamlPrompt(made.toYamlPrompt()), await loadJsonPrompt(made.toJsonPrompt())]) {
      expect(again.toText()).toBe(made.toText())
      expect(again.toMessages({ rich: true })).toEqual(made.toMessages({ rich: true }))
      expect(again.toRequest().outputSchema).toEqual(made.toRequest().outputSchema)
      expect(again.toYamlPrompt()).toBe(made.toYamlPrompt())
    }
  })
})

describe('files that are not what they should be', () => {
  test('too large, a folder, a pipe, no UTF-8, a link in a circle: each says so, none is waited for', async () => {
    const at = (name: string) => path.join(folder, name)
    writeFileSync(at('large'), 'x'.repeat(1_000_001))
    writeFileSync(at('binary'), Buffer.from([0xff, 0xfe, 0x41]))
    symlinkSync(at('circle'), at('circle'))
    execFileSync('mkfifo', [at('pipe')])

    await expectError(loadPromptFile(at('large')), { message: /has 1000001 bytes\. A file may have 1000000 bytes/ })
    await expectError(loadPromptFile(at('binary')), { message: /not UTF-8/ })
    await expectError(loadPromptFile(at('circle')), { message: /links lead in a circle/ })
    await expectError(loadPromptFile(at('pipe')), { message: /no plain file/ })
    await expectError(loadPromptFile(folder), { message: /it is a folder, not a file/ })
    await expectError(loadPromptText('x'.repeat(1_000_001)), { message: /more than 1000000 bytes/ })
  })

  test('aliases of YAML that stand for millions of values are refused at once', async () => {
    const levels = Array.from({ length: 12 }, (_, index) => {
      return `l${index + 1}: &l${index + 1} [${Array(10).fill(`*l${index}`).join(', ')}]`
    })

    await expectError(loadYamlPrompt(`l0: &l0 x\n${levels.join('\n')}\n`), { message: /stand for too many values/ })
  })
})

function layer(made: Prompt, name: 'agent' | 'request'): Record<string, unknown> {
  return Object.fromEntries(made.layers[name])
}

interface Expected {
  readonly message: RegExp
  readonly file?: string
  readonly line?: number
  readonly column?: number
}

async function expectError(loading: Promise<unknown>, { message, ...details }: Expected): Promise<void> {
  const error = await loading.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(RecipeError.isInstance(error)).toBe(true)
  expect(error).toMatchObject({ code: 'recipe', details, message: expect.stringMatching(message) })
}

test('who gives the agent first reads where it belongs', async () => {
  const clerk = agent({ name: 'clerk', instructions: '' })

  await expect(loadYamlPrompt(clerk as never, { mappings: {} })).rejects.toThrow(
    'loadYamlPrompt(text, { onto: agent.request() })',
  )
})
