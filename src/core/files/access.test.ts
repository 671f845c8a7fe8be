import { describe, expect, test } from 'vitest'
import { DeniedError, NotFoundError } from '../base/error.ts'
import { type Grant, useLayer } from '../grant/grant.ts'
import { type Request, requestText } from '../grant/request.ts'
import { type AccessParts, FileAccess } from './access.ts'
import { type FileOperation, OPERATIONS } from './failure.ts'
import { AREAS, type LogicalPath, readFilePath } from './path.ts'

const ALL: Grant = { use: ['file.*:**'] }

function accessOf(grant: Grant, parts: Partial<AccessParts> = {}): FileAccess {
  return new FileAccess({
    areas: AREAS,
    policy: {},
    layers: [useLayer('me', grant)],
    isApproved: () => false,
    ...parts,
  })
}

const at = (text: string): LogicalPath => readFilePath(text, 'directory')

function failureOf(check: () => unknown): Error {
  try {
    check()
  } catch (error) {
    return error as Error
  }
  throw new Error('it may')
}

describe('what an agent may do with a path', () => {
  test.each(OPERATIONS)('%s is decided by its own rule', (operation) => {
    const access = accessOf({ use: [`file.${operation}:/workspace/a`] })

    expect(access.check(operation, at('/workspace/a'))).toBe('allow')
    for (const other of OPERATIONS.filter((it) => it !== operation)) {
      expect(failureOf(() => access.check(other, at('/workspace/a')))).toBeInstanceOf(DeniedError)
      expect(access.may(other, at('/workspace/a'))).toBe(false)
    }
    expect(failureOf(() => access.check(operation, at('/workspace/ab'))).message).toBe(
      `Access denied for operation '${operation}' on path /workspace/ab: no rule of me allows file.${operation}:/workspace/ab.`,
    )
  })

  test('a person may have allowed just this', () => {
    const asked: string[] = []
    const isApproved = (request: Request) => {
      asked.push(requestText(request))
      return requestText(request) === 'file.write:/workspace/a'
    }
    const access = accessOf({ ...ALL, ask: ['file.*:/workspace/**'] }, { isApproved })

    expect(access.check('write', at('/workspace/a'))).toBe('ask')
    expect(failureOf(() => access.check('write', at('/workspace/b'))).message).toBe(
      "Access denied for operation 'write' on path /workspace/b: me asks for file.*:/workspace/**, and nobody allowed it before the call began.",
    )
    expect(access.check('read', at('/userinput/a'))).toBe('allow')
    expect(asked).toEqual(['file.write:/workspace/a', 'file.write:/workspace/b'])
    expect(access.may('write', at('/workspace/b'))).toBe(true)
  })

  test('outside of the areas there is nothing, and a denial comes first', () => {
    const access = accessOf(ALL, { areas: ['workspace'] })

    for (const path of ['/userinput/a', '/etc/passwd', '/Workspace/a', '/']) {
      expect(failureOf(() => access.check('read', at(path)))).toBeInstanceOf(NotFoundError)
      expect(failureOf(() => access.check('read', at(path))).message).toBe(`Path not found: ${path}`)
      expect(access.may('read', at(path))).toBe(false)
    }
    expect(access.may('read', at('/workspace/a'))).toBe(true)
    expect(failureOf(() => accessOf({ use: [] }).check('read', at('/etc/passwd')))).toBeInstanceOf(DeniedError)
  })
})

describe('the policy', () => {
  const refusals = (access: FileAccess, area: string) =>
    OPERATIONS.flatMap((operation: FileOperation) => {
      try {
        access.check(operation, at(`/${area}/a`))
        return []
      } catch (error) {
        return [`${operation}: ${(error as Error).message.split(': ')[1]}`]
      }
    })

  test('overrides every grant', () => {
    const access = accessOf(ALL)

    expect(refusals(access, 'workspace')).toEqual([])
    expect(refusals(access, 'userinput')).toEqual([
      'write: /userinput/ is read only.',
      'delete: nothing in /userinput/ is deleted.',
    ])
    expect(refusals(access, 'internal')).toEqual(['delete: nothing in /internal/ is deleted.'])
    expect(access.may('write', at('/userinput/a'))).toBe(false)
  })

  test('can be changed, but for deleting what people gave', () => {
    const access = accessOf(ALL, { policy: { allowWriteUserinput: true, allowDeleteInternal: true } })

    expect(refusals(access, 'userinput')).toEqual(['delete: nothing in /userinput/ is deleted.'])
    expect(refusals(access, 'internal')).toEqual([])
  })

  test('allows nothing that rules do not, and a yes of a person does not override it', () => {
    const policy = { allowWriteUserinput: true, allowDeleteInternal: true }
    const denied = accessOf({ use: [] }, { policy, isApproved: () => true })
    const asked = accessOf({ ...ALL, ask: ['file.*:**'] }, { isApproved: () => true })

    expect(refusals(denied, 'userinput')).toHaveLength(4)
    expect(failureOf(() => denied.check('delete', at('/userinput/a'))).message).toContain('no rule of me allows')
    expect(refusals(asked, 'userinput')).toEqual([
      'write: /userinput/ is read only.',
      'delete: nothing in /userinput/ is deleted.',
    ])
  })
})

test('a listing shows what may be listed, and what is asked for only to whom a person allowed it', () => {
  const access = accessOf({
    use: ['file.list:/workspace/a', 'file.read:/workspace/**'],
    ask: ['file.list:/workspace/b'],
  })
  const shown = (listing: 'allow' | 'ask') =>
    ['a', 'b', 'c'].filter((name) => access.isShown(at(`/workspace/${name}`), listing))

  expect(shown('allow')).toEqual(['a'])
  expect(shown('ask')).toEqual(['a', 'b'])
})
