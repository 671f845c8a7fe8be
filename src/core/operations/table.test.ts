import { expect, test } from 'vitest'
import { methodsFile, requestsFile } from '../../../test/support/made-operations.ts'
import * as table from './table.ts'

test('the methods of a runtime and the requests of a client are those of the table', async () => {
  await expect(methodsFile(table)).toMatchFileSnapshot('./methods.made.ts')
  await expect(requestsFile(table)).toMatchFileSnapshot('./wire/requests.made.ts')
})

test('I12: an operation with an id in its path says what the id is, so that its owner is checked', () => {
  const all = Object.entries({ ...table.OF_RUNTIME, ...table.OF_SERVER }).flatMap(([subject, operations]) =>
    Object.entries(operations).map(([name, one]) => ({ name: `${subject}.${name}`, ...one })),
  )
  const withId = all.filter(({ http }) => http?.includes('{') === true)

  expect(withId.length).toBeGreaterThan(30)
  expect(withId.filter(({ of }) => of === undefined).map(({ name }) => name)).toEqual([])
})
