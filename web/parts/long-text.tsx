import { type ReactNode, useMemo, useState } from 'react'
import { calm } from '../words/exact.ts'
import { piecesOf } from '../words/fold.ts'
import { size } from '../words/format.ts'
import { Button } from './button.tsx'

/** A whole text, however long: only the pieces in sight are laid out. */
export function Pieces({ text }: { readonly text: string }): ReactNode {
  const pieces = useMemo(() => piecesOf(text), [text])
  if (pieces.length === 1) return text
  return pieces.map((piece, at) => (
    <span key={at} className="piece">
      {piece}
    </span>
  ))
}

/** So much of a text is drawn before somebody asks for all of it. */
const MOST = 20_000

interface LongTextProps {
  readonly text: string
  /** Stands behind the last word. A text that still comes shows its end instead of its beginning. */
  readonly end?: ReactNode
}

/** A text of others: of a long one the beginning, and the rest on demand. */
export function LongText({ text, end = null }: LongTextProps): ReactNode {
  const [isAll, setAll] = useState(false)
  const isLong = text.length > MOST
  const isWritten = end !== null
  const shown = useMemo(() => calm(isAll || !isLong ? text : partOf(text, isWritten)), [text, isAll, isLong, isWritten])
  return (
    <>
      <Pieces text={shown} />
      {end}
      {isLong && !isAll ? (
        <Button isSmall look="quiet" onClick={() => setAll(true)}>
          Show all, {size(text.length)}
        </Button>
      ) : null}
    </>
  )
}

function partOf(text: string, isWritten: boolean): string {
  return (isWritten ? `…${text.slice(-MOST)}` : `${text.slice(0, MOST)}…`).toWellFormed()
}

/** A long text whose lines stay as they are. */
export function LongPre({ text, className }: { readonly text: string; readonly className?: string }): ReactNode {
  return (
    <pre className={className}>
      <LongText text={text} />
    </pre>
  )
}
