import { oneOf, readOptions } from '../base/options.ts'
import { isOpen } from '../graph/kinds.ts'
import type { TreeRows } from '../graph/reader.ts'
import type { Conversation, Edge, Id, Node, Turn } from '../graph/rows.ts'
import { lookWith } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { loadNewest } from './load-tree.ts'

export interface PictureOptions {
  /** `tree`: who delegated to whom, a box for each run. `graph`: every node and edge. Default `tree`. */
  readonly of?: 'tree' | 'graph'
  /** Default `mermaid`. `dot` is the language of Graphviz. */
  readonly format?: 'mermaid' | 'dot'
}

/** So many of the newest turns of each conversation are drawn: nobody sees more in one picture. */
const MOST_TURNS = 200

/** Draws the tree of this conversation; a graph of a child shows the child alone. */
export async function drawPicture(store: Store, id: Id, given: PictureOptions): Promise<string> {
  const { of = 'tree', format = 'mermaid' } = readOptions('picture()', given, OPTIONS)
  const conversation = await lookWith(store, id, (tree) => tree.conversation(id))
  if (conversation === undefined) throw await notFound(store, 'conversation', id)
  const tree = await loadNewest(store, conversation, MOST_TURNS)
  const picture = of === 'tree' ? drawTree(tree) : drawGraph(tree, id === conversation.rootId ? undefined : id)
  return format === 'dot' ? toDot(picture) : toMermaid(picture)
}

const OPTIONS = { of: oneOf('tree', 'graph'), format: oneOf('mermaid', 'dot') }

/** A drawing as boxes in groups, and arrows. Both languages are written from it. */
export interface Picture {
  readonly boxes: readonly Box[]
  readonly arrows: readonly Arrow[]
}

export interface Box {
  readonly id: string
  readonly lines: readonly string[]
  readonly mood: Mood
  /** The title of the frame that it is drawn in; null for none. */
  readonly group: string | null
}

export type Mood = 'done' | 'open' | 'failed' | 'said'

export interface Arrow {
  readonly from: string
  readonly to: string
  readonly style: 'solid' | 'bold' | 'dotted'
  readonly label: string
}

const LONGEST = 60

/** Cuts a text to one line that fits a box. */
function shortText(text: string): string {
  const line = oneLine(text)
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line
}

/** Removes line ends, terminal controls and marks that turn the direction of writing. */
function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\u202A-\u202E\u2066-\u2069]+/gu, ' ').trim()
}

/** Draws every node, turn by turn, with its edges and the children it started: of one conversation, or of all. */
function drawGraph(tree: TreeRows, only?: Id): Picture {
  const drawn = [...tree.conversations.values()].filter(({ id }) => only === undefined || id === only)
  const turns = drawn.flatMap(({ id }) => tree.turnsOf.get(id) ?? [])
  const nodes = turns.flatMap(({ id }) => tree.nodesOf.get(id) ?? [])
  const titles = new Map(turns.map((turn) => [turn.id, titleOf(tree, turn)]))
  const edges = nodes.flatMap(({ id }) => tree.edgesTo.get(id) ?? [])
  return {
    boxes: nodes.map((node) => boxOf(node, titles.get(node.turnId) ?? '')),
    arrows: [...edges.map(arrowOf), ...delegations(tree)],
  }
}

function titleOf({ conversations }: TreeRows, { conversationId, ordinal, outcome, state }: Turn): string {
  const name = `${nameOf(conversations.get(conversationId))} ${conversationId.slice(-8)}`
  return `${name}, turn ${ordinal + 1}: ${outcome?.status ?? state}`
}

function arrowOf({ from, to, type }: Edge): Arrow {
  return { from, to, style: type === 'branch' ? 'dotted' : 'solid', label: LABELS[type] }
}

/** Draws who delegated to whom: a box for each run. */
function drawTree(tree: TreeRows): Picture {
  const boxes = [...tree.turns.values()].map((turn): Box => {
    const agent = nameOf(tree.conversations.get(turn.conversationId))
    const status = turn.outcome?.status ?? turn.state
    const mood: Mood = turn.state !== 'ended' ? 'open' : status === 'completed' ? 'done' : 'failed'
    const { inputTokens, outputTokens } = turn.account.usage
    const used = `${inputTokens + outputTokens} tokens`
    return { id: turn.id, lines: [agent, `${status}, ${used}`], mood, group: null }
  })
  const arrows = [...tree.links.values()].map((link): Arrow => {
    const style = link.mode === 'background' ? 'dotted' : 'bold'
    return { from: link.hostTurnId, to: link.id, style, label: link.toolName }
  })
  return { boxes, arrows: [...arrows, ...turnOrder(tree)] }
}

const LABELS = { sequence: '', dependency: 'needs', branch: '' } as const

function nameOf(conversation: Conversation | undefined): string {
  return conversation?.agent.name ?? '?'
}

function boxOf({ id, kind, state, preview, input, purpose }: Node, group: string): Box {
  const name = input.call?.name ?? (purpose === null || purpose === 'answer' ? kind : `${kind} (${purpose})`)
  const mood: Mood = isOpen(state) ? 'open' : MOODS[state] === undefined ? 'failed' : kindMood(kind)
  const said = shortText(preview)
  return {
    id,
    lines: [state === 'finished' ? name : `${name} (${state})`, ...(said === '' ? [] : [said])],
    mood,
    group,
  }
}

const MOODS: { readonly [state: string]: true } = { finished: true }

function kindMood(kind: string): Mood {
  return kind === 'agent_message' || kind === 'task' || kind === 'character_message' ? 'done' : 'said'
}

/** Arrows from the task that delegates to the first node of its child, and back from the child's answer. */
function delegations({ links, nodesOf }: TreeRows): Arrow[] {
  return [...links.values()].flatMap(({ id, taskId, mode, outcome }) => {
    const first = nodesOf.get(id)?.[0]?.id
    const style = mode === 'background' ? ('dotted' as const) : ('bold' as const)
    const there: Arrow[] = first === undefined ? [] : [{ from: taskId, to: first, style, label: 'delegates' }]
    const answer = outcome?.answerNodeId ?? null
    return answer === null || mode === 'background'
      ? there
      : [...there, { from: answer, to: taskId, style: 'dotted', label: outcome?.status ?? '' }]
  })
}

/** Arrows between consecutive turns of a conversation. */
function turnOrder({ turnsOf }: TreeRows): Arrow[] {
  return [...turnsOf.values()].flatMap((turns) =>
    turns
      .slice(1)
      .map((turn, at): Arrow => ({ from: turns[at]?.id ?? '', to: turn.id, style: 'dotted', label: 'next turn' })),
  )
}

/** Writes the picture in the language of Graphviz. Text of people or models cannot leave its box. */
function toDot({ boxes, arrows }: Picture): string {
  const names = new Map(boxes.map(({ id }, at) => [id, `n${at}`]))
  const lines = [
    'digraph legate {',
    '  rankdir=TB;',
    '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
    ...grouped(boxes).flatMap((group, at) => dotFrame(group, at, names)),
  ]
  for (const arrow of arrows) {
    const [from, to] = [names.get(arrow.from), names.get(arrow.to)]
    if (from !== undefined && to !== undefined) lines.push(`  ${from} -> ${to}${style(arrow)};`)
  }
  return `${[...lines, '}'].join('\n')}\n`
}

const DOT_COLOURS: Readonly<Record<Mood, string>> = {
  done: '#e6f4ea',
  open: '#e8f0fe',
  failed: '#fce8e6',
  said: '#f8f9fa',
}

function dotFrame(boxes: readonly Box[], at: number, names: ReadonlyMap<string, string>): string[] {
  const title = boxes[0]?.group ?? null
  const drawn = boxes.map(({ id, lines, mood }) => {
    const label = lines.map(dotEscaped).join('\\n')
    return `  ${names.get(id)} [label="${label}", fillcolor="${DOT_COLOURS[mood]}"];`
  })
  if (title === null) return drawn
  return [`  subgraph cluster_${at} {`, `    label="${dotEscaped(title)}";`, ...drawn.map((one) => `  ${one}`), '  }']
}

function style({ style: kind, label }: Arrow): string {
  const fields = [
    ...(label === '' ? [] : [`label="${dotEscaped(label)}"`]),
    ...(kind === 'solid' ? [] : [`style=${kind === 'bold' ? 'bold' : 'dashed'}`]),
  ]
  return fields.length === 0 ? '' : ` [${fields.join(', ')}]`
}

function dotEscaped(text: string): string {
  return oneLine(text).replace(/[\\"]/g, (one) => `\\${one}`)
}

/** Writes the picture as a Mermaid flowchart. Text of people or models cannot leave its box. */
function toMermaid({ boxes, arrows }: Picture): string {
  const names = new Map(boxes.map(({ id }, at) => [id, `n${at}`]))
  const lines = ['flowchart TD', ...grouped(boxes).flatMap((group, at) => frame(group, at, names))]
  for (const arrow of arrows) {
    const [from, to] = [names.get(arrow.from), names.get(arrow.to)]
    if (from !== undefined && to !== undefined) lines.push(`  ${from} ${line(arrow)} ${to}`)
  }
  for (const mood of Object.keys(COLOURS) as Mood[]) {
    const own = boxes.filter((box) => box.mood === mood).map(({ id }) => names.get(id))
    if (own.length > 0) lines.push(`  classDef ${mood} ${COLOURS[mood]}`, `  class ${own.join(',')} ${mood}`)
  }
  return `${lines.join('\n')}\n`
}

const COLOURS: Readonly<Record<Mood, string>> = {
  done: 'fill:#e6f4ea,stroke:#34a853',
  open: 'fill:#e8f0fe,stroke:#4285f4',
  failed: 'fill:#fce8e6,stroke:#d93025',
  said: 'fill:#f8f9fa,stroke:#9aa0a6',
}

/** Groups the boxes of one frame, in the order of their first box. */
function grouped(boxes: readonly Box[]): (readonly Box[])[] {
  const groups = new Map<string | null, Box[]>()
  for (const box of boxes) {
    const known = groups.get(box.group)
    if (known === undefined) groups.set(box.group, [box])
    else known.push(box)
  }
  return [...groups.values()]
}

function frame(boxes: readonly Box[], at: number, names: ReadonlyMap<string, string>): string[] {
  const title = boxes[0]?.group ?? null
  const drawn = boxes.map(({ id, lines }) => `  ${names.get(id)}["${lines.map(escaped).join('<br/>')}"]`)
  if (title === null) return drawn
  return [`  subgraph g${at}["${escaped(title)}"]`, ...drawn.map((one) => `  ${one}`), '  end']
}

function line({ style, label }: Arrow): string {
  const arrow = { solid: '-->', bold: '==>', dotted: '-.->' }[style]
  return label === '' ? arrow : `${arrow}|"${escaped(label)}"|`
}

/** Mermaid reads `#code;` as a character. */
function escaped(text: string): string {
  return oneLine(text).replace(/["#&<>`\\[\]{}()|;%]/g, (one) => `#${one.charCodeAt(0)};`)
}
