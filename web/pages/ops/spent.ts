// Usage by day and model, ready to be drawn: one bar a day, one part a model.

/** One row of usage, as the server sums it up. Runs are counted where `model` is empty. */
export interface DayRow {
  readonly day: string
  readonly model: string
  readonly runs: number
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
  readonly usd: number | null
}

export type Unit = 'usd' | 'tokens' | 'runs'

export interface SpentBar {
  readonly day: string
  /** One number for each of `models`, in their order. */
  readonly parts: readonly number[]
  readonly total: number
}

export interface SpentChart {
  /** The names of the parts, the largest first; the rest is the last one. */
  readonly models: readonly string[]
  readonly bars: readonly SpentBar[]
  readonly total: number
  readonly today: number
  /** Models whose price is not known: their dollars are not in the bars. */
  readonly unpriced: readonly string[]
}

const MOST_MODELS = 4
const REST = 'others'
const ALL = 'runs'

/** The last days by UTC, today included: `2026-11-17`. */
export function lastDays(count: number, now = Date.now()): readonly string[] {
  return Array.from({ length: count }, (_, at) => dayOf(now - (count - 1 - at) * 86_400_000))
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

export function chartOf(rows: readonly DayRow[], unit: Unit, days: readonly string[]): SpentChart {
  const counted = rows.filter(({ model }) => (unit === 'runs') === (model === ''))
  const models = largest(counted, unit)
  const bars = days.map((day) =>
    barOf(
      counted.filter((row) => row.day === day),
      unit,
      { day, models },
    ),
  )
  return {
    models,
    bars,
    total: sum(bars.map(({ total }) => total)),
    today: bars.at(-1)?.total ?? 0,
    unpriced: unit === 'usd' ? [...new Set(counted.filter(({ usd }) => usd === null).map(({ model }) => model))] : [],
  }
}

function largest(rows: readonly DayRow[], unit: Unit): readonly string[] {
  const sums = new Map<string, number>()
  for (const row of rows) sums.set(nameOf(row), (sums.get(nameOf(row)) ?? 0) + amountOf(row, unit))
  const names = [...sums].sort(([, a], [, b]) => b - a).map(([name]) => name)
  return names.length <= MOST_MODELS ? names : [...names.slice(0, MOST_MODELS - 1), REST]
}

interface BarPlace {
  readonly day: string
  readonly models: readonly string[]
}

function barOf(rows: readonly DayRow[], unit: Unit, { day, models }: BarPlace): SpentBar {
  const parts = models.map((name) =>
    sum(rows.filter((row) => partOf(row, models) === name).map((row) => amountOf(row, unit))),
  )
  return { day, parts, total: sum(parts) }
}

function partOf(row: DayRow, models: readonly string[]): string {
  return models.includes(nameOf(row)) ? nameOf(row) : REST
}

function nameOf({ model }: DayRow): string {
  return model === '' ? ALL : model
}

function amountOf({ runs, usage, usd }: DayRow, unit: Unit): number {
  if (unit === 'usd') return usd ?? 0
  return unit === 'runs' ? runs : usage.inputTokens + usage.outputTokens
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0)
}

/** The marks of an axis from nothing to at least `most`: three steps of 1, 2 or 5 times a power of ten. */
export function axisMarks(most: number): readonly number[] {
  const raw = (most > 0 ? most : 1) / 3
  const power = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= raw * 0.999) ?? raw
  return [0, 1, 2, 3].map((times) => times * step)
}
