// A table whose last column takes the room that is left: `ps` prints one.
//
// Must stay true:
//   - A line never exceeds the terminal. Columns go from the right; the last one, which is free text, goes first.
//   - Where there is no terminal, every column is whole.

import { outputColumns } from './output.ts'
import { cut, pad, padLeft, widthOf } from './width.ts'

export interface TableColumn {
  readonly title: string
  /** Numbers stand below each other from the right. */
  readonly isNumber?: boolean
}

export interface TableText {
  readonly head: string
  readonly lines: readonly string[]
}

const LONGEST = 24
const LEAST_LAST = 3
/** The widest line where no terminal cuts it. */
const WIDEST = 280
/** The room for the free text there, however wide the columns before it are. */
const LEAST_PIPED = 80

/** Lays rows out below the titles; `last` is the title of the free text at the end of each row. */
export function tableText(
  columns: readonly TableColumn[],
  last: string,
  rows: readonly (readonly string[])[],
): TableText {
  const isPiped = outputColumns() === Number.POSITIVE_INFINITY
  const whole = columns.map(({ title }, at) => Math.max(title.length, ...rows.map((row) => widthOf(row[at] ?? ''))))
  const wide = isPiped ? whole : whole.map((width) => Math.min(LONGEST, width))
  const room = isPiped ? Math.max(WIDEST, lengthOf(wide) + LEAST_PIPED) : Math.min(outputColumns() - 1, WIDEST)
  const widths = fitting(wide, room)
  const line = (row: readonly string[]): string => {
    const table = widths.map((width, at) => aligned(row[at] ?? '', width, columns[at])).join('  ')
    const left = room - widthOf(table) - 2
    const isWhole = widths.length === columns.length && left >= LEAST_LAST
    return isWhole ? `${table}  ${cut(row.at(-1) ?? '', left)}`.trimEnd() : table.trimEnd()
  }
  return { head: line([...columns.map(({ title }) => title), last]), lines: rows.map(line) }
}

/** How long a line of such columns is. */
function lengthOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + 2, -2)
}

/** Drops columns from the right if there is no room. */
function fitting(widths: readonly number[], room: number): readonly number[] {
  const shown = widths.filter((_, at) => lengthOf(widths.slice(0, at + 1)) <= room)
  return shown.length > 0 ? shown : widths.slice(0, 1)
}

function aligned(cell: string, width: number, column: TableColumn | undefined): string {
  return column?.isNumber === true ? padLeft(cell, width) : pad(cell, width)
}
