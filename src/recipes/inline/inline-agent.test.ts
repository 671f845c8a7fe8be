import { describe, expect, test } from 'vitest'
import type { Json } from '../../core/base/json.ts'
import { EVERYTHING, type Grant } from '../../core/grant/grant.ts'
import { readInline } from './inline-agent.ts'

const OLD = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']

const stored = (more: { readonly [key: string]: Json }) => ({
  form: 1,
  budget: {},
  grant: null,
  narrowing: null,
  ...more,
})
const read = (more: { readonly [key: string]: Json }) => readInline(stored(more) as Json)

describe('an agent of a row that was kept before a secret was a request', () => {
  test('has everything, as it had', () => {
    expect(read({ grant: { use: OLD } }).grant).toEqual({ use: EVERYTHING, ask: [] })
  })

  test('has what its grant names, and no more', () => {
    const grant: Grant = { use: ['tool:*', 'exec:*', 'net:*'], ask: ['exec:*'], deny: ['tool:x'] }

    expect(read({ grant: grant as Json }).grant).toEqual(grant)
    expect(read({ grant: { deny: ['tool:x'] } }).grant).toEqual({ deny: ['tool:x'] })
  })

  test('has a file that could say nothing about secrets, so that the layers above it decide', () => {
    expect(read({ narrowing: { use: ['tool:read'], deny: ['net:a'] } }).narrowing).toEqual({
      use: ['tool:read', 'secret:*'],
      deny: ['net:a'],
    })
    expect(read({ narrowing: { deny: ['net:a'] } }).narrowing).toEqual({ deny: ['net:a'] })
  })
})

test('a row of today is read as it is', () => {
  const row = stored({ files: [], grant: { use: OLD }, narrowing: { use: ['tool:read'] } })

  expect(readInline(row as Json)).toEqual(row)
})
