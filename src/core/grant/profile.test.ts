import { describe, expect, test } from 'vitest'
import { DefinitionError } from '../base/error.ts'
import { decide } from './decide.ts'
import { BUILT_IN_PROFILES, profileLayer, withProfiles } from './profile.ts'
import { readRequest } from './request.ts'

const REQUESTS = [
  'tool:memory_search',
  'tool:skills_list',
  'tool:memory',
  'tool:deploy',
  'agent:a',
  'model:m',
  'exec:git',
  'net:a',
  'file.read:/a',
]

describe('a built-in profile', () => {
  test.each<[string, readonly string[]]>([
    ['full', REQUESTS],
    ['minimal', ['model:m']],
    ['memory_only', ['tool:memory_search', 'model:m']],
    ['skills_only', ['tool:skills_list', 'model:m']],
  ])('%s', (name, allowed) => {
    const layer = profileLayer(name, BUILT_IN_PROFILES)
    const verdicts = REQUESTS.filter((request) => {
      const [domain = '', asked = ''] = request.split(':')
      return decide([layer], readRequest(`${domain}:${asked}`)).verdict === 'allow'
    })

    expect(verdicts).toEqual(allowed)
    expect(layer).toMatchObject({ by: `the profile ${name}`, ask: [], deny: [] })
    expect(layer.allow).toContain('model:*')
  })

  test('they are these four, and nobody adds to them', () => {
    expect(Object.keys(BUILT_IN_PROFILES)).toEqual(['full', 'minimal', 'memory_only', 'skills_only'])
    expect(Object.isFrozen(BUILT_IN_PROFILES)).toBe(true)
  })
})

describe('a profile', () => {
  test.each(['', 'Full', 'full ', 'toString', '__proto__', 'constructor'])('%j is not there', (name) => {
    const find = () => profileLayer(name, BUILT_IN_PROFILES)

    expect(find).toThrow(DefinitionError)
    expect(find).toThrow(expect.objectContaining({ code: 'definition' }))
    expect(find).toThrow(`There is no profile "${name}". There are: full, minimal, memory_only, skills_only.`)
  })

  test('of one’s own is there beside the built-in ones', () => {
    const profiles = withProfiles({ careful: { use: ['tool:read'], deny: ['tool:x'] } }, 'here')

    expect(profileLayer('careful', profiles)).toEqual({
      by: 'the profile careful',
      allow: ['tool:read'],
      ask: [],
      deny: ['tool:x'],
    })
    expect(profileLayer('minimal', profiles).allow).toEqual(['model:*'])
  })

  test('a profile that is built in is not made anew, and a wrong one says where it is', () => {
    expect(() => withProfiles({ minimal: { use: ['tool:*'] } }, 'here')).toThrow(
      expect.objectContaining({ code: 'definition' }),
    )
    expect(() => withProfiles({ minimal: { use: ['tool:*'] } }, 'here')).toThrow(
      'here: the profile "minimal" is built in. Give yours another name.',
    )
    expect(() => withProfiles({ mine: { use: ['tols:*'] } }, 'here')).toThrow('here, profiles.mine: the rule "tols:*"')
  })
})
