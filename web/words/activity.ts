// What a run does right now, in a line.

import type { TreeNode, TreeState } from 'legate/client'
import { jsonIn } from './content.ts'
import { calm } from './exact.ts'
import { groupBy, listOf } from './format.ts'
import { jsonText } from './json-text.ts'

/** The end of what is being written that fits into a line. */
const TAIL = 120

/** What a run does now: `is writing`, `calls deploy`, `waits for fixer and writer`; empty when it has ended. */
export function activityOf(state: TreeState, runId: string): string {
  const run = state.runs.get(runId)
  if (run === undefined || run.state === 'ended') return ''
  if (run.state === 'queued') return 'waits its turn'
  const open = openNodes(state, runId)
  const delegated = open.flatMap(({ state: now, waits }) =>
    now === 'waiting' && waits?.on === 'children' ? waits.refs : [],
  )
  const asking = open.find(({ waits }) => waits?.on === 'approval' || waits?.on === 'question')
  const node = asking ?? open.find((one) => one.state === 'running')
  if (node === undefined && delegated.length > 0) return `waits for ${listOf(agentsOf(state, delegated.toReversed()))}`
  const telling = node ?? mostTelling(open)
  return telling === undefined ? 'is about to go on' : nodeActivity(state, telling)
}

function openNodes(state: TreeState, runId: string): TreeNode[] {
  const found: TreeNode[] = []
  for (let at = state.runs.get(runId)?.open ?? null; at !== null; at = at.rest) {
    const node = state.nodes.get(at.item)
    if (node?.state === 'running' || node?.state === 'waiting') found.push(node)
  }
  return found
}

/** A message that waits for calls says less than the calls. */
function mostTelling(open: readonly TreeNode[]): TreeNode | undefined {
  return open.find(({ waits }) => waits?.on !== 'nodes') ?? open[0]
}

function nodeActivity(state: TreeState, node: TreeNode): string {
  if (node.state === 'running') return runningWords(node)
  switch (node.waits?.on) {
    case 'approval':
      return `${node.what} needs a yes`
    case 'question':
      return 'asks something'
    case 'children':
      return `waits for ${listOf(agentsOf(state, node.waits.refs))}`
    case 'nodes':
      return `waits for ${listOf(node.waits.refs.map((id) => state.nodes.get(id)?.what ?? 'a call'))}`
    case 'timer':
      return node.trouble === null ? 'waits for its time' : `tries again soon: ${node.trouble}`
    default:
      return 'waits for a free worker'
  }
}

function runningWords({ call, what, progress, writes, text, reasoning }: TreeNode): string {
  if (call !== null) return progress === null ? `calls ${what}` : `${what}: ${progress}`
  const written = writes.at(-1)
  if (written !== undefined) return `is writing a call of ${written.tool}`
  if (text !== '') return 'is writing'
  return reasoning === '' ? 'waits for the model' : 'is thinking'
}

/** The agents of runs, each name once: `voice`, or `100 × voice`. */
function agentsOf(state: TreeState, runIds: readonly string[]): string[] {
  const names = groupBy(runIds, (id) => state.runs.get(id)?.agent ?? 'a subagent')
  return [...names].map(([name, ids]) => (ids.length === 1 ? name : `${ids.length} × ${name}`))
}

/** The last words of whoever writes or calls something in a run, for a list; empty where nobody does. */
export function lastWords(state: TreeState, runId: string): string {
  for (const node of openNodes(state, runId)) {
    if (node.state !== 'running') continue
    if (node.text !== '') return tailOf(node.text)
    if (node.call !== null) return argumentLine(node.call.input)
  }
  return ''
}

function tailOf(text: string): string {
  const line = text
    .slice(-TAIL * 2)
    .replace(/\s+/g, ' ')
    .trim()
  return calm(line.length <= TAIL ? line : `…${line.slice(-TAIL)}`)
}

/** Arguments in a line: the values of an object, or the text itself. It reads no more of them than a line shows. */
export function argumentLine(input: unknown): string {
  if (input === null || input === undefined) return ''
  if (typeof input !== 'object') return oneLine(String(input))
  const words: string[] = []
  let length = 0
  for (const name in input) {
    const value = (input as Readonly<Record<string, unknown>>)[name]
    const word = typeof value === 'string' ? value.slice(0, MOST_READ) : jsonText(value, MOST_READ, true)
    words.push(word)
    length += word.length
    if (length > MOST_READ) break
  }
  return oneLine(words.join('  '))
}

/** The beginning of an answer in a line: its text, or the values of the object that it is. Long answers are not parsed for that. */
export function answerLine(text: string): string {
  const value = text.length > MOST_PARSED ? undefined : jsonIn(text)
  return argumentLine(value ?? text).slice(0, MOST_SAID)
}

const MOST_SAID = 200
const MOST_READ = 400
const MOST_PARSED = 4_000

function oneLine(text: string): string {
  return calm(text.slice(0, MOST_READ).replace(/\s+/g, ' ').trim())
}

/** The agents that work on a tree right now or wait for a person, deepest first: who to name in a list. */
export function busiestRun(state: TreeState, runId: string): string {
  const run = state.runs.get(runId)
  for (let at = run?.children ?? null; at !== null; at = at.rest) {
    const child = state.runs.get(at.item)
    if (child !== undefined && child.state !== 'ended' && child.running > 0) return busiestRun(state, at.item)
  }
  return runId
}
