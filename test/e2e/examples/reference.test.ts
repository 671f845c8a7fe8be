import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { DURABLE_EVENTS, LIVE_EVENTS } from 'legate/rows'
import { describe, expect, test } from 'vitest'
import { AGENT_DIALECTS } from '../../../src/recipes/dialects/index.ts'

const root = path.resolve(import.meta.dirname, '../../..')

test('the reference is what the script makes of the types, and every option and event has words', {
  timeout: 120_000,
}, () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/reference.mjs', '--check'], {
    cwd: root,
    encoding: 'utf8',
  })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

test('the reference has every event there is', () => {
  const page = textOf('docs/reference/events.md')
  const sections = [...page.matchAll(/^### `([\w-]+)`$/gm)].map(([, type]) => type)

  expect(sections.toSorted()).toEqual([...DURABLE_EVENTS, ...LIVE_EVENTS].toSorted())
})

describe('docs/reference/files.md', () => {
  const page = textOf('docs/reference/files.md')

  test.each(AGENT_DIALECTS)('has every field of the dialect $name', ({ name }) => {
    const common = codesIn(page.slice(page.indexOf('Fields of all dialects'), page.indexOf('Fields by dialect')))
    const rows = [...page.matchAll(/^\| `(\w+)` \| (.*?) \|/gm)].filter(([, dialect]) => dialect === name)
    const listed = new Set([...common, ...rows.flatMap(([, , fields = '']) => codesIn(fields))])

    expect(fieldsReadBy(name).filter((field) => !listed.has(field))).toEqual([])
  })

  test('has every field of a recipe', () => {
    const sources = ['read-recipe.ts', 'parameters.ts'].map((file) => textOf(`src/recipes/recipe/${file}`)).join('\n')
    const reads = /\.(?:text|requiredText|texts|textMap|flag|json|list|map|number|wholeNumber|get|choice)\('(\w+)'/g
    const fields = [...sources.matchAll(reads)].map(([, field = '']) => field)
    const listed = new Set(codesIn(page.slice(0, page.indexOf('## Agent files'))))

    expect(fields.length).toBeGreaterThan(40)
    expect(fields.filter((field) => !listed.has(field))).toEqual([])
  })
})

/** The keys that a dialect asks its draft for: `draft.text('name')`, `draft.ignore(['hooks'], ...)`. */
function fieldsReadBy(dialect: string): string[] {
  const source = textOf(`src/recipes/dialects/${dialect}.ts`)
  const calls = source.matchAll(
    /draft\.(?:allowTools|denyTools|effort|flag|ignore|keep|number|servers|text|texts|tree)\(([^()]*)\)/g,
  )
  const sampling = source.includes('draft.sampling()') ? ['temperature', 'top_p', 'reasoningEffort'] : []
  const hooks = source.includes('readHooks(draft)') ? ['hooks'] : []
  return [...calls].flatMap(([, given = '']) => fieldNames(given)).concat(sampling, hooks)
}

/** What stands in quotes, up to the reason of `ignore`. */
function fieldNames(given: string): string[] {
  return [...given.replace(/\].*/s, '').matchAll(/'([\w-]+)'/g)].map(([, field = '']) => field)
}

function codesIn(text: string): string[] {
  return [...text.matchAll(/`([\w-]+)`/g)].map(([, code = '']) => code)
}

function textOf(file: string): string {
  return readFileSync(path.join(root, file), 'utf8')
}
