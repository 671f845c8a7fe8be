// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of prompts are written like this

import fc from 'fast-check'
import { loadJsonPrompt, loadYamlPrompt } from 'legate/compat'
import { loadPromptText, Prompt, prompt, SLOTS } from 'legate/prompt'
import { describe, expect, test } from 'vitest'
import { isLegateError, RecipeError } from '../../src/core/base/error.ts'
import type { Json } from '../../src/core/base/json.ts'
import { anyUnicode } from '../support/any-unicode.ts'
import { watchWork } from '../support/pace.ts'

/** Words that mean something to JavaScript, to YAML or to prompt files. */
const evilKeys = [
  ...[
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '',
    ' ',
    'a.b',
    '.agent',
    '.alias',
    '$',
    '$type',
    '${x}',
  ],
  ...[
    'null',
    'yes',
    '~',
    '1',
    '-',
    '- a',
    '? a',
    ': b',
    '#c',
    '[',
    '{',
    '&a',
    '*a',
    '!t',
    '|',
    '>',
    '%',
    '@',
    '`',
    '"',
    "'",
  ],
  ...[
    'a: b',
    'a #b',
    '\n',
    'x\ny',
    '\t',
    '\u2028',
    '\u0085',
    '\ufeff',
    '😀',
    'é',
    '\u0000',
    '<<',
    '0x1f',
    '1e3',
    '.inf',
  ],
]
const text = fc.oneof(
  anyUnicode({ maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom('a', ' ', '\n', '\t', ':', '#', '-', '$', '{', '}', '[', ']', '"'),
    maxLength: 12,
  }),
  fc.constantFrom(...evilKeys),
)
const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    text,
    fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value

const typeText = fc.constantFrom(
  'str',
  'int',
  'float',
  'bool',
  'any',
  'list[str]',
  'a|b',
  'str | null',
  'Literal["x", "y"]',
)
const fieldName = fc.oneof(
  fc.constantFrom('__proto__', 'constructor', 'type', 'a b', '1', 'ü'),
  fc.string({ maxLength: 5 }),
)
const shape: fc.Arbitrary<Json> = fc.letrec<{ shape: Json }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    typeText,
    fc.array(tie('shape'), { minLength: 1, maxLength: 2 }),
    fc.dictionary(
      fieldName.filter((name) => !/^[$.]/.test(name)),
      tie('shape'),
      { maxKeys: 3, noNullPrototype: true },
    ),
    fc
      .record(
        { $type: tie('shape'), $desc: fc.string(), $default: json },
        { requiredKeys: ['$type'], noNullPrototype: true },
      )
      .map((described) => described as Json),
  ),
})).shape

/** Any prompt at all: every slot and keys of one's own, in both layers. */
const anyPrompt: fc.Arbitrary<Prompt> = fc
  .array(
    fc.record({
      slot: fc.oneof(fc.constantFrom('info', 'instruct', 'input', 'system', 'examples', 'chat_history'), text),
      value: json,
      always: fc.boolean(),
    }),
    { maxLength: 6 },
  )
  .chain((sayings) => {
    return fc.record({ sayings: fc.constant(sayings), output: fc.option(shape), always: fc.boolean() })
  })
  .map(({ sayings, output, always }) => {
    const said = sayings.reduce((made, saying) => trySet(made, saying), prompt({ input: 'asked' }))
    return output === null ? said : said.set('output', output, { always })
  })

describe('any prompt that is exported and loaded again', () => {
  test('from YAML and from JSON it has the same layers and renders the same', async () => {
    await fc.assert(
      fc.asyncProperty(anyPrompt, async (made) => {
        const fromYaml = await loadYamlPrompt(made.toYamlPrompt())
        const fromJson = await loadJsonPrompt(made.toJsonPrompt())
        for (const again of [fromYaml, fromJson]) {
          expect(again.layers).toEqual(made.layers)
          expect(outcome(() => again.toText())).toEqual(outcome(() => made.toText()))
          expect(outcome(() => again.toMessages())).toEqual(outcome(() => made.toMessages()))
        }
      }),
      { numRuns: 80 },
    )
  })

  test('an output shape gives the same schema', async () => {
    await fc.assert(
      fc.asyncProperty(shape, async (given) => {
        const made = prompt({ input: 'x' }).set('output', given)
        const again = await loadYamlPrompt(made.toYamlPrompt())

        expect(again.toRequest().outputSchema).toEqual(made.toRequest().outputSchema)
      }),
      { numRuns: 100 },
    )
  })
})

describe('placeholders', () => {
  test('are filled once: whatever is put in arrives as it is, in texts and as whole values', async () => {
    await fc.assert(
      fc.asyncProperty(json, json, async (a, b) => {
        const mappings = { a, b }
        const made = prompt().info({ whole: '${a}', both: ['${b}'] }, { mappings })
        const loaded = await loadYamlPrompt('info:\n  whole: ${a}\n  both: ["${b}"]\n', { mappings })

        expect(made.get('info')).toEqual({ whole: plain(a), both: [plain(b)] })
        expect(loaded.get('info')).toEqual({ whole: plain(a), both: [plain(b)] })
      }),
    )
  })

  test('without a mapping nothing is touched', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(prompt().info({ v: value }, { mappings: {} }).get('info')).toEqual({ v: plain(value) })
      }),
    )
  })
})

describe('hostile input', () => {
  test('no key reaches a prototype, by code or by file', async () => {
    const evil =
      '{ "__proto__": { "polluted": 1 }, "info": { "__proto__": { "polluted": 1 }, "constructor": { "prototype": { "polluted": 1 } } } }'
    const made = await loadJsonPrompt(evil, { onto: prompt({ info: { __proto__: null, a: 1 } }) })
    const mapped = made.info({ '${k}': { polluted: 1 } }, { mappings: { k: '__proto__' } })

    expect(Object.keys(mapped.get('info') as object)).toContain('__proto__')
    expect(mapped.toText()).toContain('[__proto__]:\npolluted: 1')
    expect('polluted' in {}).toBe(false)
    const output = mapped.set('output', JSON.parse('{ "__proto__": "int", "constructor": "str" }'))
    expect(output.toRequest().outputSchema).toMatchObject({ required: ['__proto__', 'constructor'] })
    expect('polluted' in {}).toBe(false)
  })

  test.each([
    ['yaml', '['.repeat(900_000)],
    ['yaml', `a: ${'['.repeat(5_000)}${']'.repeat(5_000)}`],
    ['yaml', Array.from({ length: 1_000 }, (_, index) => `${' '.repeat(index)}a:`).join('\n')],
    ['yaml', `${'- '.repeat(10_000)}a`],
    ['yaml', '{a: '.repeat(200_000)],
    ['yaml', '? '.repeat(10_000)],
    ['yaml', '"'.repeat(10_000)],
    ['yaml', `a: ${'${'.repeat(300_000)}`],
    ['json', '['.repeat(500_000)],
    ['json', '{"a":'.repeat(100_000)],
    ['json', ' '.repeat(900_000)],
    ['json', '/'.repeat(900_000)],
    ['json', '/**/'.repeat(200_000)],
    ['json', `{"a":"${'\\'.repeat(900_000)}`],
    ['json', `{"a":${'1'.repeat(900_000)}}`],
    ['json', `${'\n'.repeat(900_000)}{`],
  ] as const)('a %s text of brackets, spaces or signs gives an answer in bounded time (%#)', async (format, text) => {
    const workMs = watchWork()
    const result = await loadPromptText(text, { format, mappings: { x: 1 } }).catch((error: unknown) => error)

    expect(result instanceof Prompt || RecipeError.isInstance(result)).toBe(true)
    expect(workMs()).toBeLessThan(4_000)
  })

  test('values that lie too deep in one another are refused by code and by file', async () => {
    const deep = (levels: number): Json => (levels === 0 ? 'x' : [deep(levels - 1)])

    expect(() => prompt().info(deep(5_000))).toThrow(/nested more than 64 levels deep/)
    expect(() => prompt().set('output', deep(65))).toThrow(/nested more than 64 levels deep/)
    await expect(loadJsonPrompt(`{ "info": ${JSON.stringify(deep(61))} }`)).rejects.toThrow(
      /nested more than 60 levels/,
    )
    await expect(loadYamlPrompt(`{ "info": ${JSON.stringify(deep(61))} }`)).rejects.toThrow(
      /nested more than 60 levels/,
    )
    expect(prompt().input(deep(50)).toRequest().messages).toHaveLength(1)
  })

  test('any text at all is a prompt or a RecipeError', async () => {
    const keys = fc.constantFrom(...SLOTS, '.agent', '.request', '.alias', '$input', ...evilKeys)
    const line = fc.tuple(fc.nat({ max: 6 }), keys, text).map(([indent, key, value]) => {
      return `${' '.repeat(indent)}${key}: ${value}`
    })
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 8 }), fc.constantFrom('yaml', 'json'), async (lines, format) => {
        const result = await loadPromptText(lines.join('\n'), { format }).catch((error: unknown) => error)

        expect(result instanceof Prompt || RecipeError.isInstance(result)).toBe(true)
      }),
      { numRuns: 150 },
    )
  })
})

function trySet(made: Prompt, { slot, value, always }: { slot: string; value: Json; always: boolean }): Prompt {
  try {
    return made.set(slot, value, { always })
  } catch (error) {
    expect(isLegateError(error)).toBe(true)
    return made
  }
}

function outcome(render: () => unknown): unknown {
  try {
    return render()
  } catch (error) {
    return isLegateError(error) ? error.message : error
  }
}

/** As JSON keeps it: no -0, no lone surrogates. */
function plain(value: Json): Json {
  return prompt().set('v', [value]).get('v') === undefined
    ? null
    : ((prompt().set('v', [value]).get('v') as Json[])[0] ?? null)
}
