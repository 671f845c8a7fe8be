import { type Content, textOf } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { absenceText, type Outcome } from '../../graph/outcome.ts'
import type { Link, Node } from '../../graph/rows.ts'

/** The facts about its call that the result of an open delegation needs: frozen with the link. */
export interface OpenFacts {
  readonly surface: 'subagent' | 'delegate' | 'Agent'
  /** True: only the last message; false: everything that was said and found. */
  readonly summary: boolean
  /** Notes for the host about the start of the child. */
  readonly notes: readonly string[]
  readonly label: string
  readonly prompt: string
  /** The name of the agent or recipe that was started; null for a task in the call's own words. */
  readonly type: string | null
  /** How long its result can be read after its end; rows of older versions have none. */
  readonly keepMs?: number
}

export function openFactsOf({ delegationContext }: Pick<Link, 'delegationContext'>): OpenFacts | undefined {
  const { open } = (delegationContext ?? {}) as { readonly open?: OpenFacts }
  return open
}

/** Adds the tool sources that the child had to do without. */
export function withAbsent(facts: OpenFacts, { outcome }: Pick<Link, 'outcome'>): OpenFacts {
  const absent = outcome?.absent ?? []
  return absent.length === 0 ? facts : { ...facts, notes: [...facts.notes, ...absent.map(absenceText)] }
}

/** The result of an open delegation, in the words of its tool. `all` gives everything that was said and found. */
export function openContent(facts: OpenFacts, outcome: Outcome, all: () => string): Content {
  if (facts.surface === 'Agent') return agentJson(facts, outcome, all)
  if (outcome.status !== 'completed') return withNotes(failedText(facts, outcome), facts)
  if (outcome.output !== null) return JSON.stringify(outcome.output)
  return withNotes(facts.summary ? outcome.text : all(), facts)
}

function failedText({ surface }: OpenFacts, { status, error, text }: Outcome): string {
  const why = error?.message ?? status
  const isLimit = status === 'max_turns' || status === 'over_budget' || status === 'timed_out'
  const failed = surface === 'delegate' ? 'Delegation failed: ' : 'Failed to execute task: '
  const head = isLimit
    ? `[${status}] ${why}`
    : status === 'cancelled'
      ? `${failed}cancelled. ${why}`
      : `${failed}${why}`
  return text === '' ? head : `${head}\n\n${text}`
}

function withNotes(text: string, { notes }: OpenFacts): string {
  return notes.length === 0 ? text : `${text}\n\n${notes.map((note) => `[${note}]`).join('\n')}`
}

function agentJson(facts: OpenFacts, outcome: Outcome, all: () => string): string {
  const { usage, status } = outcome
  const text =
    status !== 'completed'
      ? failedText(facts, outcome)
      : outcome.output !== null
        ? JSON.stringify(outcome.output)
        : all()
  const said = status === 'completed' && outcome.output === null && facts.summary ? outcome.text : text
  const shown = {
    status: status === 'completed' ? 'completed' : status,
    agentId: outcome.conversationId,
    ...(facts.type === null ? {} : { agentType: facts.type }),
    content: [{ type: 'text', text: withNotes(said, facts) }],
    totalToolUseCount: outcome.toolCalls,
    totalDurationMs: outcome.durationMs,
    totalTokens: usage.inputTokens + usage.outputTokens,
    usage: {
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      cache_read_input_tokens: usage.cacheReadTokens,
      cache_creation_input_tokens: usage.cacheWriteTokens,
    },
    prompt: facts.prompt,
  }
  return JSON.stringify(shown, null, 2)
}

/** Every text and every successful result of a child's run, in order. */
export function saidAndFound(draft: Draft, link: Link): string {
  return draft.nodesOf(link.id).flatMap(partOf).join('\n')
}

function partOf({ kind, purpose, state, output, metadata }: Node): string[] {
  const text = textOf(output.content ?? '')
  if (text.trim() === '' || metadata['answers'] !== undefined) return []
  if (kind === 'agent_message') return purpose === 'brief' ? [] : [text]
  return kind === 'task' && state === 'finished' && output.isError !== true ? [`Tool result: ${text}`] : []
}
