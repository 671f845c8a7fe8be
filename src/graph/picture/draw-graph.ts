import type { TreeRows } from '../audit/tree-rows.ts'
import type { Conversation, Edge, Id, Node, Turn } from '../rows.ts'
import { isOpen } from '../states.ts'
import { type Arrow, type Box, type Mood, type Picture, shortText } from './picture.ts'

/** Every node, turn by turn, with its edges, and which task started which child: of one conversation, or of all. */
export function drawGraph(tree: TreeRows, only?: Id): Picture {
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

/** Who delegated to whom: a box for each run. */
export function drawTree(tree: TreeRows): Picture {
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

/** From the task that delegates to the first node of its child, and back from the child's answer. */
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

/** The turns of a conversation come after each other. */
function turnOrder({ turnsOf }: TreeRows): Arrow[] {
  return [...turnsOf.values()].flatMap((turns) =>
    turns
      .slice(1)
      .map((turn, at): Arrow => ({ from: turns[at]?.id ?? '', to: turn.id, style: 'dotted', label: 'next turn' })),
  )
}
