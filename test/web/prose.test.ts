import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readPieces, readProse } from '../../web/parts/prose.tsx'

test('a text becomes paragraphs, headings, lists, quotes and code', () => {
  const text =
    '# Title\n\nFirst line\nsecond line\n\n- one\n- two\n  more\n\n1. a\n2) b\n\n> said\n\n```ts\nconst x = 1\n\n<b>\n```\nend'

  expect(readProse(text)).toEqual([
    { kind: 'heading', text: 'Title' },
    { kind: 'paragraph', text: 'First line\nsecond line' },
    { kind: 'list', isNumbered: false, items: ['one', 'two\nmore'] },
    { kind: 'list', isNumbered: true, items: ['a', 'b'] },
    { kind: 'quote', text: 'said' },
    { kind: 'code', text: 'const x = 1\n\n<b>' },
    { kind: 'paragraph', text: 'end' },
  ])
})

test('code that is still being written is code', () => {
  expect(readProse('see:\n```\nnpm i')).toEqual([
    { kind: 'paragraph', text: 'see:' },
    { kind: 'code', text: 'npm i' },
  ])
})

test('a line has code and bold; links, images and HTML stay text', () => {
  expect(readPieces('Use `npm i` **now**')).toEqual([
    { kind: 'plain', text: 'Use ' },
    { kind: 'code', text: 'npm i' },
    { kind: 'plain', text: ' ' },
    { kind: 'bold', text: 'now' },
  ])
  const hostile = '<img src=x onerror=alert(1)> ![a](https://evil.example/x.png) [b](javascript:alert(1))'
  expect(readPieces(hostile)).toEqual([{ kind: 'plain', text: hostile }])
})

test('no letter is lost, whatever a model says', () => {
  const letters = (text: string) => text.replace(/[^a-z]/g, '')
  const line = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', '`', '*', '-', '>', '#', '1', '.') })
  fc.assert(
    fc.property(line, (text) => {
      const shown = readProse(text).map((block) => (block.kind === 'list' ? block.items.join('') : block.text))
      // The word behind the fence of code names its language.
      const said = text.replaceAll(/^(\s{0,3})(`{3,}|~{3,}).*$/gm, '')
      if (said === text) expect(letters(shown.join(''))).toBe(letters(text))
    }),
  )
})

test('the pieces of a text take time linear in its size', () => {
  const text = '**`'.repeat(50_000)
  const from = performance.now()
  readProse(text)
  readPieces(text)
  expect(performance.now() - from).toBeLessThan(5_000)
})
