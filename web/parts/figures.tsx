import { Fragment, type ReactNode } from 'react'
import { useNow } from '../window/clock.ts'
import { clock, money, shortId, span, spanSoFar } from '../words/format.ts'
import { copy } from './button.tsx'

interface SpanProps {
  readonly from: number | null
  /** Null while it goes on. */
  readonly to: number | null
}

/** How long something took, or has taken so far. */
export function Span({ from, to }: SpanProps): ReactNode {
  if (from === null) return <span>—</span>
  return to === null ? <RunningSpan from={from} /> : <span>{span(to - from)}</span>
}

function RunningSpan({ from }: { readonly from: number }): ReactNode {
  return <span>{spanSoFar(useNow() - from)}</span>
}

/** How long until a moment: `in 23 h 57 min`. */
export function Until({ at }: { readonly at: number }): ReactNode {
  return <span>{spanSoFar(at - useNow())}</span>
}

export function Money({ usd }: { readonly usd: number | null | undefined }): ReactNode {
  const words = money(usd)
  return words === 'unknown' ? <span title="The price of this model is not known">{words}</span> : <span>{words}</span>
}

export function Clock({ at }: { readonly at: number }): ReactNode {
  return (
    <time dateTime={new Date(at).toISOString()} title={new Date(at).toLocaleString()}>
      {clock(at)}
    </time>
  )
}

/** An id, by its end; a click copies all of it. */
export function IdButton({ id }: { readonly id: string }): ReactNode {
  return (
    <button type="button" className="idc" title="Copy the id" onClick={() => copy(id, `Copied: ${shortId(id)}`)}>
      <span className="vh">Copy the id </span>
      {shortId(id)}
    </button>
  )
}

/** `lead › fixer › canary`: the path wherever a child speaks outside of its thread. */
export function AgentPath({ path }: { readonly path: readonly string[] }): ReactNode {
  return (
    <span className="path">
      {path.map((name, at) => (
        <Fragment key={at}>
          {at === 0 ? null : (
            <span className="sep" aria-hidden="true">
              ›
            </span>
          )}
          {at === path.length - 1 ? <b>{name}</b> : <span>{name}</span>}
        </Fragment>
      ))}
    </span>
  )
}
