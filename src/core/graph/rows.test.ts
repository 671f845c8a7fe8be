import { expect, test } from 'vitest'
import type { Column, ColumnText } from '../base/keep-shape.ts'
import { NO_USAGE } from './content.ts'
import { DEFAULT_LIMITS, EMPTY_ACCOUNT } from './limits.ts'
import { CONVERSATION_COLUMNS, LINK_COLUMNS, NODE_COLUMNS, TOOL_OPTIONS, TURN_COLUMNS } from './rows.ts'

const TABLES = {
  Conversation: CONVERSATION_COLUMNS,
  Turn: TURN_COLUMNS,
  Node: NODE_COLUMNS,
  Link: LINK_COLUMNS,
} as const

/** Constants are compared by identity, so they are written by their names. */
const CONSTANTS = { NO_USAGE, DEFAULT_LIMITS, EMPTY_ACCOUNT } as const

const MADE = '// Made from graph/rows.ts: npx vitest run src/core/graph/rows.test.ts -u'

test('the copies of rows are made from the columns', async () => {
  const copies = tables().map(([row, columns]) => copyOf(row, Object.keys(columns)))

  await expect(
    [
      MADE,
      "import type { Own } from '../base/keep-shape.ts'",
      "import { NO_USAGE } from './content.ts'",
      "import { DEFAULT_LIMITS, EMPTY_ACCOUNT } from './limits.ts'",
      "import type { Conversation, KeptOptions, Link, Node, Turn } from './rows.ts'",
      '',
      ...copies,
      ...['Conversation', 'Turn', 'Link'].map((row) => usualRow(row as RowName)),
      rowText('NEW_NODE', 'Node', ({ usual, fresh = usual }) => fresh),
      optionsText(),
    ].join('\n'),
  ).toMatchFileSnapshot('rows.made.ts')
})

test('the text of rows is made from the columns', async () => {
  const writers = tables().map(([row, columns]) => writerOf(row, columns))
  const used = new Set(
    ['unless', ...writers.join('\n').matchAll(/\b(?:unlessEmpty|pack[A-Z]\w+|childOf)(?=\(row[.)])/g)].map(String),
  )

  await expect(
    [
      MADE,
      "import { NO_USAGE } from '../../graph/content.ts'",
      "import type { Conversation, Link, Node, Turn } from '../../graph/rows.ts'",
      `import {\n${[...used]
        .sort(byName)
        .map((name) => `  ${name},\n`)
        .join('')}} from './parts.ts'`,
      '',
      usualRow('Node'),
      ...writers,
    ]
      .join('\n')
      .trimEnd()
      .concat('\n'),
  ).toMatchFileSnapshot('../store/codec/rows.made.ts')
})

type RowName = keyof typeof TABLES
type Table = { readonly [name: string]: Column<unknown> }

function tables(): [RowName, Table][] {
  return Object.entries(TABLES) as [RowName, Table][]
}

function copyOf(row: RowName, names: readonly string[]): string {
  const fields = names.map((name) => (name === 'version' ? '    version,\n' : `    ${name}: row.${name},\n`))
  return `export function copyOf${row}(row: ${row}, version: number): Own<${row}> {\n  return {\n${fields.join('')}  }\n}\n`
}

function rowText(name: string, row: RowName, value: (column: Column<unknown>) => unknown): string {
  const fields = Object.entries<Column<unknown>>(TABLES[row] as Table).map(
    ([key, column]) => `  ${key}: ${literal(value(column))},\n`,
  )
  return `export const ${name}: ${row} = {\n${fields.join('')}}\n`
}

function usualRow(row: RowName): string {
  return rowText(`USUAL_${row.toUpperCase()}`, row, ({ usual }) => usual)
}

function optionsText(): string {
  const fields = TOOL_OPTIONS.map((name) => `    ${name}: from.${name},\n`)
  return `export function keptOptions(from: KeptOptions): KeptOptions {\n  return {\n${fields.join('')}  }\n}\n`
}

function writerOf(row: RowName, columns: Table): string {
  const fields = Object.entries(columns).flatMap(([name, column]) => entriesOf(name, column))
  return `export function pack${row}(row: ${row}): string {\n  return JSON.stringify({\n${fields.join('')}  })\n}\n`
}

function entriesOf(name: string, { usual, text }: Column<unknown>): string[] {
  if (text === 'never') return []
  const first = typeof text === 'object' && 'first' in text ? text.first : undefined
  const before = first === undefined ? [] : [`    ${first[0]}: ${first[1]}(row),\n`]
  const as = typeof text === 'object' && 'as' in text ? text.as : name
  return [...before, `    ${as}: ${written(name, usual, text)},\n`]
}

function written(name: string, usual: unknown, text: ColumnText | undefined): string {
  if (text === undefined) return `unless(row.${name}, ${literal(usual)})`
  if (text === 'always') return `row.${name}`
  if (text === 'empty') return `unlessEmpty(row.${name})`
  if (typeof text === 'object' && 'same' in text) return `unless(row.${name}, row.${text.same})`
  return typeof text === 'object' && text.by !== undefined ? `${text.by}(row)` : `row.${name}`
}

function literal(value: unknown): string {
  const constant = Object.entries(CONSTANTS).find(([, one]) => one === value)
  if (constant !== undefined) return constant[0]
  if (typeof value === 'string') return `'${value}'`
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = Object.entries(value).map(([key, one]) => `${key}: ${literal(one)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

function byName(a: string, b: string): number {
  return a.toLowerCase() < b.toLowerCase() ? -1 : 1
}
