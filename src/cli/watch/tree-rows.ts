import type { Node } from '../../doors/rows.ts'
import { shortId } from '../store/find-run.ts'
import { plural } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import type { Doing } from './doing.ts'
import type { RunTree, TreeRun } from './run-tree.ts'
import { type Spend, sumOf } from './words.ts'

export type Sign = 'done' | 'failed' | 'works' | 'waits' | 'person' | 'stuck' | 'none'

/** One line of a tree, not yet laid out. */
export interface TreeRow {
  /** The branches before the name. */
  readonly prefix: string
  readonly sign: Sign
  readonly name: string
  readonly text: string
  /** So many characters at the beginning of the text stay when it is cut, and then its end: it is being said. */
  readonly label?: number
  readonly spend: Spend | null
  readonly ms: number | null
}

export interface RowsOptions {
  readonly doing: (run: TreeRun) => Doing | null
  readonly now: number
  /** How many rows there is room for. */
  readonly most: number
}

/** All runs of the trees, one row each. What has ended is folded when there is no room for all. */
export function treeRows(trees: readonly RunTree[], options: RowsOptions): TreeRow[] {
  const total = trees.reduce((sum, { size }) => sum + size, 0)
  const roots = trees.flatMap(({ root }) => root ?? [])
  const branches = total <= options.most ? roots.flatMap((root) => walk(root, false)) : foldedRoots(roots)
  const shown = branches.length <= options.most ? branches : branches.slice(0, Math.max(0, options.most - 1))
  const rows = shown.map((branch) => rowOf(branch, options))
  const hidden = branches.length - shown.length
  return hidden === 0 ? rows : [...rows, textRow('', `… and ${plural(hidden, 'more line')}`)]
}

/** Of a run and all below it. */
export function spendOfTree(run: TreeRun): Spend {
  return sumOf([...run.spent, ...run.children.map(spendOfTree)])
}

/** A run, or some that have ended and are told in one line. */
type Branch = { readonly prefix: string } & (
  | { readonly run: TreeRun; readonly isOneOf?: boolean }
  | { readonly ended: readonly TreeRun[] }
)

function foldedRoots(roots: readonly TreeRun[]): Branch[] {
  const [ended, open] = split(roots)
  const folded: Branch[] = ended.length > 1 ? [{ prefix: '', ended }] : ended.map((run) => ({ prefix: '', run }))
  return [...open.flatMap((root) => walk(root, true)), ...folded]
}

function walk(run: TreeRun, folds: boolean): Branch[] {
  return [{ prefix: '', run }, ...below(run, { folds, indent: '' })]
}

function below(host: TreeRun, { folds, indent }: { folds: boolean; indent: string }): Branch[] {
  const [ended, open] = split(host.children)
  const isFolded = folds && ended.length > 1
  const runs = isFolded ? open : host.children
  const named = new Map<string, number>()
  for (const { agent } of host.children) named.set(agent, (named.get(agent) ?? 0) + 1)
  const branches = runs.flatMap((run, at) => {
    const isLast = at === runs.length - 1 && !isFolded
    const inner = below(run, { folds, indent: `${indent}${isLast ? '   ' : '│  '}` })
    const isOneOf = (named.get(run.agent) ?? 0) > 1
    return [{ prefix: `${indent}${isLast ? '└─ ' : '├─ '}`, run, isOneOf }, ...inner]
  })
  return isFolded ? [...branches, { prefix: `${indent}└─ `, ended }] : branches
}

function split(runs: readonly TreeRun[]): [ended: TreeRun[], open: TreeRun[]] {
  return [runs.filter(isOver), runs.filter((run) => !isOver(run))]
}

function isOver({ state, children }: TreeRun): boolean {
  return state === 'ended' && children.every(isOver)
}

function rowOf(branch: Branch, options: RowsOptions): TreeRow {
  if ('ended' in branch) return endedRow(branch.prefix, branch.ended)
  const { run, prefix, isOneOf = false } = branch
  const { agent, startedAt, endedAt } = run
  const ms = startedAt === null ? null : (endedAt ?? options.now) - startedAt
  const name = isOneOf && run.task !== '' ? `${agent}: ${run.task}` : agent
  const row = { prefix, name, spend: sumOf(run.spent), ms }
  if (run.state === 'ended') {
    const sign = run.status === 'completed' ? 'done' : 'failed'
    return { ...row, sign, text: [run.status, run.lastWords].filter(Boolean).join(': ') }
  }
  const doing = options.doing(run)
  const label = doing?.label === undefined ? {} : { label: doing.label }
  return { ...row, sign: doing?.mood ?? 'waits', text: doing?.text ?? run.state, ...label }
}

function endedRow(prefix: string, ended: readonly TreeRun[]): TreeRow {
  const times = new Map<string, number>()
  for (const { status } of ended) times.set(status ?? '', (times.get(status ?? '') ?? 0) + 1)
  const text = [...times].map(([status, number]) => `${number} ${status}`).join(', ')
  const sign = times.size === 1 && times.has('completed') ? 'done' : 'failed'
  return { prefix, sign, name: `${ended.length} ended`, text, spend: sumOf(ended.map(spendOfTree)), ms: null }
}

export function textRow(prefix: string, text: string): TreeRow {
  return { prefix, sign: 'none', name: text, text: '', spend: null, ms: null }
}

const SHOWN = 60

/** One node in one line: its short id, what it is, how it stands, and how it begins. */
export function nodeLine({ id, kind, purpose, state, input, preview, marks }: Node): string {
  const what = input.call === undefined ? (purpose === null || purpose === 'answer' ? kind : purpose) : input.call.name
  const hidden = marks?.deletedAt != null ? ', deleted' : marks?.excludedAt != null ? ', excluded' : ''
  const text = oneLine(preview)
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text
  const replaced = marks?.replacedBy == null ? '' : `, replaced by ${shortId(marks.replacedBy)}`
  return `${shortId(id)}  ${oneLine(what).padEnd(16)} ${state}${hidden}${replaced}  ${shown}`.trimEnd()
}
