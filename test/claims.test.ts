import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

/**
 * Every sentence of these pages that promises something for all cases is listed in claims.json: with
 * the test that proves it ("file | words of that file"), a list of them where it takes several, or as "no claim" where it
 * promises nothing. A sentence that you write or change goes there too.
 */
const claims = JSON.parse(readFileSync(at('test/claims.json'), 'utf8')) as Record<
  string,
  Record<string, string | string[]>
>
const pages = [
  'README.md',
  'SECURITY.md',
  'docs/promises.md',
  'docs/choose.md',
  'docs/reference/files.md',
  ...['docs/guide', 'docs/coming-from'].flatMap((folder) => readdirSync(at(folder)).map((name) => `${folder}/${name}`)),
]

test.each(pages)('every promise of %s is listed', (page) => {
  const listed = new Set(Object.keys(claims[page] ?? {}))
  const said = promises(readFileSync(at(page), 'utf8'))

  expect({
    missing: said.filter((one) => !listed.has(one)),
    gone: [...listed].filter((one) => !said.includes(one)),
  }).toEqual({ missing: [], gone: [] })
})

test('every proof is a test that there is', () => {
  const proofs = new Set(Object.values(claims).flatMap((page) => Object.values(page).flat()))

  expect([...proofs].filter((proof) => proof !== 'no claim' && !isThere(proof))).toEqual([])
})

function isThere(proof: string): boolean {
  const [file = '', words = ''] = proof.split(' | ')
  return words !== '' && existsSync(at(file)) && readFileSync(at(file), 'utf8').includes(words)
}

/** Sentences, cells of tables and items of lists with a word for all cases. */
function promises(page: string): string[] {
  const words = /\b(?:never|always|whole|only|exactly|every|nothing)\b/i
  const said = [...parts(page.replaceAll(/^```.*?^```/gms, ''))].flatMap((part) =>
    part.split(/(?<=[.!?])\s+(?=[A-Z`"*[])/),
  )
  const whole = said.map((one) => one.replaceAll(/\s+/g, ' ').trim())
  return [...new Set(whole.filter((one) => words.test(one.replaceAll(/`[^`]*`/g, ''))))]
}

function* parts(page: string): Generator<string> {
  let open: string[] = []
  for (const line of [...page.split('\n').map((one) => one.trim()), '']) {
    const isItem = /^(?:-|\d+\.)\s/.test(line)
    if (line === '' || isItem || line.startsWith('|') || line.startsWith('#')) {
      yield open.join(' ')
      open = []
    }
    if (line.startsWith('|'))
      yield* line
        .replace(/^\|+/, '')
        .replace(/\|+$/, '')
        .split(/(?<!\\)\|/)
    else if (!line.startsWith('#')) open.push(line.replace(/^(?:-|\d+\.)\s+/, ''))
  }
}

function at(file: string): string {
  return path.join(import.meta.dirname, '..', file)
}
