import type { ReactNode } from 'react'
import { Link } from '../../parts/link.tsx'
import { pathOfRun } from '../../window/router.ts'

/** What somebody points at, in words. */
export interface Reading {
  readonly name: string
  readonly facts: readonly string[]
  /** Where it stands in the thread. */
  readonly place: { readonly conversationId: string; readonly nodeId: string | null } | null
}

export function Readout({ reading }: { readonly reading: Reading | null }): ReactNode {
  return (
    <div className="readout" aria-live="polite">
      {reading === null ? (
        <span>Point at a bar, or move to it with the tab key, to read it.</span>
      ) : (
        <Words {...reading} />
      )}
    </div>
  )
}

function Words({ name, facts, place }: Reading): ReactNode {
  return (
    <>
      <b>{name}</b>
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      {place === null ? null : (
        <Link className="link" to={pathOfRun(place.conversationId, '', place.nodeId ?? undefined)}>
          Open in the thread
        </Link>
      )}
    </>
  )
}
