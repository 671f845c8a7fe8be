import { stripVTControlCharacters } from 'node:util'
import { count, duration, money } from '../terminal/amounts.ts'
import type { Colour, Paint } from '../terminal/paint.ts'
import type { ScreenLine } from '../terminal/screen.ts'
import { cut, cutFront, pad, padLeft, widthOf } from '../terminal/width.ts'
import type { Sign, TreeRow } from './tree-rows.ts'
import type { TokenCost } from './words.ts'

const SIGNS: Readonly<Record<Sign, readonly [text: string, colour: Colour]>> = {
  done: ['✓ ', 'green'],
  failed: ['✗ ', 'red'],
  works: ['● ', 'cyan'],
  waits: ['◌ ', 'dim'],
  person: ['? ', 'yellow'],
  stuck: ['! ', 'red'],
  none: ['', 'dim'],
}
const LONGEST_NAME = 28
const TIME = 8
const TOKENS = 11
const MONEY = 9

export interface LayoutOptions {
  readonly paint: Paint
  /** The width of a line; Infinity for no limit. */
  readonly columns: number
}

/** Lays out rows as one table: agent, text, tokens, money, time. No line is wider than the terminal. */
export function layout(rows: readonly TreeRow[], { paint, columns }: LayoutOptions): ScreenLine[] {
  // The last column stays free: a full line would make the terminal break it.
  const width = columns - 1
  const hasMoney = rows.some(({ spend }) => (spend?.usd ?? 0) > 0)
  const numbers = width < 50 ? 0 : TOKENS + TIME + (hasMoney ? MONEY : 0)
  const names = Math.min(Math.max(...rows.map(nameWidth), 0), Math.floor(Math.min(width, 200) / 2), LONGEST_NAME + 12)
  const texts = Number.isFinite(width) ? width - names - 2 - numbers : longest(rows)
  return rows.map((row) => lineOf(row, { paint, names, texts, numbers, hasMoney, width }))
}

/** Without a width limit the text may be as long as it is, within reason. */
function longest(rows: readonly TreeRow[]): number {
  return Math.min(Math.max(...rows.map(({ text }) => widthOf(text)), 0), 160)
}

interface Columns extends Pick<LayoutOptions, 'paint'> {
  readonly names: number
  readonly texts: number
  readonly numbers: number
  readonly hasMoney: boolean
  readonly width: number
}

function nameWidth({ prefix, sign, name, text }: TreeRow): number {
  return text === '' ? 0 : widthOf(prefix) + SIGNS[sign][0].length + Math.min(widthOf(name), LONGEST_NAME)
}

function lineOf(row: TreeRow, { paint, names, texts, numbers, hasMoney, width }: Columns): ScreenLine {
  const [sign, colour] = SIGNS[row.sign]
  if (row.text === '') return measured(paint('dim', cut(`${row.prefix}${row.name}`, width)))
  const prefix = cut(row.prefix, Math.max(0, names - 4))
  const name = pad(row.name, names - widthOf(prefix) - sign.length)
  const tail = numbers === 0 ? '' : amounts(row, hasMoney)
  const shown = row.label === undefined ? row.text : cutSaid(row.text, row.label, texts)
  const text = tail.trim() === '' ? cut(shown, texts) : pad(shown, texts)
  const isQuiet = row.sign === 'waits'
  const line = `${paint('dim', prefix)}${paint(colour, sign)}${isQuiet ? name : paint('bold', name)}  ${isQuiet ? paint('dim', text) : text}${paint('dim', tail.trimEnd())}`
  return measured(line)
}

/** Cuts streamed text: keeps the label and the end of the text, which is the newest part. */
function cutSaid(text: string, label: number, columns: number): string {
  return text.slice(0, label) + cutFront(text.slice(label), columns - label)
}

function measured(text: string): ScreenLine {
  return { text, columns: widthOf(stripVTControlCharacters(text)) }
}

function amounts({ spend, ms }: TreeRow, hasMoney: boolean): string {
  const tokens = spend === null || spend.tokens === 0 ? '' : `${count(spend.tokens)} tok`
  const price = hasMoney ? padLeft(priceOf(spend), MONEY) : ''
  return `${padLeft(tokens, TOKENS)}${price}${padLeft(ms === null ? '' : duration(ms), TIME)}`
}

function priceOf(spend: TokenCost | null): string {
  if (spend === null || spend.tokens === 0) return ''
  return spend.usd === null ? '?' : money(spend.usd)
}
