import type { Id, RunEvent } from '../../index.ts'
import type { Desk } from '../desk/desk.ts'
import { count, duration, money, plural } from '../terminal/amounts.ts'
import { cleanText, hangingLines, oneLine, printable, terminalWidth } from '../terminal/clean.ts'
import type { Paint } from '../terminal/paint.ts'
import { plainLine, Screen, type ScreenLine } from '../terminal/screen.ts'
import { wrap } from '../terminal/width.ts'
import { type ActivityOf, activityReader } from './activity.ts'
import { layout } from './layout.ts'
import { questionLines, type ScreenQuestion } from './request-text.ts'
import { type WatchedRun, WatchedTree } from './run-tree.ts'
import { spendOfTree, type TreeRow, textRow, treeRows } from './tree-rows.ts'
import { totalSpend } from './words.ts'

/** At most twelve frames a second, and at least four, so that the seconds advance. */
const LEAST_MS = 85
const MOST_MS = 250
/** The most lines that stay after the end; they may be more than the screen has. */
const MOST_LEFT = 500
/** The lines of the tree that stay visible beside a long question. */
const LEAST_TREE = 3
/** The lines of an answer that are shown while it arrives. */
const MOST_SPOKEN = 8

export interface LiveTreeOptions {
  readonly paint: Paint
  readonly hint: string
  /** The part that stays after the end. Default: the whole tree. */
  readonly leaves?: 'tree' | 'footer'
  /**
   * Whether the first run's text appears below the tree while it arrives. The caller prints the whole answer at the
   * end.
   */
  readonly speaks?: boolean
}

/** The live trees of some runs on a terminal. */
export class LiveTree {
  readonly wantsHistory = true
  private readonly desk: Desk
  private readonly paint: Paint
  private readonly screen: Screen = new Screen(process.stdout)
  private readonly trees: Map<Id, WatchedTree> = new Map()
  private timer: ReturnType<typeof setInterval> | undefined
  private readonly watchedSince: number = Date.now()
  private hint: string
  private readonly leaves: 'tree' | 'footer'
  private readonly speaks: boolean
  private question: ScreenQuestion | null = null
  private shown: (() => void) | undefined
  private drawnAt = 0
  private soon: ReturnType<typeof setTimeout> | undefined
  private readonly onResize = (): void => this.draw()
  /** Reads what runs do, as of the last frame. */
  private doing: ActivityOf = () => null
  private isLooking = false
  private isClosed = false

  constructor(desk: Desk, { paint, hint, leaves = 'tree', speaks = false }: LiveTreeOptions) {
    this.desk = desk
    this.paint = paint
    this.hint = hint
    this.leaves = leaves
    this.speaks = speaks
  }

  take(event: RunEvent, runId: Id): void {
    const tree = this.trees.get(runId) ?? new WatchedTree(runId)
    this.trees.set(runId, tree)
    tree.take(event)
    if (event.type === 'warning') this.say(this.warning(event))
    if (this.timer === undefined) this.begin()
    if (this.soon !== undefined) return
    this.soon = setTimeout(() => this.redraw(), Math.max(0, this.drawnAt + LEAST_MS - Date.now()))
  }

  private warning(event: Extract<RunEvent, { type: 'warning' }>): string {
    const lines = hangingLines(warningLine(event), { columns: terminalWidth(process.stdout) })
    return lines.map((line) => `${this.paint('yellow', line)}\n`).join('')
  }

  say(text: string): void {
    this.screen.print(printable(text))
  }

  ask(question: ScreenQuestion | null, shown?: () => void): void {
    if (question === this.question) return
    this.question = question
    this.shown = shown
    if (this.trees.size > 0) this.draw()
  }

  close(): void {
    this.question = null
    this.isClosed = true
    clearInterval(this.timer)
    clearTimeout(this.soon)
    process.stdout.off('resize', this.onResize)
    this.hint = ''
    if (this.trees.size > 0) this.draw(this.leaves === 'tree' ? MOST_LEFT : 0)
    this.screen.close()
  }

  private begin(): void {
    this.timer = setInterval(() => this.redraw(), MOST_MS)
    process.stdout.on('resize', this.onResize)
  }

  /** Looks at the runs, then draws them. If the store is locked for a moment, the previous frame stays. */
  private redraw(): void {
    clearTimeout(this.soon)
    this.soon = undefined
    if (this.isLooking) return
    this.isLooking = true
    activityReader(this.desk, [...this.trees.keys()])
      .then((doing) => {
        this.doing = doing
        if (!this.isClosed) this.draw()
      })
      .catch(() => undefined)
      .finally(() => {
        this.isLooking = false
      })
  }

  private draw(most?: number): void {
    clearTimeout(this.soon)
    this.soon = undefined
    this.drawnAt = Date.now()
    try {
      this.screen.draw(this.lines(most))
    } catch {
      // The store is locked for a moment: the previous frame stays.
      return
    }
    const { shown } = this
    this.shown = undefined
    shown?.()
  }

  private lines(most?: number): ScreenLine[] {
    const { columns, rows } = this.screen.measure()
    const asked = this.asked(columns - 1, rows)
    const spoken = most === undefined ? this.spoken(columns - 1, rows - 2 - asked.length) : []
    const shown = most === 0 ? [] : [...this.trees.values()]
    const table = treeRows(shown, {
      doing: ({ id, hears }) => this.doing(id, hears),
      now: Date.now(),
      // One row for the footer, one for the cursor.
      most: most ?? Math.max(1, rows - 2 - asked.length - spoken.length),
    })
    const lines = layout([...table, this.footer()], { paint: this.paint, columns })
    const all = [...lines.slice(0, -1), ...spoken, ...asked, ...lines.slice(-1)]
    return most === undefined ? all.slice(-Math.max(1, rows - 1)) : all
  }

  /** The last lines of the streamed answer, if the tree and the question leave room. */
  private spoken(columns: number, rows: number): ScreenLine[] {
    const [tree] = this.trees.values()
    const hears = this.speaks ? tree?.root?.hears : undefined
    const room = Math.min(MOST_SPOKEN, rows - Math.min(tree?.size ?? 0, LEAST_TREE) - 1)
    if (hears?.kind !== 'text' || hears.text.trim() === '' || room < 1) return []
    const { lines } = wrap(cleanText(hears.text).trim(), columns)
    return [plainLine(''), ...lines.slice(-room).map(plainLine)]
  }

  private asked(columns: number, rows: number): ScreenLine[] {
    if (this.question === null) return []
    const size = [...this.trees.values()].reduce((sum, tree) => sum + tree.size, 0)
    const room = rows - 2 - Math.min(size, LEAST_TREE)
    return questionLines(this.question, columns, room).map((text) => ({
      ...plainLine(text),
      text: this.paint('yellow', text),
    }))
  }

  private footer(): TreeRow {
    const trees = [...this.trees.values()]
    const roots = trees.flatMap(({ root }) => root ?? [])
    const { tokens, usd } = totalSpend(roots.map(spendOfTree))
    const parts = [
      plural(
        trees.reduce((sum, { size }) => sum + size, 0),
        'agent',
      ),
      `${count(tokens)} tokens`,
      ...(usd === null || usd === 0 ? [] : [money(usd)]),
      duration(timeOf(roots) ?? Date.now() - this.watchedSince),
      ...(this.hint === '' ? [] : [this.hint]),
    ]
    return textRow('', parts.join(' · '))
  }
}

/** A warning is printed once and stays, because the tree has no row for it. */
function warningLine({ path, message }: Extract<RunEvent, { type: 'warning' }>): string {
  return `${path.map(oneLine).join(' > ')}: ${oneLine(message)}`
}

/** The time these runs have taken, whoever watched; undefined if none has begun. */
function timeOf(roots: readonly WatchedRun[]): number | undefined {
  const starts = roots.flatMap(({ startedAt }) => startedAt ?? [])
  if (starts.length === 0) return undefined
  const ends = roots.map(({ endedAt }) => endedAt ?? Date.now())
  return Math.max(...ends) - Math.min(...starts)
}
