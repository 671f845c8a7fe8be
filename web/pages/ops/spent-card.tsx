import { type ReactNode, useState } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import { count, listOf, modelName, money, tokens } from '../../words/format.ts'
import { Card } from './card.tsx'
import { axisMarks, chartOf, type DayRow, lastDays, type SpentBar, type SpentChart, type Unit } from './spent.ts'

const DAYS = 14
const UNITS: readonly (readonly [Unit, string])[] = [
  ['usd', 'Dollars'],
  ['tokens', 'Tokens'],
  ['runs', 'Runs'],
]
const WORDS: Readonly<Record<Unit, (amount: number) => string>> = {
  usd: (amount) => (amount === 0 ? '$0' : amount < 0.1 ? `$${amount.toFixed(3)}` : money(amount)),
  tokens,
  runs: (amount) => count(amount, 'run'),
}

export function SpentCard(): ReactNode {
  const [unit, setUnit] = useState<Unit>('usd')
  const days = lastDays(DAYS)
  const range = { from: days[0] ?? '', to: days.at(-1) ?? '' }
  const usage = useRequest(`lists usage ${range.from}`, async () => (await client.usageByDay(range)).usage)
  const units = (
    <fieldset className="seg" aria-label="Unit">
      {UNITS.map(([name, words]) => (
        <button key={name} type="button" aria-pressed={unit === name} onClick={() => setUnit(name)}>
          {words}
        </button>
      ))}
    </fieldset>
  )
  return (
    <Card title="Spent" width={8} tools={units} asked={usage}>
      {(rows) => <Spent chart={chartOf(rows as unknown as readonly DayRow[], unit, days)} unit={unit} />}
    </Card>
  )
}

interface SpentProps {
  readonly chart: SpentChart
  readonly unit: Unit
}

function Spent({ chart, unit }: SpentProps): ReactNode {
  const words = WORDS[unit]
  return (
    <div className="pad">
      <div className="row usage-h">
        <span className="big">{words(chart.today)}</span>
        <span className="dim">
          today, {words(chart.total)} in {DAYS} days
        </span>
        <span className="grow" />
        <span className="legend">
          {chart.models.map((name, at) => (
            <span key={name}>
              <i className={`sw sw${at + 1}`} />
              {modelName(name)}
            </span>
          ))}
        </span>
      </div>
      <Bars chart={chart} words={words} />
      {chart.unpriced.length === 0 ? null : (
        <p className="meta wrap-text">
          The price of {listOf(chart.unpriced)} is not known, so its dollars are not here.
        </p>
      )}
    </div>
  )
}

const WIDTH = 640
const LEFT = 52
const [TOP, BOTTOM] = [20.5, 192.5]

function Bars({ chart, words }: { readonly chart: SpentChart; readonly words: (amount: number) => string }): ReactNode {
  const marks = axisMarks(Math.max(...chart.bars.map(({ total }) => total)))
  const most = marks.at(-1) ?? 1
  const y = (amount: number) => BOTTOM - (amount / most) * (BOTTOM - TOP)
  const room = (WIDTH - LEFT) / chart.bars.length
  return (
    <svg className="bars" viewBox={`0 0 ${WIDTH} 222`} role="img" aria-label={sentenceOf(chart, words)}>
      {marks.map((mark) => (
        <g key={mark}>
          <line className="grid" x1={LEFT} x2={WIDTH} y1={y(mark)} y2={y(mark)} />
          <text className="ax" x={LEFT - 8} y={y(mark) + 4} textAnchor="end">
            {words(mark).replace(/ runs?$/, '')}
          </text>
        </g>
      ))}
      {chart.bars.map((bar, at) => (
        <Bar
          key={bar.day}
          bar={bar}
          y={y}
          place={{ x: LEFT + at * room, room, isLast: at === chart.bars.length - 1 }}
        />
      ))}
    </svg>
  )
}

interface BarProps {
  readonly bar: SpentBar
  readonly y: (amount: number) => number
  readonly place: { readonly x: number; readonly room: number; readonly isLast: boolean }
}

function Bar({ bar, y, place }: BarProps): ReactNode {
  const width = place.room * 0.58
  const x = place.x + (place.room - width) / 2
  const below = bar.parts.map((_, at) => bar.parts.slice(0, at).reduce((all, one) => all + one, 0))
  return (
    <g>
      {bar.parts.map((part, at) => {
        const from = below[at] ?? 0
        const height = Math.max(0, y(from) - y(from + part) - (at === 0 ? 0 : 1))
        return height === 0 ? null : (
          <rect key={at} className={`m${at + 1}`} x={x} y={y(from + part)} width={width} height={height} rx={1.5} />
        )
      })}
      <text className="ax" x={place.x + place.room / 2} y={210} textAnchor="middle">
        {place.isLast ? 'today' : Number(bar.day.slice(-2))}
      </text>
    </g>
  )
}

function sentenceOf({ bars, total }: SpentChart, words: (amount: number) => string): string {
  const most = bars.reduce((a, b) => (b.total > a.total ? b : a), bars[0] ?? { day: '', parts: [], total: 0 })
  if (total === 0) return `Nothing was spent in ${bars.length} days`
  return `${words(total)} in ${bars.length} days; most on ${most.day}, ${words(most.total)}`
}
