import type { OpenCall } from './read-call.ts'

const MOST_SUMMARY = 160
const MOST_LABEL = 60

/** What the child was asked, in one line. */
export function summaryOf({ instructions, source }: OpenCall): string {
  const text = (instructions ?? '').replace(/\s+/g, ' ').trim()
  const said = source === null ? text : `Run subrecipe \`${source}\`${text === '' ? '' : `: ${text}`}`
  return cut(said, MOST_SUMMARY)
}

/** What it is called in lists. */
export function labelOf({ instructions, source }: OpenCall): string {
  const text = (instructions ?? '').replace(/\s+/g, ' ').trim()
  return cut([source ?? '', text].filter((part) => part !== '').join(': '), MOST_LABEL)
}

export function titleOf(call: OpenCall): string {
  if (call.surface === 'subagent') return 'Subagent task'
  return call.title ?? (labelOf(call) || 'Delegated task')
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 3)}...`
}
