import type { Json } from '../../base/json.ts'
import { outputContent } from '../../graph/commit.ts'
import { readOutcome } from '../../graph/conclude.ts'
import type { Block, Content } from '../../graph/content.ts'
import type { Draft } from '../../graph/draft.ts'
import { endSummary, type Outcome, type OutcomeRecord, subagentOf, withWords } from '../../graph/outcome.ts'
import type { Id, Link, Node, NodeOutput } from '../../graph/rows.ts'
import { type OpenFacts, openContent, openFactsOf, saidAndFound, withAbsent } from '../turn/fold-open.ts'

const INTERRUPTED = '<system-info>The tool call has been interrupted by the user.</system-info>'

/** The facts about a delegation that its result needs: frozen in the link's row. */
export type FoldFacts = Pick<Link, 'contract' | 'agentName' | 'hostName' | 'delegationContext' | 'childConversationId'>

export interface FoldResult {
  readonly content: Content
  readonly isError: boolean
  /** Only the reserved keys; application data belongs in the content. */
  readonly metadata: { readonly [key: string]: Json }
}

/** Additions to a delegation's result, beside its outcome. */
export interface FoldNotes {
  /** The child's own remarks on its answer. */
  readonly response?: Json | undefined
  /** The faults of the input, field by field. */
  readonly issues?: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]
  /** The whole text and all results of the child, for hosts that want them. */
  readonly all?: () => string
}

/** Turns a child's end into the result of the host's tool call: words that the host's model can act on, whatever happened. */
export function fold(facts: FoldFacts, outcome: Outcome, notes: FoldNotes = {}): FoldResult {
  const open = facts.contract === 'open' ? openFactsOf(facts) : undefined
  if (open !== undefined) return foldOpen(facts, outcome, { ...notes, open })
  const { issues = [] } = notes
  const response = responseOf(outcome, notes)
  const metadata = {
    subagent: facts.agentName,
    supervisor: facts.hostName,
    delegation_context: facts.delegationContext,
    outcome: facts.contract === 'message' ? withValue(outcome) : endSummary(outcome),
  }
  return {
    content: withDelegations(
      facts.contract === 'typed' ? typedContent(outcome) : messageContent(facts, outcome),
      outcome,
    ),
    isError: outcome.status !== 'completed',
    metadata:
      outcome.status === 'completed' && response === undefined
        ? metadata
        : withRemarks(metadata, facts.contract, { outcome, response, issues }),
  }
}

/** The part of a child's end that a host program reads beside its text; undefined if there is none. */
export function remarksOf(draft: Draft, link: Link, outcome: OutcomeRecord): Remarks | undefined {
  const said = outcome.answerNodeId === null ? undefined : draft.findNode(outcome.answerNodeId)
  const { extra } = said?.output ?? {}
  const remarked = said?.metadata['response']
  if (outcome.status === 'completed' && extra === undefined && remarked === undefined) return undefined
  const response = responseOf({ extra: extra ?? NOTHING }, { response: remarked })
  const remarks = withRemarks(NOTHING, link.contract, { outcome, response, issues: [] })
  return remarks === NOTHING ? undefined : remarks
}

type Remarks = { readonly [key: string]: Json }
const NOTHING: Remarks = {}

interface End {
  readonly outcome: Pick<Outcome, 'status' | 'error'>
  readonly response: Json | undefined
  readonly issues: NonNullable<FoldNotes['issues']>
}

/** Adds what a program reads beside the words: the child's own remarks, and that there is no whole answer. */
function withRemarks(metadata: Remarks, contract: Link['contract'], end: End): Remarks {
  const { outcome, response, issues } = end
  const remarked = response === undefined ? metadata : { ...metadata, response_metadata: response }
  if (contract === 'open') {
    if (outcome.status === 'completed') return remarked
    return { ...remarked, error: { code: 'INTERNAL_ERROR', message: outcome.error?.message ?? outcome.status } }
  }
  if (!isUnavailable(outcome)) return remarked
  return { ...remarked, unavailable: true, error: diagnosis(outcome, issues) }
}

/** The child's remarks on its answer: its own notes, and the `extra` of its hooks. */
function responseOf({ extra }: Pick<Outcome, 'extra'>, { response }: FoldNotes): Json | undefined {
  if (Object.keys(extra).length === 0) return response
  return { ...extra, ...(response as { readonly [key: string]: Json } | undefined) }
}

/** Appends the results of the children that the answer's items started. */
function withDelegations(content: Content, { status, delegations }: Outcome): Content {
  if (delegations.length === 0 || status !== 'completed') return content
  const lines = delegations.map(({ field, status, text, output, error }) => {
    return JSON.stringify({
      field,
      status,
      result: output ?? text,
      ...(error === null ? {} : { error: error.message }),
    })
  })
  const text = `What was done for it:\n${lines.join('\n')}`
  return typeof content === 'string' ? `${content}\n\n${text}` : [...content, { type: 'text', text }]
}

/** The result in the words of a tool whose model described its child. */
function foldOpen(
  facts: FoldFacts,
  outcome: Outcome,
  { open, all, ...notes }: FoldNotes & { open: OpenFacts },
): FoldResult {
  const response = responseOf(outcome, notes)
  const isError = outcome.status !== 'completed'
  const metadata = {
    subagent: facts.agentName,
    supervisor: facts.hostName,
    delegation_context: { input_payload: open.prompt },
    outcome: withValue(outcome),
    subagent_session_id: facts.childConversationId,
    ...(open.notes.length === 0 ? {} : { notes: [...open.notes] }),
  }
  return {
    content: openContent(open, outcome, all ?? (() => outcome.text)),
    isError,
    metadata: withRemarks(metadata, 'open', { outcome, response, issues: [] }),
  }
}

/** The message contract gives a text: a value behind it goes into the metadata. */
function withValue(outcome: Outcome): Json {
  return outcome.output === null ? endSummary(outcome) : { ...endSummary(outcome), output: outcome.output }
}

function diagnosis({ error, status }: End['outcome'], issues: NonNullable<FoldNotes['issues']>): Json {
  if (issues.length === 0) return error?.message ?? status
  return issues.map(({ path, message }) => ({ loc: path.map(String), msg: message }))
}

/** A program that looks only at this flag learns of every end without an answer, but for one that somebody asked for. */
function isUnavailable({ status }: End['outcome']): boolean {
  return status !== 'completed' && status !== 'cancelled'
}

function typedContent(outcome: Outcome): Content {
  const why = outcome.error?.message ?? ''
  switch (outcome.status) {
    case 'completed':
      return answerContent(outcome)
    case 'max_turns':
    case 'over_budget':
    case 'timed_out':
      return join(`[${outcome.status}] ${why}`, outcome.text)
    case 'cancelled':
      return outcome.text.startsWith(INTERRUPTED) ? outcome.text : join(INTERRUPTED, outcome.text)
    case 'invalid_output':
      return `Subagent produced invalid reply payload. ${why}`
    case 'invalid_input':
      return `Subagent input validation failed. Details: ${why}`
    case 'unavailable':
    case 'denied':
      if (!hasBegun(outcome)) return `Delegation skipped: subagent unavailable. ${why}`
      return join(`Subagent execution unavailable. ${why}`, outcome.text)
    default:
      return join(`Subagent execution unavailable. ${why}`, outcome.text)
  }
}

function messageContent(facts: FoldFacts, outcome: Outcome): Content {
  const why = outcome.error?.message ?? ''
  const head = `session_id: ${facts.childConversationId}`
  switch (outcome.status) {
    case 'completed':
      return withMedia(`${head}\n\n${answerText(outcome)}`, outcome.content)
    case 'max_turns':
    case 'over_budget':
    case 'timed_out':
      return join(`${head}\n\n[${outcome.status}] ${why}`, outcome.text)
    case 'cancelled':
      return join('Error: Execution error: cancelled', outcome.text)
    case 'invalid_input':
      return `Error: ${why}`
    case 'unavailable':
    case 'denied':
      if (!hasBegun(outcome)) return `Error: Session setup failed: ${why}`
      return join(`Error: Execution error: ${why}`, outcome.text)
    default:
      return join(`Error: Execution error: ${why}`, outcome.text)
  }
}

/** True where the child has begun. A denial inside the child means it has; a denial of the child itself means it has not. */
function hasBegun({ error }: Outcome): boolean {
  return error?.code === 'approval_denied'
}

/** The checked value, where there is one, rather than the text around it. */
export function answerText({ output, text }: Pick<Outcome, 'output' | 'text'>): string {
  if (output === null) return text
  return typeof output === 'string' ? output : JSON.stringify(output)
}

/** The answer without reasoning, which never leaves the child. */
function answerContent(outcome: Outcome): Content {
  if (outcome.output !== null) return withMedia(answerText(outcome), outcome.content)
  if (typeof outcome.content === 'string') return outcome.content
  const kept = outcome.content.filter((block: Block) => block.type !== 'reasoning')
  return kept.length === 1 && kept[0]?.type === 'text' ? kept[0].text : kept
}

/** Adds pictures and files to a text. Values are in the text already. */
function withMedia(text: string, content: Content): Content {
  if (typeof content === 'string') return text
  const media = content.filter(({ type }) => type !== 'text' && type !== 'json' && type !== 'reasoning')
  return media.length === 0 ? text : [{ type: 'text', text }, ...media]
}

function join(first: string, partial: string): string {
  return partial === '' ? first : `${first}\n\n${partial}`
}

/** Makes the output of a waiting task from its child's end. A text too long to show is kept as a body. */
export function foldInto(draft: Draft, task: Node, link: Link): NodeOutput {
  const outcome = link.outcome as OutcomeRecord
  const said = outcome.answerNodeId === null ? undefined : draft.findNode(outcome.answerNodeId)
  const notes = { response: said?.metadata['response'], all: () => saidAndFound(draft, link) }
  const { content, isError, metadata } = fold(factsOf(link), wholeOutcome(draft, outcome, said), notes)
  const subagent = task.output.subagent ?? subagentOf(link.childConversationId)
  const value = outcome.status === 'completed' ? said?.output.value : undefined
  const shown = outputContent(content, task.id)
  if (shown.body !== null) draft.addBody(shown.body)
  const isPlain = shown.body === null && value === undefined && !isError
  if (isPlain) return { content, metadata, subagent }
  return {
    ...shown.output,
    ...(value === undefined ? {} : { value }),
    ...(isError ? { isError } : {}),
    metadata,
    subagent,
  }
}

function factsOf(link: Link): FoldFacts {
  const open = link.contract === 'open' ? openFactsOf(link) : undefined
  if (open === undefined) return link
  return { ...link, delegationContext: { open: withAbsent(open, link) as unknown as Json } }
}

function wholeOutcome(draft: Draft, outcome: OutcomeRecord, said: Node | undefined): Outcome {
  if (outcome.delegations.length === 0) return withWords(outcome, said?.output ?? {})
  return readOutcome({ node: (id: Id) => draft.findNode(id), turn: (id: Id) => draft.findTurn(id) }, outcome)
}
