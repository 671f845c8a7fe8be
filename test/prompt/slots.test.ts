// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of prompts are written like this

import { field, Prompt, prompt } from 'legate/prompt'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import type { ModelRequest } from '../../src/core/model/model.ts'

describe('two layers', () => {
  test('two requests of one agent share its system and have only their own input', () => {
    const agent = prompt({ system: 'You are brief.' })

    const [first, second] = [agent.input('one').toMessages(), agent.input('two').toMessages()]

    expect(first).toEqual([
      { role: 'system', content: 'You are brief.' },
      { role: 'user', content: 'one' },
    ])
    expect(second).toEqual([
      { role: 'system', content: 'You are brief.' },
      { role: 'user', content: 'two' },
    ])
  })

  test('two requests that are made before either is used keep what was said to each', () => {
    const agent = prompt()
    const first = agent.input('one').instruct('Shout.')
    const second = agent.input('two')
    const third = first.input('three').instruct('Whisper.')

    expect(first.get('input')).toBe('one')
    expect(first.get('instruct')).toBe('Shout.')
    expect(second.get('instruct')).toBeUndefined()
    expect(third.get('input')).toBe('three')
    expect(agent.get('input')).toBeUndefined()
  })

  test('what a caller does with its own object later changes no prompt, and what a prompt gives is frozen', () => {
    const info = { tags: ['a'] }
    const made = prompt()
      .info(info)
      .info({ more: { deep: 1 } })
    info.tags.push('b')

    expect(made.get('info')).toEqual({ tags: ['a'], more: { deep: 1 } })
    const got = made.get('info') as { more: { deep: number } }
    expect(() => {
      got.more.deep = 2
    }).toThrow(TypeError)
    expect(() => {
      ;(got as Record<string, unknown>)['x'] = 2
    }).toThrow(TypeError)
  })

  test('a request that cannot be made leaves nothing behind', () => {
    const agent = prompt({ system: 'S' })
    const request = agent.input('one')

    expect(() => request.info({ call: () => 1 })).toThrow(/"call" is a function/)
    expect(() => request.output({ n: 5 as never })).toThrow(/output\.n: 5 is no type/)
    expect(request.toMessages()).toEqual([
      { role: 'system', content: 'S' },
      { role: 'user', content: 'one' },
    ])
  })

  test('a request says more than its agent where both say objects, and otherwise instead of it (F W-22)', () => {
    const agent = prompt({ info: { a: 1, deep: { x: 1 } }, examples: ['one', 'two'], instruct: 'Agent.' })

    const request = agent
      .info({ deep: { y: 2 } })
      .examples([])
      .instruct('Request.')

    expect(request.get('info')).toEqual({ a: 1, deep: { x: 1, y: 2 } })
    expect(request.get('examples')).toEqual([])
    expect(request.get('instruct')).toBe('Request.')
    expect(agent.get('examples')).toEqual(['one', 'two'])
    expect(agent.add('examples', 'three').get('examples')).toEqual(['one', 'two', 'three'])
  })

  test('a slot that is removed from a request hides what the agent says', () => {
    const agent = prompt({ info: 'secret', note: 'n' })

    expect(agent.remove('info').get('info')).toBeUndefined()
    expect(agent.remove('note').input('x').toMessages().at(-1)?.content).not.toContain('[note]')
    expect(agent.remove('info').info('other').get('info')).toBe('other')
  })

  test('always says it for every request', () => {
    const agent = new Prompt().role('A clerk', { always: true })

    expect(agent.get('system', 'agent')).toEqual({ your_role: 'A clerk' })
    expect(agent.get('system', 'request')).toBeUndefined()
  })
})

describe('what is said twice in one layer', () => {
  test('objects are merged, lists get what they do not have, all else is replaced', () => {
    const made = prompt()
      .info({ a: 1, deep: { x: 1 } })
      .info({ b: 2, deep: { y: 2 } })
      .examples(['one'])
      .examples(['one', 'two'])
      .examples('three')
      .instruct('first')
      .instruct('second')

    expect(made.get('info')).toEqual({ a: 1, b: 2, deep: { x: 1, y: 2 } })
    expect(made.get('examples')).toEqual(['one', 'two', 'three'])
    expect(made.get('instruct')).toBe('second')
    expect(made.replace('info', { c: 3 }).get('info')).toEqual({ c: 3 })
  })

  test('two outputs are one with the fields of both, and a field that is described anew is replaced', () => {
    const made = prompt()
      .output({ a: field('int', 'first'), b: { c: 'str' } })
      .output({ a: 'str', b: { d: 'bool' } })

    expect(made.get('output')).toEqual({ a: 'str', b: { c: 'str', d: 'bool' } })
  })

  test('the same text twice in a conversation is two turns', () => {
    const turn = { role: 'user', content: 'again' }
    const made = prompt().chatHistory([turn]).addChatHistory({ role: 'assistant', content: 'ok' }).addChatHistory(turn)

    expect(made.get('chat_history')).toEqual([turn, { role: 'assistant', content: 'ok' }, turn])
  })

  test('history and attachments take one or many, in any form', () => {
    const made = prompt()
      .chatHistory(['hi', 5, { content: { type: 'image' } }, { role: 'tool', content: null, name: 'x' }])
      .attachment('look')
      .attachment({ type: 'image_url', image_url: { url: 'https://x/y.png' } })

    expect(made.get('chat_history')).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'user', content: '5' },
      { role: 'user', content: [{ type: 'image', image: null }] },
      { role: 'tool', content: '', name: 'x' },
    ])
    expect(made.get('attachment')).toEqual([
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: 'https://x/y.png' } },
    ])
    expect(() => prompt().chatHistory({ role: 'user' })).toThrow(/a message has a role and content/)
    expect(() => prompt().chatHistory({ role: 7, content: 'x' })).toThrow(/a role is a text, not 7/)
  })

  test('tools of one name are one; what is no tool is refused', () => {
    const made = prompt()
      .tools({ name: 'a', desc: 'old' })
      .tools([{ name: 'a', desc: 'new' }, { name: 'b' }])

    expect(made.get('tools')).toEqual([
      { name: 'a', desc: 'new', kwargs: {} },
      { name: 'b', desc: '', kwargs: {} },
    ])
    expect(() => prompt().tools('a')).toThrow(/tools\[0\] is not an object/)
    expect(() => prompt().tools({ desc: 'x' })).toThrow(/tools\[0\] needs a name/)
    expect(() => prompt().tools({ name: 'a', parameters: {} })).toThrow(/tools\[0\] has no "parameters"/)
    expect(() => prompt().tools({ name: 'a', kwargs: ['str'] })).toThrow(/tools\[0\]\.kwargs is an object of fields/)
    expect(() => prompt().tools({ name: 'a', kwargs: { q: 7 } })).toThrow(/tools\[0\]\.kwargs\.q: 7 is no type/)
  })

  test('rule, role and userInfo are parts of system and pointed at, whatever system is', () => {
    const made = prompt().rule('Be kind.').system('You sell shoes.').role('clerk').userInfo({ name: 'Ann' })

    expect(made.get('system')).toEqual({
      rule: 'Be kind.',
      instructions: 'You sell shoes.',
      your_role: 'clerk',
      user_info: { name: 'Ann' },
    })
    expect(JSON.stringify(made.get('instruct'))).toMatch(
      /\{system\.rule\}.*\{system\.your_role\}.*\{system\.user_info\}/,
    )
    expect(prompt().system('Text.').rule('R').get('system')).toEqual({ instructions: 'Text.', rule: 'R' })
    expect(prompt().instruct('Own.').rule('R').rule('R').get('instruct')).toHaveLength(2)
    const always = prompt().rule('R', { always: true })
    expect(always.instruct(['One.', 'Two.']).get('instruct')).toEqual([expect.stringContaining('rule'), 'One.', 'Two.'])
    expect(always.instruct('One.').get('instruct')).toEqual([expect.stringContaining('rule'), 'One.'])
    expect(always.remove('instruct').get('instruct')).toBeUndefined()
  })

  test('what cannot be is refused with what to do', () => {
    expect(() => prompt().outputFormat('')).toThrow(/output_format is a text/)
    expect(() => prompt().set('options', ['x'])).toThrow(/options are an object/)
    expect(() => prompt().add('output', 'x')).toThrow(/output holds no list/)
    expect(() => prompt().set('', 1)).toThrow(/needs a name/)
    expect(() => prompt().input(1n)).toThrow(/BigInt/)
  })
})

describe('placeholders', () => {
  const mappings = { a: 1, b: [1], v: { deep: true }, name: 'key', text: 'x' }

  test('known names are put in, unknown ones stay, and pointers are not touched', () => {
    const made = prompt().input('${a} ${ b } ${c} {input}', { mappings })

    expect(made.get('input')).toBe('1 [1] ${c} {input}')
  })

  test('a text that is one placeholder becomes the value, of its type', () => {
    const made = prompt().info({ whole: '${v}', spaced: ' ${ a } ' }, { mappings })

    expect(made.get('info')).toEqual({ whole: { deep: true }, spaced: 1 })
  })

  test('keys are filled too, at any depth, in lists and in outputs', () => {
    const made = prompt()
      .info({ '${name}': [{ 'is ${text}': '${text}!' }] }, { mappings })
      .set('output', { '${name}': { $type: '${text}', $desc: 'of ${a}' } }, { mappings })

    expect(made.get('info')).toEqual({ key: [{ 'is x': 'x!' }] })
    expect(made.get('output')).toEqual({ key: { $type: 'x', $desc: 'of 1' } })
  })

  test('what was put in is not looked at again', () => {
    const made = prompt().input('${x} and ${y}', { mappings: { x: '${y}', y: '${x}' } })

    expect(made.get('input')).toBe('${y} and ${x}')
  })

  test('two keys that become one are an error', () => {
    expect(() => prompt().info({ '${name}': 1, key: 2 }, { mappings })).toThrow(/two keys become "key"/)
  })

  test('names of the language itself are ordinary names', () => {
    const made = prompt().input('${constructor} ${__proto__} ${toString}', { mappings: { toString: 'own' } })

    expect(made.get('input')).toBe('${constructor} ${__proto__} own')
  })
})

test('texts lose the indentation that their lines share, and no other', () => {
  const made = prompt().instruct(`
    First:
      second.

    Third.
  `)

  expect(made.get('instruct')).toBe('First:\n  second.\n\nThird.')
})

test('the type of an answer follows from the schema or the shape', () => {
  const typed = prompt().output(z.object({ n: z.number() }))
  const shaped = prompt().output({ reply: field('str', 'd'), tags: ['int'], deep: { ok: 'bool' }, free: 'a|b' })
  const request = typed.input('x').toRequest()

  expectTypeOf(typed.answer).toEqualTypeOf<{ n: number } | undefined>()
  expectTypeOf(shaped.answer).toEqualTypeOf<
    { reply: string; tags: number[]; deep: { ok: boolean }; free: unknown } | undefined
  >()
  expectTypeOf({ ...request, path: [] }).toExtend<ModelRequest>()
  expect(request.outputSchema).toMatchObject({ type: 'object', required: ['n'] })
})

test('a subclass goes through every method: an agent’s request can have a start of its own', () => {
  class Startable extends Prompt {
    readonly agent: string

    constructor(agent: string, layers?: Prompt['layers']) {
      super(layers)
      this.agent = agent
    }

    start(): string {
      return `${this.agent}: ${this.toText({ roleLines: false })}`
    }

    protected override withLayers(layers: Prompt['layers']): this {
      return new Startable(this.agent, layers) as this
    }
  }

  expect(new Startable('clerk').input('x').rule('r').remove('system').remove('instruct').start()).toBe(
    'clerk: [INPUT]:\nx\n\n[OUTPUT]:',
  )
})
