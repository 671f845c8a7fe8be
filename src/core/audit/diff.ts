import { totalTokens } from '../graph/content.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Id, Node, Turn } from '../graph/rows.ts'
import { resultContent } from '../graph/tasks.ts'
import { lookWith } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'

/** The totals of a run and all below it. */
export interface RunFigures {
  readonly runId: Id
  readonly status: string
  readonly tokens: number
  readonly modelCalls: number
  readonly toolCalls: number
  readonly children: number
  readonly durationMs: number | null
  readonly nodes: number
}

/** A node of one run beside the node at the same place of the other. */
export interface NodeDiff {
  /** The agents' names from the run down, each with the place of its delegation, and the node's place in its turn. */
  readonly place: string
  readonly change: 'changed' | 'only_first' | 'only_second'
  readonly first: NodeFacts | null
  readonly second: NodeFacts | null
  /** The fields that differ; empty where only one run has the node. */
  readonly fields: readonly (keyof NodeFacts)[]
}

export interface NodeFacts {
  readonly nodeId: Id
  readonly name: string
  readonly state: string
  readonly input: string
  readonly output: string
  readonly tokens: number
  /** From its first start to its end; null where it did not run, or still does. */
  readonly durationMs: number | null
}

export interface RunDiff {
  readonly first: RunFigures
  readonly second: RunFigures
  readonly changes: readonly NodeDiff[]
  /** How many nodes are equal in both. */
  readonly same: number
}

export async function diffRuns(store: Store, firstId: Id, secondId: Id): Promise<RunDiff> {
  const [first, second] = [await loadRun(store, firstId), await loadRun(store, secondId)]
  const [one, two] = [first.nodes, second.nodes]
  const changes: NodeDiff[] = []
  let same = 0
  for (const [place, node] of one) {
    const other = two.get(place)
    const change = other === undefined ? onlyOne(place, node, 'only_first') : changeOf(place, node, other)
    if (change === undefined) same++
    else changes.push(change)
  }
  for (const [place, node] of two) if (!one.has(place)) changes.push(onlyOne(place, node, 'only_second'))
  return { first: figuresOf(first.turn, one.size), second: figuresOf(second.turn, two.size), changes, same }
}

interface LoadedRun {
  readonly turn: Turn
  readonly nodes: NodesByPlace
}

async function loadRun(store: Store, runId: Id): Promise<LoadedRun> {
  const found = await lookWith(store, runId, (tree) => {
    const turn = tree.turn(runId)
    return turn === undefined ? undefined : { turn, nodes: nodesBelow(tree, turn) }
  })
  if (found === undefined) throw await notFound(store, 'run', runId)
  return found
}

type NodesByPlace = Map<string, Node>

/** Indexes nodes by place: the names of agents and the order of delegations and nodes, never ids or times. */
function nodesBelow(tree: TreeReader, turn: Turn): NodesByPlace {
  const found: NodesByPlace = new Map()
  const open: [Id, string][] = [[turn.id, tree.conversation(turn.conversationId)?.agent.name ?? '?']]
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const [id, path] = next
    for (const node of tree.nodesOf(id)) found.set(`${path}/${node.ordinal}`, node)
    for (const link of tree.linksOf(id)) open.push([link.id, `${path} > ${link.agentName}#${link.ordinal + 1}`])
  }
  return found
}

function onlyOne(place: string, node: Node, change: 'only_first' | 'only_second'): NodeDiff {
  const facts = factsOf(node)
  const isFirst = change === 'only_first'
  return { place, change, first: isFirst ? facts : null, second: isFirst ? null : facts, fields: [] }
}

const FIELDS = ['name', 'state', 'input', 'output', 'tokens'] as const

function changeOf(place: string, one: Node, two: Node): NodeDiff | undefined {
  const [first, second] = [factsOf(one), factsOf(two)]
  const fields = FIELDS.filter((field) => unnamed(first[field]) !== unnamed(second[field]))
  return fields.length === 0 ? undefined : { place, change: 'changed', first, second, fields }
}

/** Removes ids and times, which differ from run to run. */
function unnamed(value: string | number): string | number {
  return typeof value === 'string' ? value.replace(ID, '<id>').replace(TIME, '<time>') : value
}

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const TIME = /\b1\d{12}\b|\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

function factsOf(node: Node): NodeFacts {
  const { id, input, output, kind, state, usage, startedAt, endedAt } = node
  const given = input.call === undefined ? (input.content ?? input.value ?? input.nudge ?? '') : input.call.input
  const said = kind === 'task' ? resultContent(node) : (output.content ?? output.value ?? '')
  const calls = (output.calls ?? []).map(({ name, input: args }) => `calls ${name} ${JSON.stringify(args)}`)
  return {
    nodeId: id,
    name: input.call?.name ?? kind,
    state,
    input: textOf(given),
    output: [textOf(said), ...calls].filter((line) => line !== '').join('\n'),
    tokens: totalTokens(usage),
    durationMs: startedAt === null || endedAt === null ? null : endedAt - startedAt,
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function figuresOf({ id, account, outcome, state, startedAt, endedAt }: Turn, nodes: number): RunFigures {
  return {
    runId: id,
    status: outcome?.status ?? state,
    tokens: totalTokens(account.usage),
    modelCalls: account.modelCalls,
    toolCalls: account.toolCalls,
    children: account.children,
    durationMs: startedAt === null || endedAt === null ? null : endedAt - startedAt,
    nodes,
  }
}
