import type { DurableEvent, Status } from '../../data/types.ts'
import { calm } from '../../words/exact.ts'
import { count, span, tokens, total } from '../../words/format.ts'
import { jsonText } from '../../words/json-text.ts'
import { outcomeWords, statusWords } from '../../words/shown.ts'

const MOST = 160

/** How an event stands out on the slider. */
export type Mark = 'needs' | 'failed' | 'agent' | 'plain'

export function markOf(event: DurableEvent): Mark {
  if (event.type === 'approval-request' || event.type === 'question') return 'needs'
  if (event.type === 'retry' || event.type === 'uncertain' || event.type === 'stalled') return 'failed'
  if (event.type === 'run-end') return isBad(event.outcome.status) ? 'failed' : 'agent'
  if (event.type === 'node-state') return event.to === 'errored' || event.to === 'uncertain' ? 'failed' : 'plain'
  return event.type === 'run-start' || event.type === 'delegation-start' ? 'agent' : 'plain'
}

function isBad(status: string): boolean {
  return status !== 'completed' && status !== 'cancelled'
}

type Words = {
  readonly [Type in DurableEvent['type']]?: (event: Extract<DurableEvent, { readonly type: Type }>) => string
}

const WORDS: Words = {
  'run-queued': () => 'waits its turn',
  'run-start': () => 'begins',
  'run-end': ({ outcome }) => `ends: ${outcomeWords(outcome)}`,
  message: ({ role, content, calls }) => said(role === 'agent' ? 'says' : 'is asked', textOf(content), calls.length),
  'tool-call': ({ call }) => `calls ${call.name} ${shown(call.input)}`,
  'tool-result': ({ tool, content, isError }) => `${tool} ${isError ? 'failed' : 'gave'}: ${textOf(content)}`,
  'delegation-start': ({ agent }) => `delegates to ${agent}`,
  'delegation-end': ({ agent, status }) => `${agent} ends: ${statusWords(status as Status)}`,
  'approval-request': ({ request, input }) => `needs a yes for ${request} ${shown(input)}`,
  'approval-answer': ({ by, allowed }) => `${by} ${allowed ? 'allowed' : 'denied'} it`,
  question: ({ text }) => `asks a person: ${text}`,
  answer: ({ by, text }) => `${by} answers: ${text}`,
  usage: ({ usage, model }) => `used ${tokens(total(usage))} tokens of ${model}`,
  'node-state': ({ kind, to, reason }) => `${kind} is ${to}${reason === null ? '' : `: ${reason}`}`,
  retry: ({ attempt, error, wakeAt, at }) => `tries again (attempt ${attempt}) in ${span(wakeAt - at)}: ${error}`,
  uncertain: ({ reason }) => `nobody knows whether a call happened: ${reason}`,
  'call-settled': ({ tool, by, how }) => `${by} says of ${tool}: ${how.replace('_', ' ')}`,
}

/** An event as a sentence without its subject, which is the agent. */
export function eventWords(event: DurableEvent): string {
  const words = (WORDS[event.type] as ((event: DurableEvent) => string) | undefined)?.(event)
  return oneLine(words ?? event.type.replace(/-/g, ' '))
}

/** An answer may be calls alone. */
function said(how: string, text: string, calls: number): string {
  return text === '' && calls > 0 ? `answers with ${count(calls, 'call')}` : `${how}: ${text}`
}

function shown(value: unknown): string {
  return value === null || value === undefined ? '' : jsonText(value, MOST * 2, true)
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return shown(content)
  return content.map((block: { readonly text?: string; readonly type?: string }) => block.text ?? block.type).join(' ')
}

function oneLine(text: string): string {
  const line = calm(text.slice(0, MOST * 2)).replace(/\s+/g, ' ')
  return line.length > MOST ? `${line.slice(0, MOST)}…` : line
}
