import { expect, test } from 'vitest'
import { axisMarks, chartOf, type DayRow, lastDays } from '../../web/pages/ops/spent.ts'

const row = (day: string, model: string, usd: number | null, runs = 0): DayRow => ({
  day,
  model,
  usd,
  runs,
  usage: { inputTokens: 100, outputTokens: 10 },
})

const ROWS = [
  row('2026-11-16', 'a/one', 2),
  row('2026-11-17', 'a/one', 1),
  row('2026-11-17', 'b/two', null),
  row('2026-11-17', '', 0, 3),
]
const DAYS = ['2026-11-16', '2026-11-17']

test('dollars are summed by day and model, and models without a price are named', () => {
  expect(chartOf(ROWS, 'usd', DAYS)).toEqual({
    models: ['a/one', 'b/two'],
    bars: [
      { day: '2026-11-16', parts: [2, 0], total: 2 },
      { day: '2026-11-17', parts: [1, 0], total: 1 },
    ],
    total: 3,
    today: 1,
    unpriced: ['b/two'],
  })
})

test('tokens leave runs out, and runs leave tokens out', () => {
  expect(chartOf(ROWS, 'tokens', DAYS)).toMatchObject({ total: 330, today: 220 })
  expect(chartOf(ROWS, 'runs', DAYS)).toMatchObject({ models: ['runs'], total: 3 })
})

test('the smaller of many models stand together', () => {
  const many = ['a', 'b', 'c', 'd', 'e'].map((model, at) => row('2026-11-17', model, 5 - at))
  expect(chartOf(many, 'usd', DAYS)).toMatchObject({ models: ['a', 'b', 'c', 'others'], total: 15 })
})

test('an axis has round marks that reach over the largest bar', () => {
  expect(axisMarks(11.1)).toEqual([0, 5, 10, 15])
  expect(axisMarks(0)).toEqual([0, 0.5, 1, 1.5])
  expect(axisMarks(30)).toEqual([0, 10, 20, 30])
})

test('the last days end today, by UTC', () => {
  expect(lastDays(3, Date.parse('2026-03-01T23:59:00Z'))).toEqual(['2026-02-27', '2026-02-28', '2026-03-01'])
})
