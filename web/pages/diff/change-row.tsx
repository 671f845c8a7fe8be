import { type ReactNode, useState } from 'react'
import type { NodeDiff, NodeFacts } from '../../data/types.ts'
import { Link } from '../../parts/link.tsx'
import { pathOfRun } from '../../window/router.ts'
import { money, span, tokens } from '../../words/format.ts'
import { difference, signed } from './figures.tsx'
import type { Comparison, Side } from './sides.ts'
import { compareWords, type Piece } from './words.ts'

const CUT = 600

interface RowProps {
  readonly change: NodeDiff
  readonly comparison: Comparison
}

/** One node that is not the same in both runs. */
export function ChangeRow({ change, comparison }: RowProps): ReactNode {
  const { place, first, second, fields } = change
  const [isWhole, setWhole] = useState(false)
  const shown = fields.includes('input') && !fields.includes('output') ? 'input' : 'output'
  const [one, two] = compareWords(textOf(first, shown), textOf(second, shown))
  const isLong = textOf(first, shown).length > CUT || textOf(second, shown).length > CUT
  const cut = isWhole ? Number.POSITIVE_INFINITY : CUT
  return (
    <tr className="dr">
      <th scope="row">
        <NodeName change={change} comparison={comparison} />
        <p className="place">
          {place.replaceAll(' > ', ' › ').replace('/', ' › ')}, {fieldsInWords(fields, shown)}
        </p>
        {isLong ? (
          <button type="button" className="link meta" onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show less' : 'Show all'}
          </button>
        ) : null}
      </th>
      <Cell letter="A" facts={first} pieces={one} cut={cut} />
      <Cell letter="B" facts={second} pieces={two} cut={cut} />
      <td className="num">
        <Differences change={change} comparison={comparison} />
      </td>
    </tr>
  )
}

function textOf(facts: NodeFacts | null, field: 'input' | 'output'): string {
  return facts?.[field] ?? ''
}

function fieldsInWords(fields: NodeDiff['fields'], shown: 'input' | 'output'): string {
  if (fields.length === 0) return 'only here'
  return shown === 'input' ? 'went in' : fields.includes('output') ? 'came out' : fields.join(', ')
}

function NodeName({ change, comparison }: RowProps): ReactNode {
  const facts = change.second ?? change.first
  const side: Side = change.second === null ? comparison.first : comparison.second
  if (facts === null) return null
  return (
    <Link className="link" to={pathOfRun(side.run.conversationId, '', facts.nodeId)}>
      <b>{NAMES[facts.name] ?? facts.name}</b>
    </Link>
  )
}

const NAMES: Readonly<Record<string, string>> = { agent_message: 'answer', user_message: 'question' }

interface CellProps {
  readonly letter: 'A' | 'B'
  readonly facts: NodeFacts | null
  readonly pieces: readonly Piece[]
  readonly cut: number
}

function Cell({ letter, facts, pieces, cut }: CellProps): ReactNode {
  if (facts === null) return <td className="none">not in {letter}</td>
  return (
    <td className="words">
      {facts.state === 'finished' ? null : <span className="tag">{facts.state.replaceAll('_', ' ')}</span>}
      {shorten(pieces, cut).map(({ text, isOwn }, at) =>
        isOwn ? letter === 'A' ? <del key={at}>{text}</del> : <ins key={at}>{text}</ins> : <span key={at}>{text}</span>,
      )}
    </td>
  )
}

function shorten(pieces: readonly Piece[], most: number): readonly Piece[] {
  const kept: Piece[] = []
  let left = most
  for (const piece of pieces) {
    if (left <= 0) break
    kept.push(piece.text.length <= left ? piece : { ...piece, text: `${piece.text.slice(0, left)}…` })
    left -= piece.text.length
  }
  return kept
}

function Differences({ change: { first, second }, comparison }: RowProps): ReactNode {
  const usd = (facts: NodeFacts | null, side: Side) => (facts === null ? 0 : (side.usd.get(facts.nodeId) ?? 0))
  const time = (facts: NodeFacts | null) => (facts === null ? 0 : facts.durationMs)
  const lines = [
    signed((second?.tokens ?? 0) - (first?.tokens ?? 0), (amount) => `${tokens(amount)} tok`),
    signed(difference(usd(first, comparison.first), usd(second, comparison.second)), money),
    signed(difference(time(first), time(second)), span),
  ].filter((line) => line !== null)
  if (lines.length === 0) return <span className="dim">—</span>
  return lines.map((line) => (
    <span key={line} className={`line-of ${line.startsWith('+') ? 'up' : 'down'}`}>
      {line}
    </span>
  ))
}
