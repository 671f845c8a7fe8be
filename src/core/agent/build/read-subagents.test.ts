import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyUnicode } from '../../../../test/support/any-unicode.ts'
import { toolNameOf } from './read-subagents.ts'

describe('the tool name of an agent', () => {
  test.each([
    ['TestAgent', 'call_testagent'],
    ['Research Agent', 'call_research_agent'],
    ['research_agent', 'call_research_agent'],
    ['RESEARCH  AGENT', 'call_research_agent'],
    ['数学老师', 'call_agent_18a24e01'],
    ['语文老师', 'call_agent_fe7a8a2a'],
    ['Müller', 'call_m_ller_e35bc0a7'],
    ['Agent@Home', 'call_agent_home_8d8bba8e'],
    ['__x__', 'call_x'],
    ['_', 'call_agent'],
    ['a--b', 'call_a--b'],
    ['', 'call_agent'],
    ['   ', 'call_agent'],
    ['a\tb\nc', 'call_a_b_c'],
  ])('of %j is %s', (name, tool) => {
    expect(toolNameOf(name)).toBe(tool)
  })

  test('of a long name is cut, with a digest of all of it', () => {
    const name = `Very long agent name that simply keeps going on and on ${'and on '.repeat(8)}`
    const digest = createHash('md5').update(name).digest('hex').slice(0, 8)

    expect(toolNameOf(name)).toBe(`call_very_long_agent_name_that_simply_keeps_going_on_an_${digest}`)
    expect(toolNameOf(name)).toHaveLength(64)
    expect(toolNameOf(`${name}!`)).not.toBe(toolNameOf(name))
  })

  test('a name that is cut at an underline ends without a second underline', () => {
    expect(toolNameOf(`${'x'.repeat(49)} ${'y'.repeat(40)}`)).toMatch(/^call_x{49}_[0-9a-f]{8}$/)
  })

  test('is one that every provider takes, whatever the agent is called', () => {
    fc.assert(
      fc.property(anyUnicode({ maxLength: 200 }), (name) => {
        const tool = toolNameOf(name)
        expect(tool).toMatch(/^call_[a-z0-9_-]{1,59}$/)
        expect(tool).not.toContain('__')
      }),
      { numRuns: 2_000 },
    )
  })

  test('is another for another name, unless they differ only in case, spaces and underlines', () => {
    const plain = (name: string) =>
      name
        .toLowerCase()
        .replace(/[\s_]+/g, '_')
        .replace(/^_|_$/g, '')
    fc.assert(
      fc.property(fc.string({ maxLength: 80 }), fc.string({ maxLength: 80 }), (one, other) => {
        fc.pre(plain(one) !== plain(other))
        expect(toolNameOf(one)).not.toBe(toolNameOf(other))
      }),
      { numRuns: 2_000 },
    )
  })
})
