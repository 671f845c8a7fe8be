import type { ReactNode } from 'react'
import { count } from '../words/format.ts'
import { SHOWN, type Shown } from '../words/shown.ts'

/** Quiet states are outlines, loud ones are filled: a page read in grey still tells them apart. */
const SHAPES: Readonly<Record<Shown, ReactNode>> = {
  working: (
    <>
      <circle className="ring" cx="8" cy="8" r="6" />
      <path className="arc" d="M8 2a6 6 0 0 1 6 6" />
    </>
  ),
  waiting: <circle className="dashes" cx="8" cy="8" r="6" />,
  needs: (
    <>
      <path className="full" d="M8 .9 15.1 8 8 15.1.9 8z" />
      <circle className="hole" cx="8" cy="8" r="2.1" />
    </>
  ),
  done: (
    <>
      <circle className="line" cx="8" cy="8" r="6.2" />
      <path className="line" d="m5.2 8.2 2 2 3.6-4.2" />
    </>
  ),
  failed: (
    <>
      <rect className="full" x="1.5" y="1.5" width="13" height="13" rx="3" />
      <path className="cut-out" d="m5.5 5.5 5 5M10.5 5.5l-5 5" />
    </>
  ),
  uncertain: (
    <>
      <path className="full" d="M8 1.8 15 14H1z" />
      <path className="cut-out" d="M8 6v3.7M8 11.9v.01" />
    </>
  ),
  cancelled: (
    <>
      <circle className="line" cx="8" cy="8" r="6.2" />
      <path className="line" d="m4 12 8-8" />
    </>
  ),
  queued: <circle className="line" cx="8" cy="8" r="3" />,
  stalled: (
    <>
      <circle className="line" cx="8" cy="8" r="6.2" />
      <path className="line" d="M6.3 5.7v4.6M9.7 5.7v4.6" />
    </>
  ),
}

interface ShapeProps {
  readonly state: Shown
  /** True beside words that say the same. */
  readonly isDecoration?: boolean
  readonly className?: string
}

/** The shape of a state, with its word for readers and in a tooltip. */
export function Shape({ state, isDecoration = false, className = '' }: ShapeProps): ReactNode {
  const word = SHOWN[state]
  const name = isDecoration ? ({ 'aria-hidden': true } as const) : ({ role: 'img', 'aria-label': word } as const)
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: it has one, unless words beside it say the same
    <svg className={`st st-${state} ${className}`} viewBox="0 0 16 16" focusable="false" {...name}>
      {isDecoration ? null : <title>{word}</title>}
      {SHAPES[state]}
    </svg>
  )
}

/** The label of a state: at the head of a run or node, never in lists. */
export function Pill({ state, children }: { readonly state: Shown; readonly children?: ReactNode }): ReactNode {
  return (
    <span className={`pill pill-${state}`}>
      <Shape state={state} isDecoration />
      {children ?? SHOWN[state]}
    </span>
  )
}

const MOST_CREW = 8

/** One small shape for each subagent. */
export function Crew({ states }: { readonly states: readonly Shown[] }): ReactNode {
  if (states.length === 0) return null
  const more = states.length - MOST_CREW
  return (
    <span className="crew" role="img" aria-label={count(states.length, 'agent')}>
      {states.slice(0, MOST_CREW).map((state, at) => (
        <Shape key={at} state={state} isDecoration className="st-sm" />
      ))}
      {more > 0 ? <span className="meta">+{more}</span> : null}
    </span>
  )
}
