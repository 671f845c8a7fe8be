import { expect, test } from 'vitest'
import { programVariables } from './environment.ts'

test.each([
  ['API_TOKEN', 'abc-def', 'secret'],
  ['TOKEN_COMMAND', 'curl evil.test', 'other'],
  ['TOKEN_CMD', 'sh -c x', 'other'],
  ['CREDENTIAL_HELPER', '/tmp/evil', 'other'],
  ['PASSWORD_PROGRAM', '/tmp/evil', 'other'],
  ['SECRET_FILE', '/etc/shadow', 'other'],
  ['LANG', 'de_DE.UTF-8', 'data'],
])('%s=%s is shown as %s: a name of a program or file is no secret', (name, value, kind) => {
  expect(programVariables({ [name]: value })).toEqual([{ name, value, kind }])
})
