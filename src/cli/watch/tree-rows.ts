import type { Node } from '../../doors/rows.ts'
import { shownId } from '../store/find-run.ts'
import { plural } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import type { Activity } from './activity.ts'
import type { WatchedRun, WatchedTree } from './run-tree.ts'
import { type TokenCost, totalSpend } from './words.ts'

export type Sign = 'done' | 'failed' | 'works' | 'waits' | 'person' | 'stuck' | 'none'

/** One line of a tree before layout. */
export interface TreeRow {
  /** The branches before the name. */
  readonly prefix: string
  readonly sign: Sign
  readonly name: string
  readonly text: string
  /** When streamed text is cut, this many characters at its beginning stay, and then its end. */
  readonly label?: number
  readonly spend: TokenCost | null
  readonly ms: number | null
}

export interface RowsOptions {
  readonly doing: (run: WatchedRun) => Activity | null
  readonly now: number
  /** The number of rows available. */
  readonly most: number
}

/** Makes one row for each run of the trees. Ended runs are folded into one row if there is no room for all. */
export function treeRows(trees: readonly WatchedTree[], options: RowsOptions): TreeRow[] {
  const total = trees.reduce((sum, { size }) => sum + size, 0)
  const roots = trees.flatMap(({ root }) => root ?? [])
  const branches = total <= options.most ? roots.flatMap((root) => walk(root, false)) : foldedRoots(roots)
  const shown = branches.length <= options.most ? branches : branches.slice(0, Math.max(0, options.most - 1))
  const rows = shown.map((branch) => rowOf(branch, options))
  const hidden = branches.length - shown.length
  return hidden === 0 ? rows : [...rows, textRow('', `… and ${plural(hidden, 'more line')}`)]
}

/** Sums the usage of a run and everything below it. */
export function spendOfTree(run: WatchedRun): TokenCost {
  return totalSpend([...run.spent, ...run.children.map(spendOfTree)])
}

/** A run, or several ended ones on one line. */
type Branch = { readonly prefix: string } & (
  | { readonly run: WatchedRun; readonly isOneOf?: boolean }
  | { readonly ended: readonly WatchedRun[] }
  | { readonly limit: string }
)

function foldedRoots(roots: readonly WatchedRun[]): Branch[] {
  const [ended, open] = split(roots)
  const folded: Branch[] = ended.length > 1 ? [{ prefix: '', ended }] : ended.map((run) => ({ prefix: '', run }))
  return [...open.flatMap((root) => walk(root, true)), ...folded]
}

function walk(run: WatchedRun, folds: boolean): Branch[] {
  return [{ prefix: '', run }, ...below(run, { folds, indent: '' })]
}

function below(host: WatchedRun, { folds, indent }: { folds: boolean; indent: string }): Branch[] {
  const [ended, open] = split(host.children)
  const isFolded = folds && ended.length > 1
  const runs = isFolded ? open : host.children
  const named = new Map<string, number>()
  for (const { agent } of host.children) named.set(agent, (named.get(agent) ?? 0) + 1)
  const limits = host.limits.map((limit) => ({ prefix: `${indent}   `, limit }))
  const branches = runs.flatMap((run, at) => {
    const isLast = at === runs.length - 1 && !isFolded
    const inner = below(run, { folds, indent: `${indent}${isLast ? '   ' : '│  '}` })
    const isOneOf = (named.get(run.agent) ?? 0) > 1
    return [{ prefix: `${indent}${isLast ? '└─ ' : '├─ '}`, run, isOneOf }, ...inner]
  })
  return [...branches, ...(isFolded ? [{ prefix: `${indent}└─ `, ended }] : []), ...limits]
}

function split(runs: readonly WatchedRun[]): [ended: WatchedRun[], open: WatchedRun[]] {
  return [runs.filter(isOver), runs.filter((run) => !isOver(run))]
}

function isOver({ state, children }: WatchedRun): boolean {
  return state === 'ended' && children.every(isOver)
}

function rowOf(branch: Branch, options: RowsOptions): TreeRow {
  if ('limit' in branch) return textRow(branch.prefix, branch.limit)
  if ('ended' in branch) return endedRow(branch.prefix, branch.ended)
  const { run, prefix, isOneOf = false } = branch
  const { agent, startedAt, endedAt } = run
  const ms = startedAt === null ? null : (endedAt ?? options.now) - startedAt
  const name = isOneOf && run.task !== '' ? `${agent}: ${run.task}` : agent
  const row = { prefix, name, spend: totalSpend(run.spent), ms }
  if (run.state === 'ended') {
    const sign = run.status === 'completed' ? 'done' : 'failed'
    return { ...row, sign, text: [run.status, run.lastWords].filter(Boolean).join(': ') }
  }
  const doing = options.doing(run)
  const label = doing?.label === undefined ? {} : { label: doing.label }
  return { ...row, sign: doing?.mood ?? 'waits', text: doing?.text ?? run.state, ...label }
}

function endedRow(prefix: string, ended: readonly WatchedRun[]): TreeRow {
  const times = new Map<string, number>()
  for (const { status } of ended) times.set(status ?? '', (times.get(status ?? '') ?? 0) + 1)
  const text = [...times].map(([status, number]) => `${number} ${oneLine(status)}`).join(', ')
  const sign = times.size === 1 && times.has('completed') ? 'done' : 'failed'
  return { prefix, sign, name: `${ended.length} ended`, text, spend: totalSpend(ended.map(spendOfTree)), ms: null }
}

export function textRow(prefix: string, text: string): TreeRow {
  return { prefix, sign: 'none', name: text, text: '', spend: null, ms: null }
}

const SHOWN = 60

/** Describes a node on one line: short id, kind, state and the beginning of its text. */
export function nodeLine({ id, kind, purpose, state, input, preview, marks }: Node): string {
  const what = input.call === undefined ? (purpose === null || purpose === 'answer' ? kind : purpose) : input.call.name
  const hidden = marks?.deletedAt != null ? ', deleted' : marks?.excludedAt != null ? ', excluded' : ''
  const text = oneLine(preview)
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text
  const replaced = marks?.replacedBy == null ? '' : `, replaced by ${shownId(marks.replacedBy)}`
  return `${shownId(id)}  ${oneLine(what).padEnd(16)} ${state}${hidden}${replaced}  ${shown}`.trimEnd()
}
