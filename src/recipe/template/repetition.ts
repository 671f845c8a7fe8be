import { Lines } from './lines.ts'
import { segmentsOf } from './tags.ts'
import { type Token, tokensOf } from './tokens.ts'

/**
 * The line of an expression that repeats a written text very often, such as `"a" * 2000000000`: the engine does that when
 * it reads the template, before anybody can stop it. A line of dashes is no harm.
 */
export function repetitionLine(template: string): number | undefined {
  if (!template.includes('*')) return undefined
  const found = segmentsOf(template).find(({ kind, inner }) => {
    return (kind === 'variable' || kind === 'tag') && inner.includes('*') && repeats(tokensOf(inner))
  })
  return found === undefined ? undefined : new Lines(template).at(found.start)
}

const LONGEST = 1_000

function repeats(tokens: readonly Token[]): boolean {
  const stars = tokens.filter(({ kind, text }) => kind === 'sign' && (text === '*' || text === '**'))
  const isOfTexts = tokens.some(({ kind, text }) => kind === 'string' || text === '[')
  if (stars.length === 0 || !isOfTexts) return false
  const isLong = tokens.some(({ kind, text }) => {
    return kind === 'number' ? Number(text.replaceAll('_', '')) > LONGEST : kind === 'string' && text.length > LONGEST
  })
  return stars.length > 1 || isLong
}
