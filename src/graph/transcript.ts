import { textOf } from './content.ts'
import { isDeleted, isReplaced } from './history/shown.ts'
import { BUILT_IN_KINDS, type Kinds } from './kinds.ts'
import type { Node } from './rows.ts'

export interface TranscriptLine {
  readonly nodeId: string
  readonly turnId: string
  readonly role: 'user' | 'agent'
  readonly text: string
  readonly state: Node['state']
}

const LONGEST = 2_000

export interface TranscriptOptions {
  /** What was deleted is shown too. */
  readonly includeDeleted?: boolean
}

/** What people see of a conversation: what was said, and in safe words why something was not. */
export function transcriptOf(
  all: readonly Node[],
  kinds: Kinds = BUILT_IN_KINDS,
  { includeDeleted = false }: TranscriptOptions = {},
): TranscriptLine[] {
  const lines: TranscriptLine[] = []
  const nodes = all.filter((node) => !isReplaced(node) && (includeDeleted || !isDeleted(node)))
  const last = lastWords(nodes)
  for (const node of nodes) {
    if (kinds.get(node.kind)?.transcript !== true || !isVisible(node, last)) continue
    const role = node.kind === 'user_message' ? 'user' : 'agent'
    lines.push({ nodeId: node.id, turnId: node.turnId, role, text: lineText(node), state: node.state })
  }
  return lines
}

/** The last message of each turn: what was said in the end is seen, also when it was a repair or a summing up. */
function lastWords(nodes: readonly Node[]): ReadonlySet<string> {
  const last = new Map<string, string>()
  for (const node of nodes) {
    if (node.kind === 'agent_message' && node.purpose !== 'summarize') last.set(node.turnId, node.id)
  }
  return new Set(last.values())
}

function isVisible(node: Node, last: ReadonlySet<string>): boolean {
  if (node.kind === 'user_message') return true
  if (node.purpose !== null && node.purpose !== 'answer' && !last.has(node.id)) return false
  if (node.state === 'pending' || node.state === 'running') return true
  // W31: what a person is asked to allow is seen.
  if (node.state === 'awaiting_approval') return true
  return spokenText(node) !== '' || node.failure !== null || node.metadata['transcriptPreview'] !== undefined
}

function spokenText(node: Node): string {
  return textOf((node.kind === 'user_message' ? node.input.content : node.output.content) ?? '')
}

function lineText(node: Node): string {
  const said = spokenText(node)
  if (said !== '') return said
  const preview = node.metadata['transcriptPreview']
  if (typeof preview === 'string') return preview.slice(0, LONGEST)
  const why = node.failure
  if (why === null) return ''
  const phrase = PHRASES[node.state] ?? 'Ended'
  const reason = node.state === 'skipped' ? why.code.replaceAll('_', ' ') : why.message
  return `${phrase}: ${reason}`.slice(0, LONGEST)
}

const PHRASES: Readonly<Partial<Record<Node['state'], string>>> = {
  errored: 'Errored',
  rejected: 'Rejected',
  stopped: 'Stopped',
  skipped: 'Skipped',
  uncertain: 'Uncertain',
}
