import { runInThisContext } from 'node:vm'
import { expect, test } from 'vitest'
import { parseParameters } from './function-parameters.ts'

const plain = (name: string) => ({ name, isOptional: false })
const preset = (name: string, value: unknown) => ({ name, isOptional: true, preset: value })

test('names and defaults are read from every form of a function', () => {
  const forms = [
    function add(a: unknown, b: unknown) {
      return [a, b]
    },
    async function add(a: unknown, b: unknown) {
      return [a, b]
    },
    (a: unknown, b: unknown) => [a, b],
    {
      add(a: unknown, b: unknown) {
        return [a, b]
      },
    }.add,
  ]
  for (const form of forms) expect(parseParameters(form)).toEqual({ areFields: false, list: [plain('a'), plain('b')] })
  expect(parseParameters(() => 1)).toEqual({ areFields: false, list: [] })
  expect(parseParameters(runInThisContext('x => x') as () => unknown)).toEqual({ areFields: false, list: [plain('x')] })
  expect(parseParameters(runInThisContext("(a = 5, b = 'x', c = Date) => 1") as () => unknown)?.list).toEqual([
    preset('a', 5),
    preset('b', 'x'),
    { name: 'c', isOptional: true },
  ])
  expect(parseParameters(runInThisContext('({ city, days: n = 3 }) => n') as () => unknown)).toEqual({
    areFields: true,
    list: [plain('city'), preset('days', 3)],
  })
})

test.each<[string, (...given: never[]) => unknown]>([
  ['a rest', (...all: unknown[]) => all],
  ['a built-in function', Math.max],
  ['a bound function', parseParameters.bind(null)],
  ['a class', class Oven {} as unknown as () => unknown],
  ['a default that is computed', runInThisContext('(a = Math.max(1, 2)) => a') as () => unknown],
  ['a list that is taken apart', runInThisContext('([a]) => a') as () => unknown],
])('%s says nothing', (_name, code) => {
  expect(parseParameters(code)).toBeUndefined()
})
