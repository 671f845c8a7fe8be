import { expect, test } from 'vitest'
import { methodsFile, requestsFile } from '../../../test/support/made-operations.ts'
import * as table from './table.ts'

test('the methods of a runtime and the requests of a client are those of the table', async () => {
  await expect(methodsFile(table)).toMatchFileSnapshot('./methods.made.ts')
  await expect(requestsFile(table)).toMatchFileSnapshot('./wire/requests.made.ts')
})
