import { segmentsOf, tagName } from './tags.ts'
import { type Token, tokensOf } from './tokens.ts'

/**
 * Could rendering take long or make much more text than its values have? Conditions and plain values cannot. What this
 * says yes to is rendered in a thread of its own that can be stopped.
 */
export function isRisky(template: string): boolean {
  return segmentsOf(template).some((segment) => {
    if (segment.kind === 'tag' && !HARMLESS_TAGS.has(tagName(segment))) return true
    return (segment.kind === 'tag' || segment.kind === 'variable') && hasRisk(tokensOf(segment.inner))
  })
}

const HARMLESS_TAGS: ReadonlySet<string> = new Set(['if', 'elif', 'else', 'endif'])
/** What gives at most about as much as it gets. */
const HARMLESS_FILTERS: ReadonlySet<string> = new Set(
  'upper lower title capitalize trim default d length count first last string int float bool indent escape e safe legate_hold'.split(
    ' ',
  ),
)

function hasRisk(tokens: readonly Token[]): boolean {
  return tokens.some(({ kind, text }, at) => {
    if (kind === 'sign') return ['*', '**', '+', '~', '%', '['].includes(text) || (text === '(' && isCall(tokens, at))
    if (kind === 'number') return text.length > 3
    return tokens[at - 1]?.text === '|' && !HARMLESS_FILTERS.has(text)
  })
}

/** A bracket after a name calls it, unless the name is that of a filter. */
function isCall(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1]
  if (before?.kind !== 'name' || ['and', 'or', 'not', 'in', 'if', 'elif', 'else'].includes(before.text)) return false
  return tokens[at - 2]?.text !== '|'
}
