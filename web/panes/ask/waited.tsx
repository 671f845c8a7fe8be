import type { ReactNode } from 'react'
import { Span, Until } from '../../parts/figures.tsx'

interface WaitedProps {
  readonly since: number
  readonly expiresAt: number
  /** What happens when nobody has answered by then: `it is denied`. */
  readonly then: string
}

/** How long something has waited for a person, and what happens when nobody answers. */
export function Waited({ since, expiresAt, then }: WaitedProps): ReactNode {
  return (
    <span className="meta">
      for <Span from={since} to={null} />
      {expiresAt - since > 366 * 86_400_000 ? null : (
        <>
          , {then} in <Until at={expiresAt} />
        </>
      )}
    </span>
  )
}
