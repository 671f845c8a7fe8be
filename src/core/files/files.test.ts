import { describe, expect, test } from 'vitest'
import { decide } from '../grant/decide.ts'
import { type Grant, useLayer } from '../grant/grant.ts'
import { readRequest } from '../grant/request.ts'
import { describeReach, reachOf } from './files.ts'

function reach(...grants: readonly Grant[]): string[] {
  const layers = grants.map((grant, at) => useLayer(`layer ${at}`, grant))
  const found = reachOf(
    layers,
    (operation, path) => decide(layers, readRequest(`file.${operation}:${path}`)).verdict !== 'deny',
  )
  return describeReach(found).split('\n')
}

describe('where an agent can do something', () => {
  test.each<[string, Grant, readonly string[]]>([
    ['nowhere', { use: ['tool:*'] }, ['']],
    ['all below', { use: ['file.*:/workspace/**'] }, ['/workspace/: ls, stat, read, write, delete']],
    ['all of one operation', { use: ['file.read:/workspace/**'] }, ['/workspace/: read']],
    [
      'sorted by place, each operation once and in one order',
      { use: ['file.write:/b/**', 'file.read:/b/**', 'file.list:/b/**', 'file.delete:/a/**'] },
      ['/a/: delete', '/b/: ls, stat, read, write'],
    ],
    ['one file', { use: ['file.read:/workspace/a.md'] }, ['/workspace/a.md: read']],
    ['a pattern', { use: ['file.read:/workspace/*.md'] }, ['/workspace/*.md: read']],
    ['a place in the middle', { use: ['file.read:/a/**/b'] }, ['/a/**/b: read']],
    [
      'everywhere: the areas that are not hidden',
      { use: ['file.read:**'] },
      ['**: read', '/userinput/: read', '/workspace/: read'],
    ],
    [
      'a place inside another where the same may be done is left out',
      { use: ['file.read:/workspace/**', 'file.read:/workspace/docs/**', 'file.read:/workspace/a'] },
      ['/workspace/: read'],
    ],
    [
      'one where more may be done is not',
      { use: ['file.read:/workspace/**', 'file.*:/workspace/out/**'] },
      ['/workspace/: read', '/workspace/out/: ls, stat, read, write, delete'],
    ],
    [
      'nor one where less may be done',
      { use: ['file.*:/workspace/**'], deny: ['file.write:/workspace/docs/**', 'file.delete:/workspace/docs/**'] },
      ['/workspace/: ls, stat, read, write, delete', '/workspace/docs/: ls, stat, read'],
    ],
    [
      'a name that begins alike is no place inside',
      { use: ['file.read:/workspace/a', 'file.read:/workspace/ab'] },
      ['/workspace/a: read', '/workspace/ab: read'],
    ],
    [
      'a rule of another domain names no place',
      { use: ['file.read:/a/**', 'tool:/a/b', 'net:a'], ask: ['tool:/a/**'] },
      ['/a/: read'],
    ],
    [
      'nor where everything is allowed',
      { use: ['file.read:**', 'tool:search'] },
      ['**: read', '/userinput/: read', '/workspace/: read'],
    ],
    ['a star stands for something', { use: ['file.read:/a/*/c'], deny: ['file.read:/a/c'] }, ['/a/*/c: read']],
    [
      'below a directory that is denied itself',
      { use: ['file.list:/workspace/**'], deny: ['file.list:/workspace'] },
      ['/workspace/: ls, stat'],
    ],
    ['what a person must allow', { use: [], ask: ['file.write:/workspace/**'] }, ['/workspace/: write']],
    ['a denied place is none', { use: ['file.read:/a/**'], deny: ['file.*:/a/b/**'] }, ['/a/: read']],
  ])('%s', (_name, grant, expected) => {
    expect(reach(grant)).toEqual(expected)
  })

  test('is what all layers allow, at the places any of them names', () => {
    expect(reach({ use: ['file.*:/workspace/**'] }, { use: ['file.read:/workspace/docs/**', 'file.read:/x'] })).toEqual(
      ['/workspace/docs/: read'],
    )
  })
})
